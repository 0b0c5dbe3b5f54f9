extension WebLink {
    /// Parses one field value (RFC 8288, appendix B.2) in linear time.
    ///
    /// - Parameter base: The URL against which relative references are resolved.
    static func parse(_ field: String, base: String?) -> [WebLink] {
        var links: [WebLink] = []
        var input = Input(rest: Array(field.utf8)[...])
        while true {
            // A list may have empty elements (RFC 9110, section 5.6.1).
            input.skip { ASCII.isSpaceOrTab($0) || $0 == UInt8(ascii: ",") }
            guard input.take(UInt8(ascii: "<")), let target = input.text(before: UInt8(ascii: ">")) else {
                return links
            }
            let parameters = input.parameters()
            links.append(WebLink(target: target, parameters, base: base))
            guard input.take(UInt8(ascii: ",")) else { return links }
        }
    }

    private init(target: String, _ parameters: [Parameter], base: String?) {
        func first(_ name: String) -> String? {
            parameters.first { $0.name == name }?.value
        }
        reference = target
        self.base = base
        self.parameters = parameters
        anchorReference = first("anchor")
        relations = (first("rel") ?? "").utf8.split(whereSeparator: ASCII.isSpaceOrTab).map { ASCII.lowercased($0) }
    }

    /// The unparsed remainder of a field.
    private struct Input {
        var rest: ArraySlice<UInt8>

        mutating func skip(_ isSkipped: (UInt8) -> Bool) {
            rest = rest.drop(while: isSkipped)
        }

        mutating func take(_ byte: UInt8) -> Bool {
            guard rest.first == byte else { return false }
            rest.removeFirst()
            return true
        }

        /// Returns the string before a byte and consumes both; `nil` if the byte does not occur.
        mutating func text(before end: UInt8) -> String? {
            guard let place = rest.firstIndex(of: end) else { return nil }
            defer { rest = rest[(place + 1)...] }
            return String(decoding: rest[..<place], as: UTF8.self)
        }

        /// Returns the string before the first of several bytes, without trailing whitespace.
        mutating func text(beforeAny ends: String) -> String {
            let text = rest.prefix { !ends.utf8.contains($0) }
            rest = rest[text.endIndex...]
            let end = text.lastIndex { !ASCII.isSpaceOrTab($0) }.map { $0 + 1 } ?? text.startIndex
            return String(decoding: text[..<end], as: UTF8.self)
        }

        /// Parses the parameters (RFC 8288, appendix B.3).
        mutating func parameters() -> [Parameter] {
            var parameters: [Parameter] = []
            while true {
                skip(ASCII.isSpaceOrTab)
                guard take(UInt8(ascii: ";")) else { return parameters }
                skip(ASCII.isSpaceOrTab)
                let name = text(beforeAny: "=;,").asciiLowercased()
                var value = ""
                if take(UInt8(ascii: "=")) {
                    skip(ASCII.isSpaceOrTab)
                    value = take(UInt8(ascii: "\"")) ? ASCII.takeQuotedString(&rest) : text(beforeAny: ";,")
                }
                if !name.isEmpty { parameters.append(Parameter(name: name, value: value)) }
            }
        }
    }
}
