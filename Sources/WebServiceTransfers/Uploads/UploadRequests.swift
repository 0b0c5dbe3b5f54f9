import Foundation
import SystemCrypto
import WebServiceCore
import WebServiceFields

/// The requests for an upload on the server.
struct UploadRequests: Sendable {
    /// The version of the draft that client and server must agree on.
    static let interopVersion: Int64 = 8

    let work: TaskWork
    let `protocol`: UploadProtocol
    /// The URL of the file.
    let file: URL
    /// The type of the file, unless the request has a field with its type.
    let contentType: String?
    /// The URL of the task's request.
    let url: String

    /// - Throws: `WebServiceError.Code.upload` if the request has no local file as its body,
    ///   compresses its body, or has a method that forbids a body; or an error of the encoding of
    ///   the request.
    init(_ work: TaskWork, _ protocol: UploadProtocol) throws {
        let request = work.request
        guard case .file(let file, let contentType) = request.content.content, !request.parametersBelongInBody else {
            throw WebServiceError(.upload, "the request has no file as its body; set one with setBody(file:)")
        }
        guard !request.options.compressesBody else {
            throw WebServiceError(
                .upload,
                "an upload with a compressed body cannot be continued; compress the file, or set compressesBody to "
                    + "false")
        }
        guard !request.method.forbidsBody else {
            throw WebServiceError(.upload, "a \(request.method) request has no body to upload; use PUT or POST")
        }
        guard file.isFileURL, file.path.utf8.first == UInt8(ascii: "/"), !file.path.utf8.contains(0) else {
            throw WebServiceError(.upload, "the body has a URL that is not a file URL; use URL(fileURLWithPath:)")
        }
        (self.work, self.protocol, self.file, self.contentType) = (work, `protocol`, file, contentType)
        // The file may no longer exist.
        var bodyless = request
        bodyless.content = .data(Data())
        url = try bodyless.encode().url
    }

    /// The request and the file, as stored in the state.
    var listing: UploadState.Listing {
        UploadState.Listing(
            protocol: "\(`protocol`)", method: work.request.method.rawValue, url: url, file: file.path)
    }

    /// The statuses with which a server responds to HEAD and DELETE if it no longer has the upload
    /// (tus 1.0, HEAD).
    var missing: Set<Int> { `protocol` == .tus ? [403, 404, 410] : [404, 410] }

    /// Ends the upload on the server, if there is one, and removes its state.
    func end(_ location: String?, _ file: UploadStateFile) async throws -> (value: Bool, response: Response) {
        guard let location else {
            try file.remove()
            return (false, Response(data: Data(), urlResponse: nil))
        }
        let response = try await work.send(
            try resource(.DELETE, location), accepting: { missing.contains($0.status) })
        try file.remove()
        return (true, response)
    }

    /// Returns the task's request with another method, without a body and parameters, and without
    /// the fields that apply only to the original request: conditions, `Upload-…` fields,
    /// `Idempotency-Key`, and those that describe its body.
    func bare(_ method: Request.Method) -> Request {
        var request = work.request
        request.method = method
        request.content = .none
        request.parameters = nil
        request.headers = request.headers.filtered { field in
            let name = field.name.asciiLowercased()
            return !["content-", "upload-", "if-"].contains { name.hasPrefix($0) }
                && !["repr-digest", "want-repr-digest", "digest", "idempotency-key"].contains(name)
        }
        return request
    }

    /// Returns a request for the upload on the server.
    func resource(_ method: Request.Method, _ location: String) throws -> Request {
        var request = try target([location], from: url, method)
        request.uploadsPart = true
        addVersion(to: &request)
        return request
    }

    /// Returns the absolute URL of the upload that a response contains, or that the caller passes.
    ///
    /// - Parameter base: The URL of that response, or of the request.
    func location(_ values: [String], from base: String) throws -> String {
        guard values.first?.isEmpty == false, let url = try target(values, from: base, .HEAD).url?.absoluteString else {
            throw Self.unusable
        }
        return url
    }

    /// Returns a request for a URL that the server has returned, with the fields that a redirect to
    /// it would retain.
    private func target(_ values: [String], from base: String, _ method: Request.Method) throws -> Request {
        let request = bare(method)
        var policy = request.options.redirectPolicy
        (policy.followsRedirects, policy.maximum) = (true, max(policy.maximum, 1))
        switch policy.decision(for: request, at: base, status: 307, locations: values, followed: 0) {
        case .follow(let next, _): return next
        case .deliver: throw Self.unusable
        case .fail(let error):
            throw WebServiceError(.upload, "the URL of the upload cannot be used: \(error.message)")
        }
    }

    private static let unusable = WebServiceError(
        .upload,
        "the URL of the upload is missing or cannot be used; check the Location field of the response, or the URL "
            + "that is passed as 'at'")

    /// Adds the field that identifies the version of the protocol.
    func addVersion(to request: inout Request) {
        switch `protocol` {
        case .draft: request.headers["Upload-Draft-Interop-Version"] = "\(Self.interopVersion)"
        case .tus: request.headers["Tus-Resumable"] = "1.0.0"
        }
    }

    /// Returns the offset in a response; `nil` if it is absent or malformed.
    func offset(in headers: Headers) -> Int64? {
        `protocol` == .draft ? headers.uploadInteger("Upload-Offset") : headers.tusInteger("Upload-Offset")
    }

    /// Returns the length of the file in a response; `nil` if it is absent or malformed.
    func length(in headers: Headers) -> Int64? {
        `protocol` == .draft ? headers.uploadInteger("Upload-Length") : headers.tusInteger("Upload-Length")
    }
}

extension UploadTransfer {
    /// Returns the request that appends a range of the file.
    func appending(_ range: Range<Int64>, at location: String) async throws -> Request {
        var request = try requests.resource(.PATCH, location)
        request.headers["Upload-Offset"] = "\(range.lowerBound)"
        switch `protocol` {
        case .draft:
            request.headers["Upload-Complete"] = range.upperBound == source.length ? "?1" : "?0"
            request.content = source.body(range, contentType: "application/partial-upload")
        case .tus:
            request.content = source.body(range, contentType: Self.tusContentType)
            if isLengthDeferred { request.headers["Upload-Length"] = "\(source.length)" }
            if let function = state.checksum.flatMap(HashFunction.init) {
                request.headers["Upload-Checksum"] = try function.checksum(of: range, in: source)
            }
        }
        return request
    }

    static let tusContentType = "application/offset+octet-stream"
}

extension HashFunction {
    /// Returns the preferred algorithm among the names that tus uses.
    static func preferred(in names: [String]) -> HashFunction? {
        [.sha256, .sha1, .sha512].first { names.contains($0.rawValue) }
    }

    /// Returns the value of `Upload-Checksum` for a piece.
    func checksum(of range: Range<Int64>, in source: UploadSource) throws -> String {
        let hash = SystemHash(self)
        try source.forEachChunk(range) { chunk in chunk.withUnsafeBytes { hash.update($0) } }
        return "\(rawValue) \(Data(hash.finish()).base64EncodedString())"
    }
}
