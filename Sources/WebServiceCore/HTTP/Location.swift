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

        /// The path and its base if the URL can be composed by copying them, without processing
        /// any part; otherwise `nil`.
        private var plainParts: (path: String, base: BaseURL)? {
            guard case .path(let path, nil, below: let base?) = self, base.query == nil, PathJoin.isPlain(path) else {
                return nil
            }
            return (path, base)
        }

        /// A Boolean value that indicates whether ``plainText`` is not `nil`.
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
