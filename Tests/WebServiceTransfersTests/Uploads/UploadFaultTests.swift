import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Uploads to servers that forget uploads, reject pieces, or return wrong offsets.
@Suite("Uploads to faulty servers", .permit)
struct UploadFaultTests {
    @Test(
        "An upload that the server no longer has starts over",
        arguments: UploadProtocol.allCases, [404, 410])
    func forgotten(_ kind: UploadProtocol, _ status: Int) async throws {
        let fixture = try UploadFixture(kind)
        try await fixture.interrupt(after: 2)
        fixture.server.forgetUploads()
        fixture.server.set { request, _ in
            request.method == .HEAD ? MockResponse(statusCode: status) : nil
        }
        let file = try await fixture.upload().value
        #expect(file.restarts == 1)
        #expect(file.resumedFrom == 0)
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("Status 403 means that a server of tus no longer has the upload")
    func forbidden() async throws {
        let fixture = try UploadFixture(.tus)
        try await fixture.interrupt(after: 2)
        fixture.server.forgetUploads()
        fixture.server.set { request, _ in request.method == .HEAD ? MockResponse(statusCode: 403) : nil }
        let file = try await fixture.upload().value
        #expect(file.restarts == 1)
        #expect(file.resumedFrom == 0)
        #expect(fixture.isStored)

        try await fixture.interrupt(after: 2)
        fixture.server.set { request, _ in request.method == .DELETE ? MockResponse(statusCode: 403) : nil }
        #expect(try await fixture.request.endUpload(resuming: .tus).value)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("Status 403 of a piece starts an upload of tus over if the server no longer has it")
    func forbiddenPiece() async throws {
        let fixture = try UploadFixture(.tus)
        let pieces = Mutex(0)
        fixture.server.set { [weak server = fixture.server] request, _ in
            if request.method == .HEAD { return MockResponse(statusCode: 403) }
            guard request.method == .PATCH,
                pieces.withLock({
                    $0 += 1; return $0 == 2
                })
            else { return nil }
            server?.forgetUploads()
            return MockResponse(statusCode: 403)
        }
        let file = try await fixture.upload().value
        #expect(file.restarts == 1)
        #expect(fixture.server.violations == [])
        #expect(fixture.isStored)
    }

    @Test("Status 403 of the last piece is an error, even if a server of tus has stored the piece")
    func forbiddenEnd() async throws {
        let fixture = try UploadFixture(.tus)
        fixture.server.set { [weak server = fixture.server, count = fixture.content.count] request, _ in
            let offset = request.headers["Upload-Offset"].flatMap { Int($0) }
            guard let offset, request.method == .PATCH, offset + request.body.count == count else { return nil }
            server?.change(request.path) { $0.data += request.body }
            return MockResponse(statusCode: 403)
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.status == 403)
        #expect(try fixture.state != nil)
    }

    @Test("Status 403 of a piece is passed to the error mapper")
    func mappedForbidden() async throws {
        struct Refusal: Error {}
        let fixture = try UploadFixture(.tus)
        fixture.server.set { request, _ in request.method == .PATCH ? MockResponse(statusCode: 403) : nil }
        fixture.service.errorMapper = .closure { $0.status == 403 ? Refusal() : nil }
        await #expect(throws: Refusal.self) { try await fixture.upload().value }
    }

    @Test("Status 403 of a server of the draft is an error, and the state remains")
    func forbiddenDraft() async throws {
        let fixture = try UploadFixture(.draft)
        try await fixture.interrupt(after: 2)
        fixture.server.set { request, _ in request.method == .HEAD ? MockResponse(statusCode: 403) : nil }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.status == 403)
        #expect(try fixture.state != nil)
    }

    @Test(
        "An upload that the server has locked is continued by a retry policy",
        arguments: UploadProtocol.allCases, [Request.Method.HEAD, .PATCH])
    func locked(_ kind: UploadProtocol, _ method: Request.Method) async throws {
        let fixture = try UploadFixture(kind)
        try await fixture.interrupt(after: 2)
        fixture.server.forgetRequests()
        let rejected = Mutex(0)
        fixture.server.set { request, _ in
            guard request.method == method,
                rejected.withLock({
                    $0 += 1; return $0 <= 2
                })
            else { return nil }
            return MockResponse(statusCode: 423)
        }
        fixture.service.interceptors = [.retry(maximumAttempts: 4, baseDelay: .zero)]
        let file = try await fixture.upload().value
        #expect(file.resumedFrom == 200_000)
        #expect(file.restarts == 0)
        #expect(fixture.isStored)
    }

    @Test("Without a retry policy, status 423 is the error, and the state remains")
    func lockedWithoutPolicy() async throws {
        let fixture = try UploadFixture(.tus)
        try await fixture.interrupt(after: 2)
        fixture.server.set { request, _ in request.method == .HEAD ? MockResponse(statusCode: 423) : nil }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.status == 423)
        fixture.server.set(nil)
        #expect(try await fixture.upload().value.resumedFrom == 200_000)
    }

    @Test(
        "A server that forgets every upload ends the task after 3 restarts",
        arguments: UploadProtocol.allCases)
    func alwaysForgotten(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        fixture.server.set { request, _ in request.method == .PATCH ? MockResponse(statusCode: 404) : nil }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(fixture.server.current.created == 4)
    }

    @Test("A conflict asks for the offset again", arguments: UploadProtocol.allCases)
    func conflict(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        let server = fixture.server
        let isDone = Mutex(false)
        server.set { request, _ in
            guard request.method == .PATCH,
                isDone.withLock({ done in
                    defer { done = true }; return !done
                })
            else { return nil }
            // A proxy sent the piece twice.
            server.change(request.path) { $0.data += fixture.content[100_000..<150_000] }
            return nil
        }
        _ = try await fixture.upload().value
        #expect(server.current.conflicts == 1)
        #expect(server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test(
        "A server that reduces the pieces by one byte each time receives a bounded number of requests"
    )
    func slowReduction() async throws {
        let fixture = try UploadFixture(.draft)
        fixture.server.set { request, _ in
            guard request.method == .PATCH else { return nil }
            let limit = "max-append-size=\(request.body.count - 1)"
            return MockResponse(statusCode: 413, headers: ["Upload-Limit": limit])
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(fixture.server.log.filter { $0.hasPrefix("PATCH") }.count == 8)
    }

    @Test("A server that completes an upload of the draft early is an error")
    func earlyCompletion() async throws {
        let fixture = try UploadFixture(.draft)
        fixture.server.set { request, _ in
            request.method == .PATCH ? MockResponse(statusCode: 200, headers: ["Upload-Complete": "?1"]) : nil
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.message.contains("before it had the whole file") == true)
        #expect(try fixture.state == nil)
    }

    @Test("The largest size of a piece does not trap", arguments: UploadProtocol.allCases)
    func largestPiece(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        try await fixture.interrupt(after: 2)
        let file = try await fixture.request.upload(resuming: kind, pieceSize: .max).value
        #expect(file.resumedFrom > 0)
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test(
        "Conflicts without progress end the upload after 8 requests",
        arguments: UploadProtocol.allCases)
    func conflicts(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        fixture.server.set { request, _ in request.method == .PATCH ? MockResponse(statusCode: 409) : nil }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(fixture.server.log.filter { $0.hasPrefix("PATCH") }.count == 8)
        #expect(fixture.server.log.filter { $0.hasPrefix("HEAD") }.count == 7)
    }

    @Test(
        "An offset that is absent, malformed, beyond the end or below an earlier one is an error",
        arguments: UploadProtocol.allCases, [nil, "", "-1", "1.5", "350001", "99999", "999999999999999999999", "x"])
    func wrongOffset(_ kind: UploadProtocol, _ offset: String?) async throws {
        let fixture = try UploadFixture(kind)
        fixture.service.interceptors = [.retry(baseDelay: .zero)]
        let pieces = Mutex(0)
        fixture.server.set { request, _ in
            if request.method == .PATCH {
                return pieces.withLock {
                    $0 += 1; return $0 == 2 ? .lost : nil
                }
            }
            guard request.method == .HEAD else { return nil }
            var response = MockResponse(statusCode: 200, headers: ["Upload-Complete": "?0", "Tus-Resumable": "1.0.0"])
            response.headers["Upload-Offset"] = offset
            return response
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(fixture.server.log.filter { $0.hasPrefix("HEAD") }.count == 1)
        #expect(fixture.server.log.filter { $0.hasPrefix("PATCH") }.count == 2)
    }

    @Test(
        "An offset after a piece of tus that is not within it is an error",
        arguments: [nil, "99999", "200001", "x"])
    func wrongOffsetAfterPiece(_ offset: String?) async throws {
        let fixture = try UploadFixture(.tus)
        fixture.server.set { request, _ in
            guard request.method == .PATCH else { return nil }
            var response = MockResponse(statusCode: 204)
            response.headers["Upload-Offset"] = offset
            return response
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(fixture.server.log.filter { $0.hasPrefix("PATCH") }.count == 1)
    }

    @Test(
        "An upload that cannot be continued, by its offset or its limits, is ended on the server",
        arguments: [
            ["Upload-Offset": "350001", "Upload-Complete": "?0"],
            ["Upload-Offset": "200000", "Upload-Complete": "?0", "Upload-Limit": "max-size=349999"],
        ], [204, 405])
    func unusable(_ headers: [String: String], _ status: Int) async throws {
        let fixture = try UploadFixture(.draft)
        try await fixture.interrupt(after: 2)
        fixture.server.forgetRequests()
        fixture.server.set { request, _ in
            let response = MockResponse(statusCode: request.method == .HEAD ? 204 : status, headers: headers)
            return [.HEAD, .DELETE].contains(request.method) ? response : nil
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(fixture.server.log == ["HEAD /uploads/1", "DELETE /uploads/1"])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A server that stores a part of each piece receives the rest")
    func shortPieces() async throws {
        let fixture = try UploadFixture(.tus)
        let server = fixture.server
        server.set { request, _ in
            guard request.method == .PATCH, request.body.count > 40_000 else { return nil }
            server.change(request.path) { $0.data += request.body.prefix(40_000) }
            let count = server.current.uploads[request.path]?.data.count ?? 0
            return MockResponse(
                statusCode: 204, headers: ["Upload-Offset": "\(count)", "Tus-Resumable": "1.0.0"])
        }
        _ = try await fixture.upload().value
        #expect(server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("A server that stores one byte of each piece ends the upload after 8 requests")
    func noProgress() async throws {
        let fixture = try UploadFixture(.tus)
        let server = fixture.server
        server.set { request, _ in
            guard request.method == .PATCH else { return nil }
            server.change(request.path) { $0.data += request.body.prefix(1) }
            let count = server.current.uploads[request.path]?.data.count ?? 0
            return MockResponse(statusCode: 204, headers: ["Upload-Offset": "\(count)", "Tus-Resumable": "1.0.0"])
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(server.log.filter { $0.hasPrefix("PATCH") }.count == 8)
    }

    @Test("A server of the draft that never completes the upload ends it")
    func neverComplete() async throws {
        let fixture = try UploadFixture(.draft)
        let server = fixture.server
        server.set { request, _ in
            guard request.method == .PATCH, request.headers["Upload-Complete"] == "?1" else { return nil }
            server.change(request.path) { $0.data = fixture.content }
            return MockResponse(statusCode: 204)
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(server.log.count < 30)
    }

    @Test("An upload of another length on the server starts over", arguments: UploadProtocol.allCases)
    func otherLength(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        try await fixture.interrupt(after: 2)
        fixture.server.change("/uploads/1") { $0.length = 7 }
        let file = try await fixture.upload().value
        #expect(file.restarts == 1)
        #expect(fixture.server.violations == [])
        #expect(fixture.server.current.uploads["/uploads/2"]?.data == fixture.content)
    }

    @Test(
        "A server that rejects the whole file removes the state, and its error is delivered once",
        arguments: [422, 503])
    func rejected(_ status: Int) async throws {
        let fixture = try UploadFixture(.draft)
        fixture.service.interceptors = [.retry(baseDelay: .zero)]
        fixture.server.set { request, _ in
            guard request.method == .PATCH else { return nil }
            return MockResponse(statusCode: status, headers: ["Upload-Complete": "?1"], data: Data("not an image".utf8))
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.response?.status == status)
        #expect(fixture.server.log.filter { $0.hasPrefix("PATCH") }.count == 1)
        #expect(error?.body == Data("not an image".utf8))
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("Another status is delivered, and the state remains", arguments: UploadProtocol.allCases)
    func forbidden(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        fixture.server.set { request, _ in request.method == .PATCH ? MockResponse(statusCode: 403) : nil }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.status == 403)
        #expect(try fixture.state != nil)
        fixture.server.set(nil)
        _ = try await fixture.upload().value
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test(
        "A created upload without a usable URL is an error", arguments: UploadProtocol.allCases,
        [nil, "", "ftp://example.com/u", "http://user@example.com/u", "http://[/", "file:///etc/passwd"])
    func noLocation(_ kind: UploadProtocol, _ location: String?) async throws {
        let fixture = try UploadFixture(kind)
        fixture.server.set { request, _ in
            guard request.method == .PUT || request.method == .POST else { return nil }
            var response = MockResponse(statusCode: 201, headers: ["Tus-Resumable": "1.0.0", "Upload-Complete": "?0"])
            response.headers["Location"] = location
            return response
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(fixture.server.log.count == 2)
    }

    @Test(
        "A checksum that does not match sends the piece again, at most 8 times",
        arguments: [1, 100])
    func checksumMismatch(_ count: Int) async throws {
        let settings = UploadServer.Settings(extensions: "creation,checksum", algorithms: "md5,sha1,crc32")
        let fixture = try UploadFixture(.tus, 350_000, settings)
        let mismatches = Mutex(0)
        fixture.server.set { request, _ in
            guard request.method == .PATCH,
                mismatches.withLock({
                    $0 += 1; return $0 <= count
                })
            else { return nil }
            return MockResponse(statusCode: 460)
        }
        if count > 8 {
            let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
            #expect(error?.code == .upload)
            #expect(fixture.server.log.filter { $0.hasPrefix("PATCH") }.count == 8)
        } else {
            _ = try await fixture.upload().value
            let isStored = fixture.isStored
            #expect(isStored)
        }
        #expect(fixture.server.violations == [])
    }

    @Test(
        "Each piece of tus has a checksum of an algorithm that the server lists",
        arguments: ["md5,sha1,crc32", "sha256", "sha1,sha256"])
    func checksum(_ algorithms: String) async throws {
        let settings = UploadServer.Settings(
            extensions: "creation,creation-with-upload,checksum", algorithms: algorithms)
        let fixture = try UploadFixture(.tus, 350_000, settings)
        try await fixture.interrupt(after: 2)
        _ = try await fixture.upload().value
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("A server that lists only unknown algorithms receives no checksum")
    func unknownChecksum() async throws {
        let fixture = try UploadFixture(
            .tus, 350_000, UploadServer.Settings(extensions: "creation", algorithms: "crc32"))
        _ = try await fixture.upload().value
        #expect(fixture.server.violations == [])
        #expect(fixture.server.current.requests.allSatisfy { $0.headers["Upload-Checksum"] == nil })
    }
}
