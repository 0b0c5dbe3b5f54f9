import Foundation
import WebServiceCore
import WebServiceMocking

/// The parts of an HTTP archive (HAR 1.2) that a cassette needs.
struct CassetteArchive: Decodable {
    struct Log: Decodable {
        let entries: [Entry]
    }

    struct Entry: Decodable {
        let request: Message
        let response: Message
    }

    /// A request or a response.
    struct Message: Decodable {
        let method: String?
        let url: String?
        let status: Int?
        let headers: [Field]?
        let postData: Content?
        let content: Content?

        var fields: Headers {
            // Browsers join repeated fields with line feeds, and include the HTTP/2 pseudo-header
            // fields, whose names begin with a colon.
            Headers(
                (headers ?? []).filter { !$0.name.hasPrefix(":") }.flatMap { field in
                    field.value.split(separator: "\n", omittingEmptySubsequences: false).map {
                        (field.name, String($0))
                    }
                })
        }
    }

    struct Field: Decodable {
        let name: String
        let value: String
    }

    struct Parameter: Decodable {
        let name: String
        let value: String?
    }

    struct Content: Decodable {
        let size: Double?
        let mimeType: String?
        let text: String?
        let encoding: String?
        let params: [Parameter]?
    }

    let log: Log

    /// The maximum size of a file.
    static let maximumBytes = 128 << 20

    /// Reads an archive file.
    ///
    /// - Throws: `WebServiceError` with the code `cassette`.
    init(contentsOf file: URL) throws {
        let name = file.lastPathComponent
        let data: Data
        do {
            let size = try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
            guard size <= Self.maximumBytes else {
                throw WebServiceError(
                    .cassette,
                    "the archive \(name) has \(size) bytes, but at most \(Self.maximumBytes) are supported; export "
                        + "fewer requests")
            }
            data = try Data(contentsOf: file)
        } catch let error as WebServiceError {
            throw error
        } catch {
            throw WebServiceError(
                .cassette, "the archive \(name) could not be read; check its path and permissions", underlying: error)
        }
        do { self = try JSON.decode(CassetteArchive.self, from: data) } catch {
            throw WebServiceError(
                .cassette, "the archive \(name) is damaged: \(error); export the archive again", underlying: error)
        }
    }
}

extension CassetteArchive.Entry {
    /// Returns the request, or `nil` if it is not an HTTP request.
    ///
    /// - Throws: A description of the missing or invalid part.
    func received() throws(CassetteArchive.Damage) -> ReceivedRequest? {
        guard let method = request.method, let url = request.url else {
            throw .init("has no method or URL; export the archive again, or remove the entry")
        }
        guard ASCII.isToken(method.utf8) else {
            throw .init("has an invalid method; export the archive again, or remove the entry")
        }
        let scheme = url.prefix { $0 != ":" }.asciiLowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        var fields = request.fields
        // Sessions add these fields after the cassette has recorded a request, so they are removed.
        for name in ["Host", "Content-Length", "Connection", "Transfer-Encoding"] { fields.remove(Headers.Name(name)) }
        let (origin, target) = url.originAndTarget
        let head = RequestHead(method: Request.Method(rawValue: method), target: target, headers: fields)
        return ReceivedRequest(head: head, body: try requestBody(), origin: origin)
    }

    private func requestBody() throws(CassetteArchive.Damage) -> Data {
        guard let content = request.postData else { return Data() }
        if content.text?.isEmpty ?? true, let parameters = content.params, !parameters.isEmpty {
            guard MediaType.essence(content.mimeType ?? "") == "application/x-www-form-urlencoded" else {
                throw .init("has no text for its request body; export the archive with content, or remove the entry")
            }
            return Data(parameters.map { "\($0.name)=\($0.value ?? "")" }.joined(separator: "&").utf8)
        }
        return try content.data()
    }

    /// Returns the response, or `nil` if there was none.
    ///
    /// - Throws: A description of the missing or invalid part.
    func received(url: String) throws(CassetteArchive.Damage) -> CassetteRecorder.Result.Response? {
        guard let status = response.status, status != 0 else { return nil }
        var fields = response.fields
        // The bodies in an archive are already decoded.
        let isEncoded = fields["Content-Encoding"] != nil
        for name in ["Content-Encoding", "Transfer-Encoding"] { fields.remove(Headers.Name(name)) }
        if isEncoded { fields.remove(.contentLength) }
        let body = try response.content?.data() ?? Data()
        var message = Cassette.Message(status: status)
        message.set(fields, Data())
        guard let head = message.head(url: url) else {
            throw .init("has an invalid status or header field; export the archive again, or exclude the entry")
        }
        let size = response.content?.size ?? 0
        guard size <= 0 || response.content?.text != nil else {
            throw .init("has no content for its response; export the archive with content, or exclude the entry")
        }
        return .init(head: head, length: Int64(body.count), body: body)
    }
}

extension CassetteArchive.Content {
    /// Returns the bytes of the body, encoded in the charset that its media type specifies.
    fileprivate func data() throws(CassetteArchive.Damage) -> Data {
        guard let text, !text.isEmpty else { return Data() }
        switch encoding?.asciiLowercased() {
        case nil, "":
            let charset = mimeType.flatMap { MediaType.parameter("charset", of: $0, quotes: ["\"", "'"]) }
                .flatMap { Charset.encoding(named: $0) }
            return charset.flatMap { text.data(using: $0) } ?? Data(text.utf8)
        case "base64":
            guard let data = Data(base64Encoded: text, options: .ignoreUnknownCharacters) else {
                throw .init("has a body that is not Base64; export the archive again, or remove the entry")
            }
            return data
        default: throw .init("has a body with an unknown encoding; export it as text or Base64, or remove the entry")
        }
    }
}

extension CassetteArchive {
    /// The reason why an entry cannot be used.
    struct Damage: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }
}
