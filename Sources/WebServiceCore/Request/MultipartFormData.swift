public import Foundation

/// A body of named parts, as a form with files sends them: `multipart/form-data` (RFC 7578).
///
/// ```swift
/// var form = MultipartFormData()
/// form.append("Trashboat", name: "name")
/// form.append(file: photo, name: "photo", contentType: "image/jpeg")
/// request.multipart = form
/// ```
/// The parts are sent in the order in which they were appended; repeated names are kept. Names and file names are sent in UTF-8, with `"`, CR and LF
/// written as `%22`, `%0D` and `%0A` and nothing else escaped (HTML, multipart/form-data encoding algorithm); there is no `filename*`. Contents are
/// sent as they are, byte for byte. A line break stays what it is, in a name as well, where a form in a browser makes CR LF of it.
///
/// Nothing is checked here. Encoding the request throws ``WebServiceError/Code/encoding``, with a message that names the part, for
/// - a name or a file name that holds NUL,
/// - a content type that is not `type/subtype` with optional parameters, or a header field with an illegal name or value,
/// - a file that is missing, cannot be read, or is a folder or anything else that is no regular file.
///
/// `CurlSession` reads files while it sends them, in pieces, and never holds them whole; for Foundation see ``Request/multipart``. Their sizes are known
/// before, so the message has an exact `Content-Length`. When a file has changed since the request was encoded, the exchange fails with the same error and
/// the server never sees a whole message.
///
/// The boundary is made of 128 random bits when the value is made, and copies share it: when the same request is sent again, the same bytes are sent.
public struct MultipartFormData: Sendable {
    struct Part: Sendable {
        enum Content: Sendable {
            case bytes(Data)
            case file(URL)
        }

        let name: String
        var fileName: String?
        var contentType: String?
        var headers = Headers()
        let content: Content
    }

    private(set) var parts: [Part] = []

    /// What stands between the parts (RFC 2046, section 5.1.1).
    let boundary: String

    /// Makes a form without parts.
    public init() {
        var generator = SystemRandomNumberGenerator()
        self.init(using: &generator)
    }

    /// - Parameter generator: Gives the bits of the boundary.
    init(using generator: inout some RandomNumberGenerator) {
        let digits = (0..<32).map { _ in String(UInt8.random(in: 0..<16, using: &generator), radix: 16) }
        boundary = "WebService-\(digits.joined())"
    }

    /// The media type of the body, with the boundary as its parameter. A request with this body has it unless you set the header field; what is set there
    /// has to hold the boundary.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// Appends a text. It is sent in UTF-8 and without a content type, which means text (RFC 7578, section 4.4).
    public mutating func append(_ text: String, name: String) {
        parts.append(Part(name: name, content: .bytes(Data(text.utf8))))
    }

    /// Appends bytes.
    ///
    /// - Parameters:
    ///   - data: The content.
    ///   - name: The name of the part.
    ///   - fileName: Where it is given, servers take the part for a file.
    ///   - contentType: The media type of the content; `nil` means `application/octet-stream`.
    ///   - headers: More header fields of the part. `Content-Disposition`, `Content-Type` and `Content-Transfer-Encoding` are refused.
    public mutating func append(
        _ data: Data, name: String, fileName: String? = nil, contentType: String? = nil, headers: Headers = Headers()
    ) {
        let contentType = contentType ?? ContentType.octetStream
        parts.append(Part(name: name, fileName: fileName, contentType: contentType, headers: headers, content: .bytes(data)))
    }

    /// Appends a file. Nothing is read before the request is sent.
    ///
    /// - Parameters:
    ///   - file: A `file:` URL of a regular file, or of a link to one.
    ///   - name: The name of the part.
    ///   - fileName: What the server is told; `nil` means the last component of the path.
    ///   - contentType: The media type of the content; `nil` means `application/octet-stream`.
    ///   - headers: More header fields of the part. `Content-Disposition`, `Content-Type` and `Content-Transfer-Encoding` are refused.
    public mutating func append(
        file: URL, name: String, fileName: String? = nil, contentType: String? = nil, headers: Headers = Headers()
    ) {
        let (fileName, contentType) = (fileName ?? file.lastPathComponent, contentType ?? ContentType.octetStream)
        parts.append(Part(name: name, fileName: fileName, contentType: contentType, headers: headers, content: .file(file)))
    }
}

extension MultipartFormData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How many parts there are: safe to log, because names and contents may be secret.
    public var description: String { "multipart/form-data with \(parts.count) part\(parts.count == 1 ? "" : "s")" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What `dump` shows: the same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["form": description], displayStyle: .struct) }
}
