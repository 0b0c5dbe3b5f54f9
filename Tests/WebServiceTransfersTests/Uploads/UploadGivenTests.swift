import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
@testable import WebServiceTransfers

/// Uploads whose URL the caller passes.
@Suite("Uploads with a known URL", .permit)
struct UploadGivenTests {
    private func upload(_ fixture: UploadFixture, _ url: URL) -> TypedTask<UploadedFile> {
        fixture.request.upload(resuming: fixture.kind, at: url, pieceSize: UploadFixture.pieceSize)
    }

    @Test("The upload continues at the server's offset without being created", arguments: UploadTests.combinations)
    func continued(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        for count in [0, 150_000] {
            let fixture = try UploadFixture(kind, over: session)
            let url = try fixture.server.create(fixture.content.prefix(count), length: 350_000)
            let file = try await upload(fixture, url).value
            #expect(file.resumedFrom == Int64(count))
            #expect(file.location == url)
            #expect(Set(fixture.server.log) == ["HEAD /uploads/1", "PATCH /uploads/1"])
            #expect(fixture.server.log.first == "HEAD /uploads/1")
            #expect(fixture.server.violations == [])
            let isStored = fixture.isStored
            #expect(isStored)
            #expect(try fixture.names == ["a.iso"])
        }
    }

    @Test("After an interruption, it continues with and without the URL", arguments: UploadProtocol.allCases)
    func interrupted(_ kind: UploadProtocol) async throws {
        for isGiven in [false, true] {
            let fixture = try UploadFixture(kind)
            let url = try fixture.server.create(Data(), length: 350_000)
            fixture.server.set { _, number in number == 2 ? .lost : nil }
            await #expect(throws: URLError.self) { try await upload(fixture, url).value }
            fixture.server.set(nil)
            let listed = try await UploadedFile.Partial.list(in: fixture.folder.url)
            #expect(listed.map(\.location) == [url])
            let file = try await isGiven ? upload(fixture, url).value : fixture.upload().value
            #expect(file.resumedFrom == 100_000)
            #expect(fixture.server.violations == [])
            let isStored = fixture.isStored
            #expect(isStored)
        }
    }

    @Test("Another URL replaces the stored one")
    func replaced() async throws {
        let fixture = try UploadFixture(.tus)
        try await fixture.interrupt(after: 2)
        let url = try fixture.server.create(fixture.content.prefix(50), length: 350_000)
        let file = try await upload(fixture, url).value
        #expect(file.resumedFrom == 50)
        #expect(fixture.server.current.uploads["/uploads/2"]?.isComplete == true)
        #expect(fixture.server.violations == [])
    }

    @Test("A file that has changed since another upload may be uploaded to another URL")
    func replacedFile() async throws {
        let fixture = try UploadFixture(.draft)
        try await fixture.interrupt(after: 2)
        let content = UploadFixture.content(350_000, seed: 2)
        try content.write(to: fixture.file)
        let url = try fixture.server.create(content.prefix(250_000), length: 350_000)
        let file = try await upload(fixture, url).value
        #expect(file.resumedFrom == 250_000)
        let isStored = fixture.server.current.uploads["/uploads/2"]?.data == content
        #expect(isStored)
        #expect(fixture.server.violations == [])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test(
        "An upload that the server does not have is an error, and no other one is created",
        arguments: UploadTests.combinations, [404, 410])
    func missing(_ combination: (UploadProtocol, UploadSession), _ status: Int) async throws {
        let fixture = try UploadFixture(combination.0, over: combination.1)
        fixture.service.interceptors = [.retry(baseDelay: .zero)]
        fixture.server.set { _, _ in MockResponse(statusCode: status) }
        let url = try fixture.server.create(Data(), length: 350_000)
        let error = await #expect(throws: WebServiceError.self) { try await upload(fixture, url).value }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.status == status)
        #expect(fixture.server.log == ["HEAD /uploads/1"])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("An upload that disappears meanwhile is an error, and no other one is created")
    func disappears() async throws {
        let fixture = try UploadFixture(.draft)
        let url = try fixture.server.create(Data(), length: 350_000)
        fixture.server.set { _, number in number == 2 ? MockResponse(statusCode: 404) : nil }
        let error = await #expect(throws: WebServiceError.self) { try await upload(fixture, url).value }
        #expect(error?.status == 404)
        #expect(fixture.server.log.count == 3)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("The server is asked even if the upload has expired")
    func expired() async throws {
        let fixture = try UploadFixture(
            .tus, 350_000, UploadServer.Settings(expires: "Thu, 01 Jan 2026 00:00:00 GMT"))
        let url = try fixture.server.create(Data(), length: 350_000)
        fixture.server.set { _, number in number == 2 ? .lost : nil }
        await #expect(throws: URLError.self) { try await upload(fixture, url).value }
        fixture.server.set(nil)
        let listed = try #require(try await UploadedFile.Partial.list(in: fixture.folder.url).first)
        #expect(try #require(listed.expires) < Date())
        #expect(try await upload(fixture, url).value.resumedFrom == 100_000)
        #expect(fixture.server.violations == [])
    }

    @Test("Status 403 of a server of tus is an error, and the state remains")
    func forbidden() async throws {
        let fixture = try UploadFixture(.tus)
        let url = try fixture.server.create(Data(), length: 350_000)
        fixture.server.set { _, _ in MockResponse(statusCode: 403) }
        let error = await #expect(throws: WebServiceError.self) { try await upload(fixture, url).value }
        #expect(error?.status == 403)
        #expect(try fixture.state != nil)
    }

    @Test("A file that has changed, or an upload of another length, is an error", arguments: [false, true])
    func changed(_ isLonger: Bool) async throws {
        let fixture = try UploadFixture(.tus)
        let url = try fixture.server.create(Data(), length: isLonger ? 350_001 : 350_000)
        if !isLonger {
            fixture.server.set { _, number in number == 2 ? .lost : nil }
            await #expect(throws: URLError.self) { try await upload(fixture, url).value }
            fixture.server.set(nil)
            try (fixture.content.dropLast() + Data("x".utf8)).write(to: fixture.file)
        }
        fixture.server.forgetRequests()
        let error = await #expect(throws: WebServiceError.self) { try await upload(fixture, url).value }
        #expect(error?.code == .upload)
        #expect(fixture.server.log == (isLonger ? ["HEAD /uploads/1"] : []))
        #expect(fixture.server.upload?.isComplete == false)
        // Ending the upload allows another one.
        #expect(try await fixture.request.endUpload(resuming: .tus).value)
        #expect(try await fixture.upload().value.resumedFrom == 0)
    }

    @Test(
        "An offset that is not valid is an error, and the upload is not ended",
        arguments: UploadProtocol.allCases, ["-1", "350001", "9223372036854775808", "1e3", "", "huge"])
    func offsets(_ kind: UploadProtocol, _ offset: String) async throws {
        let fixture = try UploadFixture(kind)
        let value = offset == "huge" ? String(repeating: "9", count: 60_000) : offset
        fixture.server.set { _, _ in
            MockResponse(statusCode: 200, headers: ["Upload-Offset": value, "Upload-Complete": "?0"])
        }
        let url = try fixture.server.create(Data(), length: 350_000)
        let error = await #expect(throws: (any Error).self) { try await upload(fixture, url).value }
        #expect(error != nil)
        #expect(fixture.server.log == ["HEAD /uploads/1"])
    }

    @Test("A URL of another origin receives no credentials", arguments: UploadTests.combinations)
    func origin(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        let other = try UploadServer(kind)
        let fixture = try UploadFixture(kind, over: session)
        fixture.service.interceptors = [.bearer("canary")]
        let url = try other.create(Data(), length: 350_000)
        let place = try #require(URL(string: "http://localhost:\(other.server.port)\(url.path)"))
        _ = try await fixture.request
            .setHeaders(["Authorization": "Bearer canary", "X-Api-Key": "canary", "Accept-Language": "de"])
            .upload(resuming: kind, at: place, pieceSize: UploadFixture.pieceSize).value
        #expect(fixture.server.log == [])
        #expect(other.violations == [])
        #expect(other.upload?.data == fixture.content)
        #expect(other.current.requests.allSatisfy { $0.headers["Accept-Language"] == "de" })
        #expect(
            other.current.requests.allSatisfy {
                $0.headers["Authorization"] == nil && $0.headers["X-Api-Key"] == nil && $0.headers["Cookie"] == nil
            })
    }

    @Test("A URL of the same origin receives the fields of the request", arguments: UploadProtocol.allCases)
    func sameOrigin(_ kind: UploadProtocol) async throws {
        let secrets = ["Authorization": "Bearer canary"]
        let fixture = try UploadFixture(kind, 350_000, UploadServer.Settings(required: secrets))
        _ = try fixture.server.create(Data(), length: 350_000)
        let relative = URL(string: "/uploads/1")
        _ = try await fixture.request.setHeaders(secrets).upload(resuming: kind, at: relative).value
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test(
        "A URL that cannot be used fails before anything is sent, and leaves no state",
        arguments: ["file:///a", "ftp://h/a", "http://user:password@h/a", "http://127.1/a", "data:,"])
    func unusable(_ url: String) async throws {
        let fixture = try UploadFixture(.tus)
        let error = await #expect(throws: WebServiceError.self) {
            try await upload(fixture, try #require(URL(string: url))).value
        }
        #expect(error?.code == .upload)
        #expect(fixture.server.log == [])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("An https request does not upload to an http URL, over any session")
    func downgrade() async throws {
        let mock = MockService(baseURLString: "https://example.com")
        let file = try TemporaryFolder.forTest().file("a", Data("ale".utf8))
        let error = await #expect(throws: WebServiceError.self) {
            try await mock.service.POST("/files").setBody(file: file)
                .upload(resuming: .tus, at: URL(string: "http://example.com/u")).value
        }
        #expect(error?.code == .upload)
        #expect(mock.receivedRequests.isEmpty)
    }

    @Test("Over a mock session, the offset is requested first")
    func mocked() async throws {
        let mock = MockService(baseURLString: "https://example.com")
        mock.on(.HEAD, "/u", MockResponse(statusCode: 200, headers: ["Upload-Offset": "1", "Upload-Length": "3"]))
        mock.on(.PATCH, "/u", MockResponse(statusCode: 204, headers: ["Upload-Offset": "3"]))
        let file = try TemporaryFolder.forTest().file("a", Data("ale".utf8))
        let uploaded = try await mock.service.POST("/files").setBody(file: file)
            .upload(resuming: .tus, at: URL(string: "https://example.com/u")).value
        #expect(uploaded.resumedFrom == 1)
        #expect(mock.receivedRequests.map(\.method) == [.HEAD, .PATCH])
    }

    @Test("A server of tus that does not know the length receives it with the first piece", arguments: [0, 3])
    func deferredLength(_ count: Int) async throws {
        let lengths = Collected<String?>()
        let server = try MockServer.forTest { request in
            if request.method == .HEAD {
                return MockResponse(statusCode: 200, headers: ["Upload-Offset": "0", "Upload-Defer-Length": "1"])
            }
            lengths.add(request.headers["Upload-Length"])
            let offset = (Int(request.headers["Upload-Offset"] ?? "") ?? 0) + request.body.count
            return MockResponse(statusCode: 204, headers: ["Upload-Offset": "\(offset)"])
        }
        let service = WebService(server.baseURLString, session: try UploadSession.best.session())
        let file = try TemporaryFolder.forTest().file("a", Data("ale".utf8).prefix(count))
        let url = try #require(URL(string: server.baseURLString + "/u"))
        _ = try await service.POST("/files").setBody(file: file).upload(resuming: .tus, at: url, pieceSize: 2).value
        #expect(lengths.values == (count == 0 ? ["0"] : ["3", nil]))
    }
}
