import Foundation

extension MultipartFormData {
    private enum Segment {
        case source(BodySource)
        case stream(StreamedBody, owner: String)
    }

    /// Validates the form, reads the status of its files and returns the assembled body, which is a
    /// stream if a part is a sequence.
    func encoded() throws(WebServiceError) -> (source: BodySource?, stream: StreamedBody?) {
        let segments = try segments()
        if segments.count == 1, case .source(let source)? = segments.first { return (source, nil) }
        var length: Int64? = 0
        for segment in segments {
            let count: Int64? =
                switch segment {
                case .source(let source): Int64(source.count)
                case .stream(let stream, _): stream.length
                }
            let sum = count.flatMap { count in length?.addingReportingOverflow(count) }
            if sum?.overflow == true { throw BodySource.tooLong }
            length = sum?.partialValue
        }
        let stream = StreamedBody(length: length, isReplayable: streams.allSatisfy(\.isReplayable)) { sink in
            for segment in segments {
                switch segment {
                case .source(let source): try await sink.take(source)
                case .stream(let stream, let owner): try await stream.produce(of: owner, sink.take)
                }
            }
        }
        return (nil, stream)
    }

    private func segments() throws(WebServiceError) -> [Segment] {
        let opening = Array("\r\n--\(boundary)\r\nContent-Disposition: form-data; name=\"".utf8)
        let closing = Array("\r\n--\(boundary)--\r\n".utf8)
        var heads: [[UInt8]] = []
        heads.reserveCapacity(parts.count)
        var count = closing.count
        var hasFiles = false
        for part in parts {
            let head = try part.head(behind: opening)
            heads.append(head)
            count += head.count
            if case .bytes(let data) = part.content { count += data.count } else { hasFiles = true }
        }
        var segments: [Segment] = []
        var pieces = BodySource.Pieces()
        if !hasFiles { pieces.reserve(count) }
        // A line break belongs to the boundary after it, and nothing precedes the first boundary.
        for (index, part) in parts.enumerated() {
            pieces.append(heads[index][(index == 0 ? 2 : 0)...])
            switch part.content {
            case .bytes(let data): pieces.append(data)
            case .file(let url): try pieces.append(part.file(url))
            case .stream(let stream) where stream.length == 0: break
            case .stream(let stream):
                segments += [.source(try pieces.source()), .stream(stream, owner: part.subject)]
                pieces = BodySource.Pieces()
            case .invalid(let error):
                throw WebServiceError(.encoding, "\(part.subject): \(error.message)", underlying: error.underlying)
            }
        }
        pieces.append(closing[(parts.isEmpty ? 2 : 0)...])
        return segments + [.source(try pieces.source())]
    }
}

extension MultipartFormData.Part {
    /// Returns everything before the content: the boundary and the header fields.
    fileprivate func head(behind opening: [UInt8]) throws(WebServiceError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(opening.count + 160)
        bytes += opening
        try append(name, "name", to: &bytes)
        if let fileName {
            bytes += "\"; filename=\"".utf8
            try append(fileName, "file name", to: &bytes)
        }
        bytes += "\"\r\n".utf8
        if let contentType {
            guard Self.isMediaType(contentType) else {
                throw failure("has a content type that is not a media type; use a value such as image/png")
            }
            bytes += "Content-Type: ".utf8
            bytes += contentType.utf8
            bytes += "\r\n".utf8
        }
        for field in headers {
            guard ASCII.isToken(field.name.utf8), !Self.isOurs(field.name) else {
                throw failure("has a header field whose name is invalid or reserved; remove the field")
            }
            guard ASCII.isFieldValue(field.value.utf8) else {
                throw failure(
                    "has a header field whose value contains a line break or another control character; remove it")
            }
            bytes += "\(field.name): \(field.value)\r\n".utf8
        }
        bytes += "\r\n".utf8
        return bytes
    }

    /// Appends a name, escaped as HTML specifies.
    private func append(_ name: String, _ what: StaticString, to bytes: inout [UInt8]) throws(WebServiceError) {
        for byte in name.utf8 {
            switch byte {
            case 0: throw failure("has a \(what) that contains NUL; remove it")
            case UInt8(ascii: "\""): bytes += "%22".utf8
            case UInt8(ascii: "\r"): bytes += "%0D".utf8
            case UInt8(ascii: "\n"): bytes += "%0A".utf8
            default: bytes.append(byte)
            }
        }
    }

    /// Returns whether a string is `type/subtype` with optional parameters.
    private static func isMediaType(_ text: String) -> Bool {
        let type = text.utf8.prefix { $0 != UInt8(ascii: ";") && !ASCII.isSpaceOrTab($0) }
        let names = type.split(separator: UInt8(ascii: "/"), maxSplits: 2, omittingEmptySubsequences: false)
        let rest = text.utf8.dropFirst(type.count).drop(while: ASCII.isSpaceOrTab)
        return names.count == 2 && names.allSatisfy { ASCII.isToken($0) }
            && (rest.first ?? UInt8(ascii: ";")) == UInt8(ascii: ";") && ASCII.isFieldValue(text.utf8)
    }

    private static func isOurs(_ name: String) -> Bool {
        ["Content-Disposition", "Content-Type", "Content-Transfer-Encoding"].contains {
            $0.equalsIgnoringASCIICase(name)
        }
    }

    /// Returns the file of the part, with its status.
    fileprivate func file(_ url: URL) throws(WebServiceError) -> BodySource.File {
        try BodySource.File(url, owner: subject)
    }

    private func failure(_ what: String) -> WebServiceError {
        WebServiceError(.encoding, "\(subject) \(what)")
    }

    /// The name of the part in error messages.
    fileprivate var subject: String {
        "the multipart part '\(String(name.unicodeScalars.prefix(80)).escapingControls)'"
    }
}
