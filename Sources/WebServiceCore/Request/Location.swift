import Foundation

extension Request {
    /// The target of a request as specified by the caller.
    ///
    /// The target is resolved and checked when the request is encoded, in one pass over the bytes.
    enum Location: Sendable {
        /// An absolute http or https URL.
        case absolute(String)
        /// A path that follows the rules of ``WebService/absoluteURL(_:pathParameters:)``.
        ///
        /// `below` is `nil` if the service has no base URL.
        case path(String, Parameters?, below: BaseURL?)
        indirect case invalid(WebServiceError)

        /// The path and its base if the URL can be composed by copying both without changes;
        /// otherwise `nil`.
        private var plainParts: (path: String, base: BaseURL)? {
            guard case .path(let path, nil, below: let base?) = self, base.query == nil, PathJoin.isPlain(path) else {
                return nil
            }
            return (path, base)
        }

        /// Whether ``plainText`` is not `nil`.
        var isPlain: Bool { plainParts != nil }

        /// The whole URL if it can be composed by copying; otherwise `nil`.
        var plainText: String? {
            guard let (path, base) = plainParts else { return nil }
            let separator = path.utf8.first == UInt8(ascii: "/") ? "" : "/"
            var text = ""
            text.reserveCapacity(base.prefix.utf8.count + separator.utf8.count + path.utf8.count)
            text += base.prefix
            text += separator
            text += path
            return text
        }

        /// See ``Request/pathTemplate``.
        var template: String? {
            guard case .path(let path, _, _) = self else { return nil }
            let bytes = Array(path.utf8)
            guard BaseURL.scheme(of: bytes) == nil else { return nil }
            let end = bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
            return (bytes.first == UInt8(ascii: "/") ? "" : "/") + String(decoding: bytes[..<end], as: UTF8.self)
        }

        /// Writes `https://host:port/path?query`, with every byte valid according to RFC 3986.
        ///
        /// A fragment is dropped.
        ///
        /// - Returns: `true` if a query was written, so parameters must be added with `&`.
        func write(into writer: inout ByteWriter) throws(WebServiceError) -> Bool {
            if let plainText {
                writer.write(plainText)
                return false
            }
            switch self {
            case .invalid(let error):
                throw error
            case .absolute(let text):
                return try Self.write(absolute: Array(text.utf8), nil, into: &writer)
            case .path(let path, let values, let base):
                let path = Array(path.utf8)
                if BaseURL.scheme(of: path) != nil { return try Self.write(absolute: path, values, into: &writer) }
                guard let base else {
                    throw WebServiceError(
                        .invalidURL, "the service has no base URL, so the path must be an absolute http or https URL")
                }
                let reference = Reference(path[...])
                writer.write(base.origin)
                try PathJoin(reference.path, values: values).write(below: base.path, into: &writer)
                guard let query = base.query else {
                    return reference.writeQuery(into: &writer, behind: UInt8(ascii: "?"))
                }
                writer.write(byte: UInt8(ascii: "?"))
                writer.write(query)
                _ = reference.writeQuery(into: &writer, behind: UInt8(ascii: "&"))
                return true
            }
        }

        private static func write(
            absolute text: [UInt8], _ values: Parameters?, into writer: inout ByteWriter
        ) throws(WebServiceError) -> Bool {
            let absolute = try BaseURL.splitOrigin(of: text)
            let reference = Reference(absolute.rest)
            writer.write(absolute.origin)
            try PathJoin(reference.path, values: values, isAbsolute: true).write(below: "", into: &writer)
            return reference.writeQuery(into: &writer, behind: UInt8(ascii: "?"))
        }

        /// Returns the URL without the request's parameters.
        func url() throws(WebServiceError) -> URL {
            var writer = ByteWriter(reserving: 128)
            _ = try write(into: &writer)
            guard let url = URL(string: writer.text) else {
                throw WebServiceError(.invalidURL, "the URL is malformed; correct its path and query")
            }
            return url
        }
    }
}

/// A relative path that is joined to the path of a base URL.
///
/// The result is always the base path or a path below it.
struct PathJoin {
    private let path: ArraySlice<UInt8>
    private let values: Parameters?
    private let isAbsolute: Bool

    /// - Parameters:
    ///   - values: The values of the placeholders `{name}` in the path.
    ///   - isAbsolute: Whether the path is part of an absolute URL, where repeated leading slashes
    ///     are significant.
    init(_ path: ArraySlice<UInt8>, values: Parameters?, isAbsolute: Bool = false) {
        self.path = path
        self.values = values
        self.isAbsolute = isAbsolute
    }

    /// Writes the path joined to a base path.
    ///
    /// An empty path leaves the base unchanged. Any other path is joined with exactly one slash.
    func write(below base: String, into writer: inout ByteWriter) throws(WebServiceError) {
        if path.isEmpty {
            try checkUsed([])
            writer.write(base)
            return
        }
        let end = base.utf8.lastIndex { $0 != UInt8(ascii: "/") }
        if let end { writer.write(base[...end]) }
        for segment in try segments() {
            writer.write(byte: UInt8(ascii: "/"))
            writer.write(segment)
        }
    }

    /// Returns whether a string is a path that can be joined by copying its bytes.
    ///
    /// Such a path contains no byte to escape, no placeholder, query or fragment, no colon (which
    /// could end a scheme), no segment that begins with a dot, and no leading `//`. Most paths are
    /// plain.
    static func isPlain(_ text: String) -> Bool {
        text.utf8.withContiguousStorageIfAvailable { bytes in
            guard !bytes.isEmpty else { return false }
            var isPlain = bytes.count < 2 || bytes[0] != UInt8(ascii: "/") || bytes[1] != UInt8(ascii: "/")
            ByteSet.plainPath.withTable { table in
                var previous = UInt8(ascii: "/")
                for byte in bytes {
                    if table[Int(byte)] >> 24 != 1 || byte == UInt8(ascii: ".") && previous == UInt8(ascii: "/") {
                        isPlain = false
                    }
                    previous = byte
                }
            }
            return isPlain
        } ?? false
    }

    private func segments() throws(WebServiceError) -> [String] {
        var result: [String] = []
        var used: Set<String> = []
        let relative = isAbsolute ? path.dropFirst() : path.drop { $0 == UInt8(ascii: "/") }
        let parts = relative.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (place, part) in parts.enumerated() {
            let segment = try self.segment(part, used: &used)
            let isLast = place == parts.count - 1
            let dots = dotSegment(segment.text)
            if dots != nil, let name = segment.placeholder {
                throw WebServiceError(
                    .invalidURL,
                    "the value of the path placeholder {\(name)} produces a dot segment; use another value")
            }
            switch dots {
            case .none:
                result.append(segment.text)
            case .current:
                if isLast { result.append("") }
            case .parent:
                guard result.popLast() != nil else {
                    let top = isAbsolute ? "the root" : "the base URL"
                    throw WebServiceError(.invalidURL, "the path leads above \(top); remove '..'")
                }
                if isLast { result.append("") }
            case .hidden:
                throw WebServiceError(
                    .invalidURL, "a path segment contains '..' next to an encoded slash or backslash; remove '..'")
            }
        }
        try checkUsed(used)
        return result
    }

    private enum DotSegment { case current, parent, hidden }

    /// Returns the meaning of a segment for a server that decodes it.
    ///
    /// Encoded dots count as dots, as WHATWG URL defines.
    private func dotSegment(_ segment: String) -> DotSegment? {
        let decoded = percentDecoded(segment.utf8)
        if decoded == Array(".".utf8) { return .current }
        if decoded == Array("..".utf8) { return .parent }
        let parts = decoded.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
        return parts.contains { $0.elementsEqual("..".utf8) } ? .hidden : nil
    }

    // MARK: Placeholders

    private func segment(
        _ part: ArraySlice<UInt8>,
        used: inout Set<String>
    ) throws(WebServiceError) -> (text: String, placeholder: String?) {
        var writer = ByteWriter(reserving: part.count + 16)
        var placeholder: String?
        var rest = part
        while let open = rest.firstIndex(of: UInt8(ascii: "{")),
            let close = rest[open...].firstIndex(of: UInt8(ascii: "}"))
        {
            let name = rest[rest.index(after: open)..<close]
            let isName = name.allSatisfy {
                ASCII.isAlphanumeric($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
            }
            writer.encodeKeepingTriplets(rest[..<open], allowed: .path)
            if isName, !name.isEmpty {
                let name = String(decoding: name, as: UTF8.self)
                placeholder = name
                used.insert(name)
                writer.encode(try value(of: name), allowed: .unreserved)
            } else {
                writer.encodeKeepingTriplets(rest[open...close], allowed: .path)
            }
            rest = rest[rest.index(after: close)...]
        }
        writer.encodeKeepingTriplets(rest, allowed: .path)
        return (writer.text, placeholder)
    }

    private func value(of name: String) throws(WebServiceError) -> String {
        guard let value = values?[name] else {
            throw WebServiceError(.invalidURL, "the path placeholder {\(name)} has no value; pass it in pathParameters")
        }
        let text: String
        do throws(WebServiceError) { text = try ParameterStrategy().text(of: value, name: name) } catch {
            throw WebServiceError(.invalidURL, "the path placeholder {\(name)} cannot be filled: \(error.message)")
        }
        guard !text.isEmpty else {
            throw WebServiceError(
                .invalidURL, "the value of the path placeholder {\(name)} is empty; pass a value that is not empty")
        }
        return text
    }

    private func checkUsed(_ used: Set<String>) throws(WebServiceError) {
        guard let values else { return }
        var given: Set<String> = []
        for (name, _) in values {
            guard used.contains(name) else {
                throw WebServiceError(
                    .invalidURL, "the path has no placeholder {\(name)}; add it to the path or remove the value")
            }
            guard given.insert(name).inserted else {
                throw WebServiceError(.invalidURL, "the path placeholder {\(name)} has two values; remove one of them")
            }
        }
    }
}
