import Foundation
import SystemCrypto
import TestSupport
import WebServiceCore
import WebServiceFields
import WebServiceMocking
import WebServiceServer
@testable import WebServiceTransfers

/// A server of one of the protocols that rejects every violation by the client, and records it.
final class UploadServer: Sendable {
    struct Settings: Sendable {
        /// `Upload-Limit` of the draft; `nil` if the server does not respond to OPTIONS.
        var limit: String? = "min-size=0"
        var extensions = "creation,creation-with-upload,termination,expiration"
        var algorithms: String?
        var maximumSize: Int?
        /// The value of `Upload-Expires`.
        var expires: String?
        /// The server of the upload URLs; `nil` for relative ones.
        var origin: String?
        /// Whether each content must have its digest, and the first one that of the file.
        var verifiesDigests = false
        /// The fields that every request must have.
        var required: [String: String] = [:]
    }

    struct Upload: Sendable {
        var data = Data()
        var length: Int
        var isComplete = false
        /// The fields of the request that created the upload.
        var fields: Headers
    }

    struct State: Sendable {
        var uploads: [String: Upload] = [:]
        var violations: [String] = []
        var requests: [ReceivedRequest] = []
        /// The content of ordinary requests.
        var ordinary: [Data] = []
        var created = 0
        var conflicts = 0
    }

    /// Returns a response in place of the server's, or `nil`. The number counts from 0.
    typealias Fault = @Sendable (_ request: ReceivedRequest, _ number: Int) -> MockResponse?

    private struct Responder {
        var respond: (@Sendable (ReceivedRequest) -> MockResponse)?
    }

    private struct Box {
        var fault: Fault?
        var settings: Settings
    }

    let kind: UploadProtocol
    let server: MockServer
    private let state = Mutex(State())
    private let box: Mutex<Box>

    init(_ kind: UploadProtocol, _ settings: Settings = Settings(), fault: Fault? = nil) throws {
        self.kind = kind
        box = Mutex(Box(fault: fault, settings: settings))
        let responder = Mutex(Responder())
        server = try MockServer { request in
            responder.withLock { $0 }.respond?(request) ?? MockResponse(statusCode: 500)
        }
        responder.withLock { responder in
            responder.respond = { [weak self] request in self?.respond(to: request) ?? MockResponse(statusCode: 500) }
        }
        Permit.atEnd { [server, weak self] in
            server.stop()
            self?.set(nil)
        }
    }

    var current: State { state.withLock { $0 } }
    var violations: [String] { current.violations }
    /// The methods and targets of the requests.
    var log: [String] { current.requests.map { "\($0.method) \($0.path)" } }
    /// The only upload.
    var upload: Upload? { current.uploads.count == 1 ? current.uploads.values.first : nil }

    func set(_ fault: Fault?) { box.withLock { $0.fault = fault } }
    func change(_ path: String, _ change: (inout Upload) -> Void) {
        state.withLock { state in
            guard var upload = state.uploads[path] else { return }
            change(&upload)
            state.uploads[path] = upload
        }
    }
    /// Adds an upload that no client has created.
    ///
    /// - Returns: Its URL.
    func create(_ data: Data, length: Int) throws -> URL {
        let path = state.withLock { state in
            state.created += 1
            state.uploads["/uploads/\(state.created)"] = Upload(data: data, length: length, fields: [:])
            return "/uploads/\(state.created)"
        }
        guard let url = URL(string: server.baseURLString + path) else { throw URLError(.badURL) }
        return url
    }
    func forgetUploads() { state.withLock { $0.uploads = [:] } }
    func forgetRequests() { state.withLock { ($0.requests, $0.violations) = ([], []) } }

    func respond(to request: ReceivedRequest) -> MockResponse {
        let (fault, settings) = box.withLock { ($0.fault, $0.settings) }
        let number = state.withLock { state in
            state.requests.append(request)
            return state.requests.count - 1
        }
        if let response = fault?(request, number) { return response }
        return state.withLock { state in
            var call = Call(request: request, settings: settings)
            for (name, value) in settings.required where request.headers[name] != value {
                call.violations.append("\(name) is '\(request.headers[name] ?? "")'")
            }
            if settings.verifiesDigests { call.checkDigest() }
            var response = kind == .draft ? call.draft(&state) : call.tus(&state)
            if !call.violations.isEmpty {
                state.violations += call.violations.map { "\(request.method) \(request.path): \($0)" }
                response = MockResponse(statusCode: 400, data: Data(call.violations.joined(separator: "\n").utf8))
            }
            return response
        }
    }

    /// One request.
    struct Call {
        let request: ReceivedRequest
        let settings: Settings
        var violations: [String] = []

        var fields: Headers { request.headers }

        mutating func check(_ isValid: Bool, _ violation: String) {
            if !isValid { violations.append(violation) }
        }

        /// Verifies the digest of the content (RFC 9530).
        mutating func checkDigest() {
            let digest = fields.structuredDictionary("Content-Digest")?["sha-256"]?.item?.value.byteSequence
            let expected = request.body.isEmpty ? nil : Data(SHA2.sha256.hash(request.body))
            check(request.body.isEmpty || digest == expected, "no digest of the content, or a wrong one")
            check(fields["Repr-Digest"] == nil || request.method == .PUT, "the digest of the file is sent again")
        }

        func location(_ state: inout State) -> String {
            state.created += 1
            return (settings.origin ?? "") + "/uploads/\(state.created)"
        }

        /// Returns the path of an upload from its URL.
        func path(_ location: String) -> String { URL(string: location)?.path ?? location }
    }
}

// MARK: - Draft

extension UploadServer.Call {
    private var limits: UploadLimits { UploadLimits(["Upload-Limit": settings.limit ?? ""]) ?? UploadLimits() }

    mutating func draft(_ state: inout UploadServer.State) -> MockResponse {
        if request.path.hasPrefix("/uploads/") {
            check(fields["Upload-Draft-Interop-Version"] == "8", "no interop version")
            return draftUpload(&state)
        }
        if request.method == .OPTIONS {
            check(fields["Upload-Complete"] == nil, "OPTIONS has Upload-Complete")
            check(request.body.isEmpty && fields["Content-Type"] == nil, "OPTIONS has content")
            guard let limit = settings.limit else { return MockResponse(statusCode: 405) }
            return MockResponse(statusCode: 204, headers: ["Upload-Limit": limit])
        }
        return draftCreation(&state)
    }

    private mutating func draftCreation(_ state: inout UploadServer.State) -> MockResponse {
        let isComplete = fields.structuredItem("Upload-Complete")?.value.boolean
        let length = fields.structuredItem("Upload-Length")?.value.integer
        check(fields["Upload-Draft-Interop-Version"] == "8", "no interop version")
        check(isComplete != nil, "no Upload-Complete")
        check(length != nil, "no Upload-Length")
        check(fields["Upload-Offset"] == nil, "a creation has Upload-Offset")
        check(fields["Content-Type"] != "application/partial-upload", "a creation is a partial upload")
        check(fields["Content-Length"] == "\(request.body.count)", "no Content-Length")
        check(isComplete != true || Int(length ?? -1) == request.body.count, "the lengths differ")
        checkSize(isComplete == true)
        guard violations.isEmpty, let length, let isComplete else { return MockResponse(statusCode: 400) }
        if let maximum = limits.maximumSize, length > maximum {
            return MockResponse(statusCode: 413, headers: ["Upload-Limit": settings.limit ?? ""])
        }
        if settings.limit == nil, isComplete {
            state.ordinary.append(request.body)
            return MockResponse(statusCode: 200, data: Data("\(request.body.count)".utf8))
        }
        check(settings.limit != nil, "a piece for a server without support")
        let location = location(&state)
        state.uploads[path(location)] = UploadServer.Upload(
            data: request.body, length: Int(length), isComplete: isComplete, fields: fields)
        if isComplete { return completed(request.body.count) }
        return MockResponse(
            statusCode: 201,
            headers: ["Location": location, "Upload-Complete": "?0", "Upload-Limit": settings.limit ?? ""])
    }

    private mutating func checkSize(_ isComplete: Bool) {
        let size = Int64(request.body.count)
        check(size <= limits.maximumAppend ?? .max, "more than max-append-size")
        check(size >= limits.minimumAppend ?? 0 || isComplete || size == 0, "less than min-append-size")
    }

    private func completed(_ count: Int) -> MockResponse {
        MockResponse(statusCode: 200, headers: ["Upload-Complete": "?1"], data: Data("\(count)".utf8))
    }

    private mutating func draftUpload(_ state: inout UploadServer.State) -> MockResponse {
        guard var upload = state.uploads[request.path] else { return MockResponse(statusCode: 404) }
        switch request.method {
        case .HEAD:
            check(fields["Upload-Offset"] == nil && fields["Upload-Complete"] == nil, "HEAD has fields of an upload")
            return MockResponse(
                statusCode: 204,
                headers: [
                    "Upload-Offset": "\(upload.data.count)", "Upload-Complete": upload.isComplete ? "?1" : "?0",
                    "Upload-Length": "\(upload.length)", "Upload-Limit": settings.limit ?? "min-size=0",
                    "Cache-Control": "no-store",
                ])
        case .DELETE:
            state.uploads[request.path] = nil
            return MockResponse(statusCode: 204)
        case .PATCH:
            let isComplete = fields.structuredItem("Upload-Complete")?.value.boolean
            let offset = fields.structuredItem("Upload-Offset")?.value.integer
            check(fields["Content-Type"] == "application/partial-upload", "no partial upload")
            check(isComplete != nil, "no Upload-Complete")
            check(offset != nil, "no Upload-Offset")
            check(fields["Content-Length"] == "\(request.body.count)", "no Content-Length")
            check(!upload.isComplete, "the upload is complete")
            checkSize(isComplete == true)
            if let offset, offset != upload.data.count {
                state.conflicts += 1
                return MockResponse(
                    statusCode: 409, headers: ["Upload-Complete": "?0", "Upload-Offset": "\(upload.data.count)"])
            }
            let count = upload.data.count + request.body.count
            check(count <= upload.length, "more than Upload-Length")
            check(isComplete != true || count == upload.length, "complete before the end")
            guard violations.isEmpty else { return MockResponse(statusCode: 400) }
            upload.data += request.body
            upload.isComplete = isComplete == true
            state.uploads[request.path] = upload
            return upload.isComplete
                ? completed(count) : MockResponse(statusCode: 204, headers: ["Upload-Complete": "?0"])
        default:
            check(false, "the method is not defined")
            return MockResponse(statusCode: 405)
        }
    }
}

// MARK: - tus

extension UploadServer.Call {
    private func has(_ name: String) -> Bool { settings.extensions.split(separator: ",").contains { $0 == name } }

    mutating func tus(_ state: inout UploadServer.State) -> MockResponse {
        var response = tusResponse(&state)
        response.headers["Tus-Resumable"] = "1.0.0"
        return response
    }

    private mutating func tusResponse(_ state: inout UploadServer.State) -> MockResponse {
        if request.method == .OPTIONS {
            check(fields["Tus-Resumable"] == nil, "OPTIONS has Tus-Resumable")
            check(request.body.isEmpty && fields["Content-Type"] == nil, "OPTIONS has content")
            var headers = ["Tus-Version": "1.0.0,0.2.2", "Tus-Extension": settings.extensions]
            if let maximum = settings.maximumSize { headers["Tus-Max-Size"] = "\(maximum)" }
            if let algorithms = settings.algorithms { headers["Tus-Checksum-Algorithm"] = algorithms }
            return MockResponse(statusCode: 204, headers: headers)
        }
        guard fields["Tus-Resumable"] == "1.0.0" else {
            check(false, "no Tus-Resumable")
            return MockResponse(statusCode: 412, headers: ["Tus-Version": "1.0.0"])
        }
        if request.path.hasPrefix("/uploads/") { return tusUpload(&state) }
        check(request.method == .POST, "a creation without POST")
        let length = fields["Upload-Length"].flatMap { Int($0) }
        check(length != nil && length ?? -1 >= 0, "no Upload-Length")
        check(fields["Upload-Offset"] == nil, "a creation has Upload-Offset")
        check(fields["Content-Length"] == "\(request.body.count)", "no Content-Length")
        if !request.body.isEmpty {
            check(has("creation-with-upload"), "a creation has content")
            check(fields["Content-Type"] == "application/offset+octet-stream", "the content has another type")
        }
        guard violations.isEmpty, let length else { return MockResponse(statusCode: 400) }
        if let maximum = settings.maximumSize, length > maximum { return MockResponse(statusCode: 413) }
        check(request.body.count <= length, "more than Upload-Length")
        let location = location(&state)
        state.uploads[path(location)] = UploadServer.Upload(
            data: request.body, length: length, isComplete: request.body.count == length, fields: fields)
        var response = MockResponse(statusCode: 201, headers: ["Location": location])
        response.headers["Upload-Expires"] = settings.expires
        if has("creation-with-upload"), !request.body.isEmpty {
            response.headers["Upload-Offset"] = "\(request.body.count)"
        }
        return response
    }

    private mutating func tusUpload(_ state: inout UploadServer.State) -> MockResponse {
        guard var upload = state.uploads[request.path] else { return MockResponse(statusCode: 404) }
        switch request.method {
        case .HEAD:
            check(fields["Upload-Offset"] == nil, "HEAD has Upload-Offset")
            return MockResponse(
                statusCode: 200,
                headers: [
                    "Upload-Offset": "\(upload.data.count)", "Upload-Length": "\(upload.length)",
                    "Cache-Control": "no-store",
                ])
        case .DELETE:
            check(has("termination"), "no termination")
            state.uploads[request.path] = nil
            return MockResponse(statusCode: 204)
        case .PATCH:
            let offset = fields["Upload-Offset"].flatMap { Int($0) }
            check(fields["Content-Type"] == "application/offset+octet-stream", "the content has another type")
            check(offset != nil, "no Upload-Offset")
            check(fields["Content-Length"] == "\(request.body.count)", "no Content-Length")
            if let offset, offset != upload.data.count {
                state.conflicts += 1
                return MockResponse(statusCode: 409)
            }
            if let checksum = fields["Upload-Checksum"] {
                check(has("checksum"), "no checksum is supported")
                let parts = checksum.split(separator: " ").map(String.init)
                check(parts.count == 2, "the checksum is malformed")
                let name = parts.first ?? ""
                check(settings.algorithms?.split(separator: ",").contains { $0 == name } == true, "no such algorithm")
                if Self.hash(name, request.body) != Data(base64Encoded: parts.last ?? "") {
                    return MockResponse(statusCode: 460)
                }
            } else {
                check(!has("checksum"), "no checksum")
            }
            check(upload.data.count + request.body.count <= upload.length, "more than Upload-Length")
            guard violations.isEmpty else { return MockResponse(statusCode: 400) }
            upload.data += request.body
            upload.isComplete = upload.data.count == upload.length
            state.uploads[request.path] = upload
            var response = MockResponse(statusCode: 204, headers: ["Upload-Offset": "\(upload.data.count)"])
            response.headers["Upload-Expires"] = settings.expires
            return response
        default:
            check(false, "the method is not defined")
            return MockResponse(statusCode: 405)
        }
    }

    private static func hash(_ name: String, _ data: Data) -> Data {
        if name == "sha256" { return Data(SHA2.sha256.hash(data)) }
        let hash = SystemHash(.sha1)
        data.withUnsafeBytes { hash.update($0) }
        return Data(hash.finish())
    }
}
