import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Credentials of uploads whose URL is on the same or another origin.
@Suite("Origins of uploads", .permit)
struct UploadOriginTests {
    private static let secrets = ["Authorization": "Bearer secret", "X-Api-Key": "secret"]

    @Test(
        "The requests for an upload of the same origin have the fields and cookies of the request",
        arguments: UploadProtocol.allCases)
    func sameOrigin(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind, 350_000, UploadServer.Settings(required: Self.secrets))
        fixture.service.interceptors = [.retry(baseDelay: .zero)]
        let pieces = Mutex(0)
        fixture.server.set { request, _ in
            request.method == .PATCH
                && pieces.withLock {
                    $0 += 1; return $0 == 2
                } ? .lost : nil
        }
        _ = try await fixture.request.setHeaders(Self.secrets)
            .upload(resuming: kind, pieceSize: UploadFixture.pieceSize).value
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test(
        "An upload of another origin receives the file without credentials and cookies",
        arguments: UploadProtocol.allCases)
    func otherOrigin(_ kind: UploadProtocol) async throws {
        let main = Mutex<UploadServer?>(nil)
        let received = Collected<ReceivedRequest>()
        let other = try MockServer.forTest { request in
            received.add(request)
            return main.withLock { $0 }?.respond(to: request) ?? MockResponse(statusCode: 500)
        }
        defer { main.withLock { $0 = nil } }
        let fixture = try UploadFixture(
            kind, 350_000, UploadServer.Settings(origin: "http://localhost:\(other.port)"))
        main.withLock { $0 = fixture.server }
        fixture.service.interceptors = [.retry(baseDelay: .zero), .bearer("token")]
        let pieces = Mutex(0)
        fixture.server.set { request, _ in
            request.method == .PATCH
                && pieces.withLock {
                    $0 += 1; return $0 == 2
                } ? .lost : nil
        }
        _ = try await fixture.request.setHeaders(Self.secrets.merging(["Accept-Language": "de"]) { $1 })
            .upload(resuming: kind, pieceSize: UploadFixture.pieceSize).value
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
        let requests = received.values
        #expect(requests.contains { $0.method == .PATCH })
        #expect(requests.contains { $0.method == .HEAD })
        for request in requests {
            #expect(request.headers["Authorization"] == nil)
            #expect(request.headers["X-Api-Key"] == nil)
            #expect(request.headers["Cookie"] == nil)
            #expect(request.headers["Accept-Language"] == "de")
        }
    }

    @Test("An upload that is ended on another origin sends no credentials")
    func ended() async throws {
        let main = Mutex<UploadServer?>(nil)
        let received = Collected<ReceivedRequest>()
        let other = try MockServer.forTest { request in
            received.add(request)
            return main.withLock { $0 }?.respond(to: request) ?? MockResponse(statusCode: 500)
        }
        defer { main.withLock { $0 = nil } }
        let fixture = try UploadFixture(
            .draft, 350_000, UploadServer.Settings(origin: "http://localhost:\(other.port)"))
        main.withLock { $0 = fixture.server }
        try await fixture.interrupt(after: 2)
        received.removeAll()
        #expect(try await fixture.request.setHeaders(Self.secrets).endUpload(resuming: .draft).value)
        #expect(received.values.map(\.method) == [.DELETE])
        #expect(received.values.first?.headers["Authorization"] == nil)
    }

    @Test("A redirect of metadata to another origin is refused, or retains the metadata", arguments: [false, true])
    func redirectedMetadata(_ isPermitted: Bool) async throws {
        let main = Mutex<UploadServer?>(nil)
        let other = try MockServer.forTest { request in
            main.withLock { $0 }?.respond(to: request) ?? MockResponse(statusCode: 500)
        }
        defer { main.withLock { $0 = nil } }
        let fixture = try UploadFixture(.tus, 350_000, UploadServer.Settings(extensions: "creation"))
        main.withLock { $0 = fixture.server }
        let target = "http://localhost:\(other.port)/files/1?again"
        fixture.server.set { request, _ in
            request.method == .POST && request.query == nil
                ? MockResponse(statusCode: 307, headers: ["Location": target]) : nil
        }
        fixture.service.options.redirectPolicy.resendsBodyAcrossOrigins = isPermitted
        let task = fixture.request.upload(
            resuming: .tus, metadata: ["filename": "a.iso"], pieceSize: UploadFixture.pieceSize)
        if isPermitted {
            _ = try await task.value
            #expect(fixture.server.upload?.fields["Upload-Metadata"] == "filename YS5pc28=")
        } else {
            let error = await #expect(throws: WebServiceError.self) { try await task.value }
            #expect(error?.code == .redirectRefused)
            #expect(fixture.server.upload == nil)
        }
        #expect(fixture.server.violations == [])
    }

    @Test(
        "A redirect of a piece to another path is followed with its fields",
        arguments: UploadProtocol.allCases)
    func redirected(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        fixture.server.set { request, _ in
            request.path == "/uploads/1" && request.query == nil
                ? MockResponse(statusCode: 308, headers: ["Location": "/uploads/1?again"]) : nil
        }
        _ = try await fixture.upload().value
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }
}
