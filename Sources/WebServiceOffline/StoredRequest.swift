import Foundation
import WebServiceCore

/// A request of an outbox in its stored form: a line with the version of the format and a checksum,
/// a line of JSON, and the body.
struct StoredRequest: Sendable {
    struct Head: Codable, Sendable, Equatable {
        var id: UUID
        var entity: String?
        var date: Date
        var method: String
        /// A path below the base URL if possible; otherwise an absolute URL.
        var url: String
        var fields: [Field]
        var hasBody: Bool
        // The following properties are missing in entries of earlier versions.
        var key: String?
        var expirationDate: Date?
        var storesResponse: Bool?
        var file: File?
    }

    /// The copy of a file that is the body; see ``OutboxCopies``.
    struct File: Codable, Sendable, Equatable {
        /// The size in bytes.
        var size: Int
        /// The slot in the name of the copy: 0 or 1.
        var slot: Int
    }

    struct Field: Codable, Sendable, Equatable {
        var name: String
        var value: String
    }

    var head: Head
    var body: Data?
    /// The body to copy before the request is stored.
    var source: BodySource?
    /// The URL of the copy after the request has been stored.
    var file: URL?

    /// Encodes and checks a request.
    ///
    /// The header fields of the service are not stored, but are added when the request is sent.
    ///
    /// - Parameter slot: The slot of the copy if the body contains files. Defaults to 0.
    /// - Throws: `encoding` for a stream, a body provider, or a file that cannot be read;
    ///   `invalidHeader` for a field that may contain a credential; `entryTooLarge` for a body that
    ///   exceeds the maximum; or an error of encoding the request.
    init(
        _ request: Request, of entry: Outbox.Entry, _ service: WebService, _ options: Outbox.Options, slot: Int = 0
    ) throws(WebServiceError) {
        var request = request
        request.options.compressesBody = false
        let isProvided = request.hasBodyProvider
        let encoded = try request.encode()
        guard !isProvided, encoded.stream == nil, !encoded.hasBodyStream else {
            throw WebServiceError(
                .encoding,
                "an outbox cannot store a stream or a body provider; write the bytes to a file, or pass them as data",
                request: request)
        }
        let (size, hasFile) = (encoded.bodyCount, encoded.bodySource != nil)
        guard size <= (hasFile ? options.maximumFileBytes : options.maximumBodyBytes) else {
            throw WebServiceError(
                .entryTooLarge,
                "a body of \(size) bytes exceeds the maximum of the outbox; increase "
                    + (hasFile ? "maximumFileBytes" : "maximumBodyBytes"), request: request)
        }
        // If the values of a field are not exactly those of the service, all values are stored.
        let inherited = Set(service.headers.fields.map { Headers.Name($0.name) })
        let own = Set(
            encoded.headers.fields.map { Headers.Name($0.name) }.filter { name in
                !inherited.contains(name)
                    || encoded.headers.values(for: name) != service.headers.values(for: name).map(\.trimmed)
            })
        var fields: [Field] = []
        for field in encoded.headers where own.contains(Headers.Name(field.name)) {
            let name = Headers.Name(field.name)
            guard
                name == Self.keyName || options.storedFields.contains(name) || !Secrets.mayBeNamed(by: field.name)
            else {
                throw WebServiceError(
                    .invalidHeader,
                    "the header field '\(field.name)' may contain a credential, which an outbox does not store; add it "
                        + "with an interceptor, or add its name to storedFields", request: request)
            }
            fields.append(Field(name: field.name, value: field.value))
        }
        if let type = encoded.contentType { fields.append(Field(name: "Content-Type", value: type)) }
        if encoded.headers[Self.keyName] == nil {
            // The value is a structured field: a string
            // (draft-ietf-httpapi-idempotency-key-header-07).
            fields.append(Field(name: Self.keyName.rawValue, value: "\"\(UUID().uuidString.lowercased())\""))
        }
        head = Head(
            id: entry.id, entity: entry.entity, date: entry.date, method: encoded.method.rawValue,
            url: Self.path(of: encoded.url, below: service), fields: fields, hasBody: encoded.body != nil,
            key: entry.key, expirationDate: entry.expirationDate, storesResponse: entry.storesResponse ? true : nil,
            file: hasFile ? File(size: size, slot: slot) : nil)
        body = encoded.body
        source = encoded.bodySource
    }

    static let keyName: Headers.Name = "Idempotency-Key"

    /// Returns the path of a URL relative to the base URL, or the URL itself if there is no such
    /// path.
    private static func path(of url: String, below service: WebService) -> String {
        guard var base = (try? service.absoluteURL(""))?.absoluteString else { return url }  // there is no base URL
        while base.utf8.last == UInt8(ascii: "/") { base = String(base.dropLast()) }
        guard url.utf8.starts(with: base.utf8) else { return url }
        let path = String(decoding: url.utf8.dropFirst(base.utf8.count), as: UTF8.self)
        let joined = try? service.absoluteURL(path)  // the path is used only if it leads to the same URL
        return joined?.absoluteString == url ? path : url
    }

    /// Returns whether a later request with the same key replaces this one.
    func isReplaced(by later: StoredRequest) -> Bool {
        head.key != nil && (head.key, head.entity) == (later.head.key, later.head.entity)
    }

    /// Returns the request to send, with the current header fields and options of the service.
    func request(for service: WebService) -> Request {
        var request = service.request(Request.Method(rawValue: head.method), path: head.url)
        var names: Set<Headers.Name> = []
        for field in head.fields {
            let name = Headers.Name(field.name)
            if names.insert(name).inserted {
                request.headers[name] = field.value
            } else {
                request.headers.add(field.value, for: name)
            }
        }
        let type = request.headers[.contentType]
        request.content =
            file.map { .file($0, contentType: type) } ?? body.map { .data($0, contentType: type) } ?? .none
        return request
    }
}

extension String {
    /// The value of a header field as it is sent.
    fileprivate var trimmed: String { String(Substring(ASCII.trimmed(utf8))) }
}

// MARK: - Encoding

extension StoredRequest {
    private static let mark = "webservice-outbox 1 "
    /// The signature of a request whose body is a copied file. Earlier versions would send such a
    /// request without a body, so they must not read it.
    private static let fileMark = "webservice-outbox 2 "
    private static let lineFeed = UInt8(ascii: "\n")

    /// Returns the content of the file.
    func encoded() throws -> Data {
        try Self.encode(head, body, mark: head.file == nil ? Self.mark : Self.fileMark)
    }

    /// Decodes the content of a file.
    ///
    /// - Returns: `nil` if the content is damaged or has an unknown version.
    init?(encoded bytes: Data) {
        guard
            let (head, body) = Self.decode(Head.self, from: bytes, mark: Self.mark)
                ?? Self.decode(Head.self, from: bytes, mark: Self.fileMark)
        else { return nil }
        self.head = head
        self.body = head.hasBody ? body : nil
    }

    /// Returns the content of a file: a line with the version and a checksum, a line of JSON, and
    /// the body.
    static func encode(_ head: some Encodable, _ body: Data?, mark: String) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var content = try encoder.encode(head)  // contains no line feed
        content.append(lineFeed)
        if let body { content.append(body) }
        return CheckedContent.encode(content, mark: mark)
    }

    /// Returns the line of JSON and the body of a file, or `nil` if the file is damaged or has an
    /// unknown version.
    static func decode<Head: Decodable>(
        _ type: Head.Type, from bytes: Data, mark: String
    ) -> (head: Head, body: Data)? {
        guard let content = CheckedContent.decode(bytes, mark: mark), let end = content.firstIndex(of: lineFeed),
            let head = try? JSON.decode(type, from: Data(content[..<end]), using: JSONDecoder())  // damaged
        else { return nil }
        return (head, Data(content[(end + 1)...]))
    }
}

extension Outbox.Entry {
    init(_ head: StoredRequest.Head) {
        self.init(
            id: head.id, entity: head.entity, date: head.date, key: head.key,
            expirationDate: head.expirationDate, storesResponse: head.storesResponse ?? false)
    }
}
