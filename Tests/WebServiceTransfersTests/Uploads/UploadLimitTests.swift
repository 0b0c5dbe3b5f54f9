import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
@testable import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The limits of servers, and servers without support.
@Suite("Limits of uploads", .permit)
struct UploadLimitTests {
    @Test("Upload-Limit is a dictionary of integers, and a wrong one is ignored")
    func parsing() {
        let limits = UploadLimits(["Upload-Limit": "max-size=10, min-size=1, max-append-size=5, a=b, max-age=60"])
        #expect(limits?.maximumSize == 10)
        #expect(limits?.minimumSize == 1)
        #expect(limits?.maximumAppend == 5)
        #expect(limits?.minimumAppend == nil)
        #expect(limits?.maximumAge == 60)
        for wrong in ["max-size=a", "max-size=1.5", "max-size=-1", "max-size", "max-size=(1 2)", "max-size=1,,", "="] {
            #expect(UploadLimits(["Upload-Limit": wrong]) == nil, "\(wrong)")
        }
        #expect(UploadLimits([:]) == nil)
    }

    @Test("The size of the pieces obeys the limits of the server")
    func pieces() throws {
        var limits = UploadLimits()
        #expect(try limits.piece(of: 100, preferred: 10) == 10)
        (limits.minimumAppend, limits.maximumAppend) = (20, 30)
        #expect(try limits.piece(of: 100, preferred: 10) == 20)
        #expect(try limits.piece(of: 100, preferred: 25) == 25)
        #expect(try limits.piece(of: 100, preferred: 50) == 30)
        limits.maximumAppend = 10
        #expect(throws: WebServiceError.self) { try limits.piece(of: 100, preferred: 50) }
        limits = UploadLimits()
        limits.maximumAppend = 9
        #expect(throws: WebServiceError.self) { try limits.piece(of: 1_000_000, preferred: 50) }
        #expect(try limits.piece(of: 900_000, preferred: 50) == 9)
    }

    @Test(
        "The limits for pieces are obeyed",
        arguments: ["max-append-size=30000", "min-append-size=120000", "min-append-size=1, max-append-size=99999"])
    func appendSize(_ limit: String) async throws {
        let fixture = try UploadFixture(.draft, 350_000, UploadServer.Settings(limit: limit))
        try await fixture.interrupt(after: 2)
        _ = try await fixture.upload().value
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("A limit that only the creation announced is obeyed by a later upload")
    func storedLimit() async throws {
        let fixture = try UploadFixture(.draft, 350_000, UploadServer.Settings(limit: "max-append-size=30000"))
        try await fixture.interrupt(after: 2)
        fixture.server.set { request, _ in
            request.method == .HEAD
                ? MockResponse(statusCode: 204, headers: ["Upload-Offset": "60000", "Upload-Complete": "?0"]) : nil
        }
        _ = try await fixture.upload().value
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test(
        "A file that exceeds the maximum size is an error before it is sent",
        arguments: UploadProtocol.allCases)
    func maximumSize(_ kind: UploadProtocol) async throws {
        let settings = UploadServer.Settings(limit: "max-size=349999", maximumSize: 349_999)
        let fixture = try UploadFixture(kind, 350_000, settings)
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(fixture.server.log == ["OPTIONS /files/1"])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A file below the minimum size is one request")
    func minimumSize() async throws {
        let fixture = try UploadFixture(.draft, 350_000, UploadServer.Settings(limit: "min-size=350001"))
        _ = try await fixture.upload().value
        #expect(fixture.server.log == ["OPTIONS /files/1", "PUT /files/1"])
        #expect(fixture.server.violations == [])
    }

    @Test(
        "A rejected piece is halved, and one of the limit's size is sent",
        arguments: UploadProtocol.allCases)
    func contentTooLarge(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind, 1_000_000)
        // A proxy that does not know the protocol.
        fixture.server.set { request, _ in
            request.method == .PATCH && request.body.count > 150_000 ? MockResponse(statusCode: 413) : nil
        }
        _ = try await fixture.request.upload(resuming: kind, pieceSize: 400_000).value
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
        #expect(fixture.server.current.requests.map(\.body.count).max() == 400_000)
    }

    @Test("A creation that is too large is sent in pieces of the announced size")
    func creationTooLarge() async throws {
        let fixture = try UploadFixture(.draft, 90_000, UploadServer.Settings(limit: "max-append-size=40000"))
        fixture.server.set { request, number in
            number == 0
                ? MockResponse(statusCode: 413, headers: ["Upload-Limit": "max-append-size=40000"]) : nil
        }
        _ = try await fixture.upload().value
        #expect(fixture.server.violations == [])
        #expect(fixture.server.current.requests.map(\.body.count) == [90_000, 40_000, 40_000, 10_000])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("A server that accepts no piece delivers its status", arguments: UploadProtocol.allCases)
    func neverAccepted(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind, 1_000_000)
        fixture.server.set { request, _ in request.method == .PATCH ? MockResponse(statusCode: 413) : nil }
        let error = await #expect(throws: WebServiceError.self) {
            try await fixture.request.upload(resuming: kind, pieceSize: 400_000).value
        }
        #expect(error?.status == 413)
        #expect(fixture.server.log.count < 16)
    }

    @Test(
        "An upload that has expired starts over without a request for its offset",
        arguments: UploadProtocol.allCases)
    func expired(_ kind: UploadProtocol) async throws {
        let settings = UploadServer.Settings(limit: "max-age=0", expires: "Wed, 25 Jun 2014 16:00:00 GMT")
        let fixture = try UploadFixture(kind, 350_000, settings)
        try await fixture.interrupt(after: 2)
        fixture.server.forgetRequests()
        let file = try await fixture.upload().value
        #expect(file.restarts == 1)
        #expect(!fixture.server.log.contains { $0.hasPrefix("HEAD") })
        #expect(fixture.server.violations == [])
    }

    @Test("An upload that has not expired is continued", arguments: UploadProtocol.allCases)
    func notExpired(_ kind: UploadProtocol) async throws {
        let settings = UploadServer.Settings(limit: "max-age=3600", expires: "Wed, 25 Jun 2070 16:00:00 GMT")
        let fixture = try UploadFixture(kind, 350_000, settings)
        try await fixture.interrupt(after: 2)
        #expect(try await fixture.upload().value.resumedFrom == 200_000)
    }

    // MARK: Servers without support

    @Test(
        "A server without support for the draft receives the whole file in one request",
        arguments: UploadSession.allCases)
    func ordinaryDraft(_ session: UploadSession) async throws {
        let fixture = try UploadFixture(.draft, 350_000, UploadServer.Settings(limit: nil), over: session)
        let file = try await fixture.upload().value
        #expect(fixture.server.log == ["OPTIONS /files/1", "PUT /files/1"])
        #expect(fixture.server.current.ordinary == [fixture.content])
        #expect(file.location == nil)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test(
        "A server of the draft without limits declares the media type of pieces",
        arguments: [
            ("application/partial-upload", true), ("text/a;b=c, Application/Partial-Upload;q=1", true),
            ("application/*, */*", false), ("application/partial-uploads", false), (",;,", false),
        ])
    func acceptPatch(_ value: String, _ isSupported: Bool) async throws {
        let fixture = try UploadFixture(.draft)
        fixture.server.set { request, _ in
            request.method == .OPTIONS ? MockResponse(statusCode: 204, headers: ["Accept-Patch": value]) : nil
        }
        _ = try await fixture.upload().value
        let count = fixture.server.log.filter { $0 == "PATCH /uploads/1" }.count
        #expect(count == (isSupported ? 3 : 0))
        #expect(fixture.server.violations == [])
    }

    @Test(
        "A server without support for tus receives the request of the task",
        arguments: [200, 204, 400, 403, 404, 405, 410, 501])
    func ordinaryTus(_ status: Int) async throws {
        let fixture = try UploadFixture(.tus)
        let received = Collected<ReceivedRequest>()
        fixture.server.set { request, _ in
            received.add(request)
            return MockResponse(statusCode: request.method == .OPTIONS ? status : 201)
        }
        let file = try await fixture.upload().value
        #expect(fixture.server.log == ["OPTIONS /files/1", "PUT /files/1"])
        let isWhole = received.values.last?.body == fixture.content
        #expect(isWhole)
        #expect(received.values.last?.headers["Content-Type"] == "application/x-iso")
        #expect(received.values.last?.headers["Tus-Resumable"] == nil)
        #expect(file.response.status == 201)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test(
        "A whole file is sent again after an error only if its method is idempotent",
        arguments: [(Request.Method.PUT, 2), (.POST, 1)])
    func ordinaryRetry(_ method: Request.Method, _ count: Int) async throws {
        let fixture = try UploadFixture(.draft, 50_000)
        fixture.service.interceptors = [.retry(baseDelay: .zero)]
        fixture.server.set { _, number in number == 0 ? .lost : nil }
        let task = fixture.service.sessionTask(request: fixture.service.request(method, path: "/files/1"))
        let upload = task.setBody(file: fixture.file).upload(resuming: .draft)
        _ = await upload.result
        #expect(fixture.server.log.count == count)
        #expect(try fixture.names == ["a.iso"])
    }
}
