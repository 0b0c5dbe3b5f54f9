import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFields
import WebServiceMocking
import WebServiceTransfers

/// Digests of uploads, verified by the server (RFC 9530).
@Suite("Digests of uploads", .permit)
struct UploadDigestTests {
    private static let strict = UploadServer.Settings(verifiesDigests: true)

    @Test(
        "Each piece has its digest, also after an interruption", arguments: UploadTests.combinations)
    func pieces(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        let fixture = try UploadFixture(kind, 350_000, Self.strict, over: session)
        fixture.service.interceptors = [.contentDigest()]
        try await fixture.interrupt(after: 2)
        let file = try await fixture.upload().value
        #expect(file.resumedFrom == 200_000)
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("A file that is sent in one request has its digest", arguments: UploadSession.allCases)
    func whole(_ session: UploadSession) async throws {
        let fixture = try UploadFixture(.draft, 50_000, Self.strict, over: session)
        fixture.service.interceptors = [.contentDigest()]
        _ = try await fixture.upload().value
        #expect(fixture.server.violations == [])
        #expect(fixture.server.log == ["PUT /files/1"])
    }

    @Test("The digests of the file that the caller sets are sent once, and not with a piece")
    func representation() async throws {
        let fixture = try UploadFixture(.draft, 350_000, Self.strict)
        let digest = "sha-256=:\(Data(SHA2.sha256.hash(fixture.content)).base64EncodedString()):"
        fixture.service.interceptors = [.contentDigest()]
        _ = try await fixture.request.setHeaders(["Repr-Digest": digest, "Content-Digest": digest])
            .upload(resuming: .draft, pieceSize: UploadFixture.pieceSize).value
        #expect(fixture.server.violations == [])
        #expect(fixture.server.upload?.fields["Repr-Digest"] == digest)
    }

    @Test("A piece whose digest the server rejects ends the task, and is sent again by the next one")
    func mismatch() async throws {
        let fixture = try UploadFixture(.draft, 350_000, Self.strict)
        fixture.service.interceptors = [.contentDigest(), .retry(baseDelay: .zero)]
        let problem = #"{"type":"https://iana.org/assignments/http-problem-types#digest-mismatching-values"}"#
        fixture.server.set { request, _ in
            guard request.headers["Upload-Offset"] == "200000" else { return nil }
            let fields = ["Content-Type": "application/problem+json", "Upload-Complete": "?0"]
            return MockResponse(statusCode: 400, headers: fields, data: Data(problem.utf8))
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.status == 400)
        #expect(error?.body == Data(problem.utf8))
        #expect(fixture.server.log.filter { $0.hasPrefix("PATCH") }.count == 2)
        fixture.server.set(nil)
        #expect(try await fixture.upload().value.resumedFrom == 200_000)
        let isStored = fixture.isStored
        #expect(isStored)
    }
}
