extension String {
    /// The string with control characters, line and paragraph separators, invisible format
    /// characters (including bidirectional controls), private-use characters and unassigned code
    /// points escaped as `\n`, `\u{1B}` …: safe for terminals and line-based logs.
    package var escapingControls: String {
        // Bytes, because appending to a view of scalars takes quadratic time.
        var result: [UInt8] = []
        result.reserveCapacity(utf8.count)
        for scalar in unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
                let text: String =
                    switch scalar {
                    case "\n": "\\n"
                    case "\r": "\\r"
                    case "\t": "\\t"
                    default: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
                    }
                result.append(contentsOf: text.utf8)
            default:
                result.append(contentsOf: scalar.utf8)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
    /// The first 60 bytes, safe to display: for errors that contain a value from the peer.
    package var shortenedForDisplay: String {
        String(decoding: utf8.prefix(60), as: UTF8.self).escapingControls
    }
}
