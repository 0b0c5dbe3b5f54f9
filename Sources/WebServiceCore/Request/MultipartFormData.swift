public import Foundation

/// A body of named parts, as in a form with files: `multipart/form-data` (RFC 7578).
///
/// ```swift
/// var form = MultipartFormData()
/// form.append("Trashboat", name: "name")
/// form.append(file: photo, name: "photo", contentType: "image/jpeg")
/// request.multipart = form
/// ```
/// Parts are sent in the order in which they were appended; repeated names are preserved. Names and
/// file names are sent in UTF-8; only `"`, CR and LF are escaped, as `%22`, `%0D` and `%0A` (HTML,
/// multipart/form-data encoding algorithm). `filename*` is not sent. Contents are sent unchanged,
/// byte for byte. Line breaks are not normalized, not even in names, whereas browsers convert them
/// to CR LF.
///
/// The form is validated when the request is encoded. Encoding throws
/// ``WebServiceError/Code/encoding``, with a message that names the part, in these cases:
/// - A name or a file name contains NUL.
/// - A content type is not `type/subtype` with optional parameters, or a header field has an
///   invalid name or value or a reserved name.
/// - A file is missing, cannot be read, or is not a regular file.
/// - A ``Request/Body`` cannot be a part.
///
/// `CurlSession` reads files in pieces while it sends them and never holds a whole file in memory;
/// for Foundation, see ``Request/multipart``. Unless the length of a sequence is unknown or the
/// body is compressed, the request has an exact `Content-Length`, because the sizes of files are
/// known in advance. If a file has changed since the request was encoded, the exchange fails with
/// ``WebServiceError/Code/encoding``, and the server never receives a complete request.
///
/// The boundary contains 128 random bits that are generated when the form is created. Copies of the
/// form share the boundary, so a request that is sent again has the same boundary.
public struct MultipartFormData: Sendable {
    struct Part: Sendable {
        enum Content: Sendable {
            case bytes(Data)
            case file(URL)
            case stream(StreamedBody)
            case invalid(WebServiceError)
        }

        let name: String
        var fileName: String?
        var contentType: String?
        var headers = Headers()
        let content: Content
    }

    private(set) var parts: [Part] = []

    /// The delimiter between the parts (RFC 2046, section 5.1.1).
    let boundary: String

    /// Creates a form without parts.
    public init() {
        var generator = SystemRandomNumberGenerator()
        self.init(using: &generator)
    }

    /// - Parameter generator: The source of the random bits of the boundary.
    init(using generator: inout some RandomNumberGenerator) {
        let digits = (0..<32).map { _ in String(UInt8.random(in: 0..<16, using: &generator), radix: 16) }
        boundary = "WebService-\(digits.joined())"
    }

    /// The sequences that produce the content of parts.
    var streams: [StreamedBody] {
        parts.compactMap { if case .stream(let stream) = $0.content { stream } else { nil } }
    }

    /// The media type of the body, with the boundary as its parameter.
    ///
    /// A request with this body has this media type unless its `Content-Type` header field is set.
    /// The value of that field must contain the boundary.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// Appends text as a part, which is sent in UTF-8.
    ///
    /// The part has no content type, which means plain text (RFC 7578, section 4.4).
    public mutating func append(_ text: String, name: String) {
        parts.append(Part(name: name, content: .bytes(Data(text.utf8))))
    }

    /// Appends bytes as a part.
    ///
    /// - Parameters:
    ///   - data: The content.
    ///   - name: The name of the part.
    ///   - fileName: The file name. Servers treat a part with a file name as a file.
    ///   - contentType: The media type of the content. Defaults to `application/octet-stream`.
    ///   - headers: Additional header fields of the part. `Content-Disposition`, `Content-Type` and
    ///     `Content-Transfer-Encoding` are rejected.
    public mutating func append(
        _ data: Data, name: String, fileName: String? = nil, contentType: String? = nil, headers: Headers = Headers()
    ) {
        let contentType = contentType ?? ContentType.octetStream
        parts.append(
            Part(name: name, fileName: fileName, contentType: contentType, headers: headers, content: .bytes(data)))
    }

    /// Appends a file. Its content is not read before the request is sent.
    ///
    /// - Parameters:
    ///   - file: A `file:` URL of a regular file or of a symbolic link to one.
    ///   - name: The name of the part.
    ///   - fileName: The file name that is sent. Defaults to the last component of the path.
    ///   - contentType: The media type of the content. Defaults to `application/octet-stream`.
    ///   - headers: Additional header fields of the part. `Content-Disposition`, `Content-Type` and
    ///     `Content-Transfer-Encoding` are rejected.
    public mutating func append(
        file: URL, name: String, fileName: String? = nil, contentType: String? = nil, headers: Headers = Headers()
    ) {
        let (fileName, contentType) = (fileName ?? file.lastPathComponent, contentType ?? ContentType.octetStream)
        parts.append(
            Part(name: name, fileName: fileName, contentType: contentType, headers: headers, content: .file(file)))
    }

    /// Appends a body as a part, with its media type: an encoded value, bytes, a file, or a
    /// sequence that is sent while it produces its bytes.
    ///
    /// ```swift
    /// form.append(.json(order), name: "order")
    /// form.append(.stream(length: nil) { sensor.readings() }, name: "log", fileName: "log.csv")
    /// ```
    /// A sequence follows the rules of ``Request/Body/stream(length:contentType:_:)``: over
    /// `CurlSession`, at most 128 KiB and one element are buffered. If the sequence fails, or
    /// produces more or fewer bytes than its length, the request fails and the server receives no
    /// complete request. If the length of a sequence is unknown, `CurlSession` sends the request
    /// chunked. If a sequence can be iterated over only once, the form is not replayable.
    ///
    /// - Parameters:
    ///   - body: The content. A form, a ``MultipartFormData`` and a closure that provides a whole
    ///     body cannot be parts.
    ///   - name: The name of the part.
    ///   - fileName: The file name. Defaults to `nil`: no file name, even for a file.
    ///   - headers: Additional header fields of the part. `Content-Disposition`, `Content-Type` and
    ///     `Content-Transfer-Encoding` are rejected.
    public mutating func append(
        _ body: Request.Body, name: String, fileName: String? = nil, headers: Headers = Headers()
    ) {
        let content: Part.Content =
            switch body.content {
            case .none: .bytes(Data())
            case .data(let data, _): .bytes(data)
            case .file(let url, _): .file(url)
            case .stream(let stream, _): .stream(stream)
            case .invalid(let error): .invalid(error)
            case .form, .multipart, .provider:
                .invalid(WebServiceError(.encoding, "a part cannot be a form or a closure; pass the encoded bytes"))
            }
        parts.append(
            Part(name: name, fileName: fileName, contentType: body.contentType, headers: headers, content: content))
    }
}

extension MultipartFormData: RedactedReflectable {
    /// A description that is safe to log: the number of parts.
    ///
    /// Names and contents may be secret.
    public var description: String { "multipart/form-data with \(parts.count) part\(parts.count == 1 ? "" : "s")" }
}
