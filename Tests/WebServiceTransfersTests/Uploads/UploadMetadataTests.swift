import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
@testable import WebServiceTransfers

/// Metadata of tus, and servers without OPTIONS.
@Suite("Metadata of uploads, and servers without OPTIONS", .permit)
struct UploadMetadataTests {
    @Test("Only the request that creates the upload has the metadata", arguments: UploadSession.allCases)
    func sent(_ session: UploadSession) async throws {
        let fixture = try UploadFixture(.tus, over: session)
        let upload = {
            fixture.request.setHeaders(["Upload-Metadata": "other"]).upload(
                resuming: .tus, metadata: ["filename": "wörld.txt", "empty": "", "a-b": "x"],
                pieceSize: UploadFixture.pieceSize)
        }
        fixture.server.set { _, number in number == 3 ? MockResponse(statusCode: 500) : nil }
        await #expect(throws: WebServiceError.self) { try await upload().value }
        fixture.server.set(nil)
        #expect(try await upload().value.resumedFrom == 200_000)
        #expect(
            fixture.server.current.requests.compactMap { request in
                request.headers["Upload-Metadata"].map { "\(request.method) \($0)" }
            } == ["POST a-b eA==,empty,filename d8O2cmxkLnR4dA=="])
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test(
        "A key that cannot be sent fails before anything is sent",
        arguments: ["", "a b", " a", "a,b", "é", "a\tb", "a\r\nX-Injected: 1", "a\u{0}", "\u{7F}", "a\u{301}"])
    func keys(_ key: String) async throws {
        let fixture = try UploadFixture(.tus)
        let error = await #expect(throws: WebServiceError.self) {
            try await fixture.request.upload(resuming: .tus, metadata: ["filename": "a", key: "b"]).value
        }
        #expect(error?.code == .upload)
        #expect(error?.message.contains("metadata key") == true)
        #expect(error?.message.utf8.allSatisfy { $0 >= 0x20 } == true)
        #expect(fixture.server.log == [])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("Metadata beyond the length of a field, of the draft, or for a known URL, fails before anything is sent")
    func refused() async throws {
        let fixture = try UploadFixture(.tus)
        let long = ["filename": String(repeating: "a", count: Request.maximumHeaderValueLength)]
        let tasks = [
            fixture.request.upload(resuming: .tus, metadata: long),
            fixture.request.upload(resuming: .tus, metadata: [String(repeating: "k", count: 70_000): ""]),
            fixture.request.upload(resuming: .draft, metadata: ["filename": "a"]),
            fixture.request.upload(resuming: .tus, at: URL(string: "/uploads/1"), metadata: ["filename": "a"]),
        ]
        for task in tasks {
            let error = await #expect(throws: WebServiceError.self) { try await task.value }
            #expect(error?.code == .upload)
        }
        #expect(fixture.server.log == [])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A server of the draft receives fields such as Content-Disposition once", arguments: UploadSession.allCases)
    func draftFields(_ session: UploadSession) async throws {
        let fixture = try UploadFixture(.draft, over: session)
        _ = try await fixture.request.setHeaders(["Content-Disposition": "attachment; filename=\"a.iso\""])
            .upload(resuming: .draft, pieceSize: UploadFixture.pieceSize).value
        let requests = fixture.server.current.requests.filter { $0.headers["Content-Disposition"] != nil }
        #expect(requests.map(\.method) == [.PUT])
        #expect(fixture.server.upload?.fields["Content-Type"] == "application/x-iso")
    }

    // MARK: OPTIONS

    @Test("Without OPTIONS, the file is sent in pieces", arguments: UploadTests.combinations)
    func noOptions(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        let fixture = try UploadFixture(kind, over: session)
        let upload = {
            fixture.request.upload(resuming: kind, pieceSize: UploadFixture.pieceSize, sendsOptions: false)
        }
        fixture.server.set { request, number in
            request.method == .OPTIONS || number == 3 ? MockResponse(statusCode: 500) : nil
        }
        await #expect(throws: WebServiceError.self) { try await upload().value }
        #expect(try await upload().value.resumedFrom == (kind == .tus ? 200_000 : 300_000))
        #expect(Set(fixture.server.log.map { $0.prefix(4) }) == [kind == .tus ? "POST" : "PUT ", "PATC", "HEAD"])
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("Without OPTIONS, the pieces of the draft are halved after status 413")
    func reduced() async throws {
        let fixture = try UploadFixture(.draft, 350_000)
        fixture.server.set { request, _ in
            request.body.count > 90_000 || request.method == .OPTIONS
                ? MockResponse(statusCode: 413) : nil
        }
        _ = try await fixture.request.upload(resuming: .draft, sendsOptions: false).value
        #expect(!fixture.server.log.contains { $0.hasPrefix("OPTIONS") })
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test(
        "A server of tus that rejects OPTIONS, and the ordinary request with status 412, receives pieces",
        arguments: UploadSession.allCases, [200, 400, 403, 404, 405, 415, 501])
    func requiresTus(_ session: UploadSession, _ status: Int) async throws {
        let fixture = try UploadFixture(.tus, 350_000, over: session)
        fixture.server.set { request, _ in
            if request.method == .OPTIONS { return MockResponse(statusCode: status) }
            if request.headers["Tus-Resumable"] != nil { return nil }
            return MockResponse(statusCode: 412, headers: ["Tus-Version": "1.0.0"])
        }
        let file = try await fixture.upload().value
        #expect(file.location != nil)
        #expect(
            fixture.server.log.prefix(4)
                == ["OPTIONS /files/1", "PUT /files/1", "POST /files/1", "PATCH /uploads/1"])
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("Status 412 of another version, or again, is an error", arguments: ["0.2.2", "1.0.0"])
    func precondition(_ version: String) async throws {
        let fixture = try UploadFixture(.tus)
        fixture.server.set { _, number in
            MockResponse(statusCode: number == 0 ? 404 : 412, headers: ["Tus-Version": version])
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.status == 412)
        #expect(fixture.server.log.count == (version == "1.0.0" ? 3 : 2))
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("Other errors in response to OPTIONS are errors of the upload", arguments: [401, 429, 500, 503])
    func errors(_ status: Int) async throws {
        let fixture = try UploadFixture(.tus)
        fixture.server.set { _, _ in MockResponse(statusCode: status) }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.status == status)
        #expect(fixture.server.log == ["OPTIONS /files/1"])
    }
}
