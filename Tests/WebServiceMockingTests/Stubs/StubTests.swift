import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The declarations of stubs, over a session and over a server.
@Suite(.permit) struct StubTests {
    private let session = MockSession()

    enum Kind: CaseIterable {
        case session, server
    }

    /// A responder and a service that sends its requests to it.
    struct Setting {
        let stubs: any StubResponder
        let service: WebService

        init(_ kind: Kind) throws {
            switch kind {
            case .session:
                let session = MockSession()
                service = WebService(baseURLString: "http://a.test")
                service.session = session
                stubs = session
            case .server:
                let server = try MockServer()
                service = WebService(baseURLString: server.baseURLString)
                service.session = plainSession
                stubs = server
            }
        }

        func text(_ path: String) async -> String {
            do {
                return try await service.GET(path).string().value
            } catch {
                return (error as? WebServiceError).map { "\($0.code)" } ?? "\(type(of: error))"
            }
        }
    }

    @Test("The last stub that matches responds, and placeholders are passed to its closure", arguments: Kind.allCases)
    func precedence(kind: Kind) async throws {
        let setting = try Setting(kind)
        setting.stubs.on(.GET, "/**", .text("any"))
        let stub = setting.stubs.on(.GET, "/users/{id}/beers/{beer}") { request in
            .text("\(request.pathParameters["id"] ?? "") drinks \(request.pathParameters["beer"] ?? "")")
        }
        setting.stubs.on(.GET, "/users/7/beers/none", .text("none"))
        #expect(await setting.text("/users/ann%20lee/beers/p%C3%A4le%2Fale") == "ann lee drinks päle/ale")
        #expect(await setting.text("/users/7/beers/none") == "none")
        #expect(await setting.text("/users/7/beers") == "any")
        #expect(stub.callCount == 1)
        #expect(
            setting.stubs.receivedRequests.map(\.pathParameters) == [["id": "ann lee", "beer": "päle/ale"], [:], [:]])
        try setting.stubs.verify()
    }

    @Test("The responses of a list are used one after another, and the last one is repeated", arguments: Kind.allCases)
    func sequence(kind: Kind) async throws {
        let setting = try Setting(kind)
        setting.stubs.on(.GET, "/a", [.text("one"), .text("two").header("X-Brew", "ale"), .text("three")])
        setting.stubs.on(.GET, "/empty", [])
        var texts: [String] = []
        for _ in 0..<4 { texts.append(await setting.text("/a")) }
        #expect(texts == ["one", "two", "three", "three"])
        #expect(await setting.text("/empty") == "unacceptableStatus")
    }

    @Test("A stub with a number of calls leaves further requests to the stubs before it", arguments: Kind.allCases)
    func times(kind: Kind) async throws {
        let setting = try Setting(kind)
        setting.stubs.on(.GET, "/a", .text("later"))
        let stub = setting.stubs.on(.GET, "/a", .text("first")).times(2)
        var texts: [String] = []
        for _ in 0..<4 { texts.append(await setting.text("/a")) }
        #expect(texts == ["first", "first", "later", "later"])
        #expect(stub.callCount == 2)
        setting.stubs.on(.GET, "/never", .text("never")).times(-1)
        #expect(await setting.text("/never") == (kind == .session ? "noStub" : "unacceptableStatus"))
    }

    @Test("Two hundred concurrent requests share the calls of a limited stub exactly", arguments: Kind.allCases)
    func concurrentTimes(kind: Kind) async throws {
        let setting = try Setting(kind)
        let count = kind == .session ? 200 : 20
        setting.stubs.on(.GET, "/a", .text("later"))
        setting.stubs.on(.GET, "/a", .text("first")).times(count / 2)
        let first = await withTaskGroup(of: String.self) { group in
            for _ in 0..<count { group.addTask { await setting.text("/a") } }
            return await group.reduce(0) { $0 + ($1 == "first" ? 1 : 0) }
        }
        #expect(first == count / 2)
        try setting.stubs.verify()
    }

    @Test("Requests have the same parts over a session and a server", arguments: Kind.allCases)
    func received(kind: Kind) async throws {
        let setting = try Setting(kind)
        setting.stubs.on(.POST, "/users", .status(201))
        setting.stubs.on(.PUT, "/form", 204)
        var request = setting.service.request(.POST, path: "/users?page=2&q=a%20b")
        request.headers["Accept"] = "a/b"
        try request.serialize(json: ["name": "ale"])
        _ = try await setting.service.sessionTask(request: request).data().value
        var form = setting.service.request(.PUT, path: "/form")
        form.formParameters = ["name": "päle ale"]
        _ = try await setting.service.sessionTask(request: form).empty().value
        let received = setting.stubs.receivedRequests
        try #require(received.count == 2)
        #expect(received[0].method == .POST)
        #expect(received[0].path == "/users")
        #expect(received[0].query == "page=2&q=a%20b")
        #expect(received[0].target == "/users?page=2&q=a%20b")
        #expect(received[0].version == "HTTP/1.1")
        #expect(received[0].url?.absoluteString.hasSuffix("/users?page=2&q=a%20b") == true)
        #expect(received[0].url?.scheme == "http")
        #expect(received[0].url?.host != nil)
        #expect(received[0].queryItems == [.init(name: "page", value: "2"), .init(name: "q", value: "a b")])
        #expect(received[0].headers["accept"] == "a/b")
        #expect(received[0].headers[.contentType] == "application/json")
        #expect(try received[0].json() == ["name": "ale"])
        #expect(try received[0].decode([String: String].self) == ["name": "ale"])
        #expect(received[1].formItems == [.init(name: "name", value: "päle ale")])
    }

    @Test("A body with a file is recorded with its bytes, and a file that cannot be read fails the request")
    func fileBody() async throws {
        session.on(.POST, "/upload") { request in .text("\(request.body.count)") }
        let file = TemporaryFolder.forTest().url.appendingPathComponent("stub")
        try Data(repeating: 7, count: 100_000).write(to: file)
        let service = WebService("http://a.test", session: session)
        #expect(try await service.POST("/upload").setBody(.file(file)).string().value == "100000")
        #expect(session.receivedRequests.first?.body == Data(repeating: 7, count: 100_000))
        try FileManager.default.removeItem(at: file)
        #expect(session.receivedRequests.first?.body.count == 100_000)
    }

    @Test("An error is the error of a session's request, and closes the connection of a server")
    func errors() async throws {
        session.on(.GET, "/", .error(URLError(.notConnectedToInternet)))
        session.on(.GET, "/thrown") { _ in throw WebServiceError(.decoding, "thrown") }
        #expect(
            (await session.response(to: try get("http://a.test/")).error as? URLError)?.code == .notConnectedToInternet)
        #expect(
            (await session.response(to: try get("http://a.test/thrown")).error as? WebServiceError)?.message == "thrown"
        )
        let server = try MockServer()
        server.on(.GET, "/", .error(URLError(.notConnectedToInternet)))
        #expect(await plainSession.response(to: try get(server.baseURLString)).error is URLError)
    }

    @Test("A server that has stopped releases the handlers of its stubs and can be verified")
    func stopped() throws {
        final class Canary: Sendable {}
        weak var watched: Canary?
        let server = try MockServer()
        do {
            let canary = Canary()
            watched = canary
            server.on(.GET, "/") { _ in .text("\(canary)") }
        }
        #expect(watched != nil)
        server.stop()
        #expect(watched == nil)
        #expect(throws: VerificationError.self) { try server.verify() }
    }

    @Test("A session without arguments that records requests responds from stubs")
    func recordingSession() async throws {
        let session = RequestRecordingSession()
        session.addStub(MockResponse(statusCode: 204))
        session.stub(MockResponse(statusCode: 418)) { $0.urlRequestValue.url?.path == "/tea" }
        session.on(.POST, "/users/{id}", .status(201))
        #expect(await session.response(to: try get("http://a.test/tea")).status == 418)
        #expect(await session.response(to: try get("http://a.test/users/7", method: "POST")).status == 201)
        #expect(await session.response(to: try get("http://a.test/")).status == 204)
        #expect(session.recordedRequests.map { $0.url?.path } == ["/tea", "/users/7", "/"])
        #expect(session.receivedRequests.map(\.pathParameters) == [[:], ["id": "7"], [:]])
        try session.verify()
        let wrapping = RequestRecordingSession(WebService(baseURLString: "http://a.test"))
        #expect(wrapping.receivedRequests.isEmpty)
    }

    @Test("A response that is cut off fails over a session as over a server, with the bytes before it")
    func faults() async throws {
        let clock = TestClock()
        let session = MockSession(clock: clock)
        var response = MockResponse.text(String(repeating: "x", count: 1000))
        for (wire, code) in [
            (.disconnect, .networkConnectionLost), (.cut(after: 5), .networkConnectionLost),
            (.cut(after: 900), .networkConnectionLost), (.reset(after: 900), .networkConnectionLost),
            (.cut(after: .max), nil), (.stall(after: .max), nil), (.stall(after: 900), .timedOut),
            (.cut(after: -1), .networkConnectionLost), (.drip(size: 1, pause: .zero), nil),
        ] as [(MockResponse.Wire, URLError.Code?)] {
            response.wire = wire
            session.on(.GET, "/", response)
            var request = Request(.GET, url: "http://a.test/")
            request.options.timeout = .seconds(50)
            let task = Task(executorPreference: clock.executor) { [request] in await session.response(to: request) }
            await clock.advance(by: .seconds(50))
            let answer = await task.value
            #expect((answer.error as? URLError)?.code == code, "\(wire)")
            #expect(answer.data?.count == (code == nil ? 1000 : nil), "\(wire)")
        }
        response.wire = .endless
        session.on(.GET, "/", response)
        var request = Request(.GET, url: "http://a.test/")
        request.options.maximumResponseBytes = 10
        #expect((await session.response(to: request).error as? WebServiceError)?.code == .responseTooLarge)
    }
}
