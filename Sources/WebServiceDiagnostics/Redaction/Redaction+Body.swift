public import Foundation
import WebServiceCore

/// The redaction of bodies.
extension Redaction {
    /// Returns a body as text with the secret values replaced.
    ///
    /// The supported formats are JSON (including several values, truncated JSON, and JSON in
    /// strings), forms, multipart bodies, event streams, XML, HTML, CSV, GraphQL, YAML and other
    /// `text/…` types. The content codings `gzip` and `deflate` are supported. Parts of a multipart
    /// body that are not text are replaced as a whole. Text in another charset is decoded if the
    /// content type names that charset.
    ///
    /// In JSON, XML and HTML, the structure determines which values are replaced. In CSV, the
    /// columns with secret names are replaced. In all other text, the value that follows a secret
    /// name is replaced:
    /// - After `=`, the value is a quoted string, a list or an object in brackets, or everything up
    ///   to the next space, `&`, `;`, `<`, `>`, quotation mark, or comma before a space. If the
    ///   name begins a line, the value includes the words that follow.
    /// - After `:`, the value is a quoted string, a list or an object in brackets, or the rest of
    ///   the line. If the rest of the line is empty, the value is the following lines that are
    ///   indented more, as in YAML.
    ///
    /// - Parameters:
    ///   - data: The body, or its first bytes.
    ///   - contentType: The value of `Content-Type`; `nil` if there is none.
    ///   - contentEncoding: The value of `Content-Encoding`. The bytes may already be decoded,
    ///     because most sessions decode the body and retain the field. Defaults to `nil`.
    /// - Returns: `nil` if secrets cannot be recognized. This applies to bytes that are not text,
    ///   such as those of most images, to other content codings, and to text of an unknown media
    ///   type, unless the body is JSON or PEM.
    public func body(_ data: Data, contentType: String?, contentEncoding: String? = nil) -> String? {
        guard let decoded = Self.decoded(data, contentEncoding) else { return nil }
        var bytes = Self.unicode(decoded.bytes, contentType) ?? decoded.bytes
        // A character that is cut off at the end must not prevent the redaction of the others.
        if let cut = TextRedactor.cutBytes(bytes[...]) { bytes = Array(bytes.dropLast(cut)) }
        var redactor = TextRedactor(SecretRules(self), bytes)
        guard case .complete = redactor.body(bytes.indices, contentType, true) else { return nil }
        return String(validating: redactor.redacted ?? bytes, as: UTF8.self)
    }

    /// The result of ``search(_:contentType:contentEncoding:)``.
    package enum SearchedBody: Sendable {
        /// The body without secrets. If the body contained none, its bytes are unchanged.
        case text(Data)
        /// An image, a sound, a video or a font that is not text. It is not searched.
        case media
        /// A body in which secrets cannot be recognized or replaced.
        case unsearchable
    }

    /// Returns a body with its secrets replaced, in the same charset and content coding.
    package func search(_ data: Data, contentType: String?, contentEncoding: String?) -> SearchedBody {
        guard let decoded = Self.decoded(data, contentEncoding), decoded.isComplete else { return .unsearchable }
        let unicode = Self.unicode(decoded.bytes, contentType)
        let bytes = unicode ?? decoded.bytes
        var redactor = TextRedactor(SecretRules(self), bytes)
        switch redactor.body(bytes.indices, contentType, false) {
        case .media: return .media
        case .impossible: return .unsearchable
        case .complete: break
        }
        guard let redacted = redactor.redacted else { return .text(data) }
        var result = Data(redacted)
        if unicode != nil {
            guard let charset = Self.charset(contentType),
                let text = String(decoding: redacted, as: UTF8.self).data(using: charset)
            else { return .unsearchable }
            result = text
        }
        guard decoded.isEncoded else { return .text(result) }
        let isDeflate = contentEncoding?.asciiLowercased() == "deflate"
        // The bytes were decoded with zlib, so it is available.
        guard let encoded = try? GzipEncoder(isDeflate: isDeflate).finish(with: result)  // see above
        else { return .unsearchable }
        return .text(encoded)
    }

    /// The maximum size of a decoded body.
    private static let maximumBytes = 32 << 20

    /// Returns a body without its content coding.
    ///
    /// - Returns: `nil` if the bytes cannot be decoded.
    private static func decoded(_ data: Data, _ coding: String?)
        -> (bytes: [UInt8], isEncoded: Bool, isComplete: Bool)?
    {
        let start = Array(data.prefix(2))
        let isGzip = start == [0x1F, 0x8B]
        let isText = !data.contains(0) && String(validating: data, as: UTF8.self) != nil
        switch coding?.asciiLowercased() {
        case "gzip"?, "x-gzip"?: if !isGzip { return (Array(data), false, true) }
        case "deflate"?: if isText { return (Array(data), false, true) }
        default: return (Array(data), false, true)
        }
        let isZlib = start.count == 2 && start.first.map { $0 & 15 == 8 } ?? false
        guard let decoded = Inflation.decode(data, isRaw: !isGzip && !isZlib, limit: maximumBytes) else { return nil }
        return (decoded.bytes, true, decoded.isComplete)
    }

    private static func charset(_ contentType: String?) -> String.Encoding? {
        let name = contentType.flatMap { MediaType.parameter("charset", of: $0) }
        return name.flatMap { Charset.encoding(named: $0) }.flatMap { [.utf8, .ascii].contains($0) ? nil : $0 }
    }

    /// Returns text in another charset as UTF-8, or `nil` if the type names no other charset.
    private static func unicode(_ bytes: [UInt8], _ contentType: String?) -> [UInt8]? {
        charset(contentType).flatMap { String(data: Data(bytes), encoding: $0) }.map { Array($0.utf8) }
    }
}
