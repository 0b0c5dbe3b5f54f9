import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

@Suite(.permit) struct MockServerLifecycleTests {
    private let ok = MockResponse(statusCode: 200, data: Data("ale".utf8))
    private let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test("Every server has a different port, and a port in use is an error with its cause")
    func ports() throws {
        let servers = try (0..<20).map { _ in try MockServer() }
        #expect(Set(servers.map(\.port)).count == 20)
        let error = #expect(throws: WebServiceError.self) {
            try MockServer(port: servers[0].port)
        }
        #expect(error?.code == .portUnavailable)
        #expect(error?.message.hasPrefix("port \(servers[0].port) is in use; pass another port") == true)
        #expect((error?.underlying as NSError?)?.domain == NSPOSIXErrorDomain)
    }

    @Test("A server listens on the port that is specified, again after it has stopped")
    func fixedPort() throws {
        let free = try MockServer()
        let port = free.port
        free.stop()
        for _ in 0..<2 {
            let server = try MockServer(port: port) { [ok] _ in ok }
            #expect(server.port == port)
            let client = try RawClient(server)
            client.send(get)
            #expect(client.readResponse().body == "ale")
            server.stop()
        }
        let error = #expect(throws: WebServiceError.self) { try MockServer(port: 65_536) }
        #expect(error?.code == .portUnavailable)
        #expect(error?.message == "port 65536 is not between 0 and 65535; pass another port")
    }

    @Test("Stopping ends open connections, can be repeated, and retains the received requests")
    func stop() throws {
        let server = try MockServer { [ok] _ in ok }
        let clients = try (0..<20).map { _ in try RawClient(server) }
        for client in clients.prefix(10) {
            client.send(get)
            #expect(client.readResponse().body == "ale")
        }
        clients[15].send("GET / HT")
        server.stop()
        server.stop()
        for client in clients { #expect(client.readToEnd().isEmpty) }
        #expect(throws: WebServiceError.self) { try RawClient(server) }
        #expect(server.receivedRequests.count == 10)
    }

    @Test("A server without references stops and is deallocated")
    func deinitialized() throws {
        weak var watched: MockServer?
        weak var loop: ServerLoop?
        let client: RawClient
        do {
            let server = try MockServer { [ok] _ in ok }
            watched = server
            client = try RawClient(server)
            client.send(get)
            #expect(client.readResponse().body == "ale")
            loop = server.loop
        }
        #expect(watched == nil)
        #expect(loop == nil)
        #expect(client.readToEnd().isEmpty)
    }

    @Test("A handler may stop its server, and stopping releases a handler that references the server")
    func stopInside() async throws {
        weak var watched: MockServer?
        do {
            let server = try MockServer()
            watched = server
            server.on(.GET, "/") { [ok] _ in
                server.stop()
                return ok
            }
            let client = try RawClient(server)
            client.send(get)
            _ = client.readToEnd()  // the response may or may not arrive before the end
            await eventually("the server stops") { (try? RawClient(server)) == nil }
        }
        await eventually("the server is deallocated") { watched == nil }
    }

    @Test(
        "An object that a handler references may stop the server again during its deallocation",
        .permit)
    func fixture() throws {
        final class Fixture: Sendable {
            let server: MockServer
            init() throws {
                server = try MockServer()
                server.on(.GET, "/") { [self] _ in MockResponse(statusCode: server.port > 0 ? 200 : 500) }
            }
            deinit { server.stop() }
        }
        weak var watched: Fixture?
        let server: MockServer
        do {
            let fixture = try Fixture()
            watched = fixture
            server = fixture.server
            #expect(try server.reply(to: get).hasPrefix("HTTP/1.1 200 OK"))
        }
        #expect(watched != nil)
        server.stop()
        #expect(watched == nil)
    }

    @Test("A server can be stopped on several threads at once while clients connect")
    func stopRace() async throws {
        for _ in 0..<30 {
            let server = try MockServer { [ok] _ in ok }
            DispatchQueue.concurrentPerform(iterations: 6) { lane in
                if lane > 3 {
                    server.stop()
                } else if let client = try? RawClient(server) {
                    client.send(get)
                    _ = client.read(count: 1)
                }
            }
        }
    }

    @Test("The server still responds after clients reset connections at any offset")
    func resets() async throws {
        let server = try MockServer { [ok] _ in ok }
        let request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
        for cut in 0...request.utf8.count {
            let client = try RawClient(server)
            client.send(String(request.prefix(cut)))
            client.resetAtEnd()
        }
        let large = try MockServer { _ in MockResponse(statusCode: 200, data: Data(count: 16 << 20)) }
        for _ in 0..<10 {
            let client = try RawClient(large)
            client.send(get + get)
            _ = client.read(count: 1000)
            client.resetAtEnd()
        }
        for server in [server, large] { #expect(try server.reply(to: get).hasPrefix("HTTP/1.1 200 OK")) }
        server.stop()
        large.stop()
    }

    @Test("300 clients are inside a handler at the same time, and each receives its response")
    func manyClients() async throws {
        let count = 300
        let inside = Counter()
        let gate = DispatchSemaphore(value: 0)
        let server = try MockServer { [ok] _ in
            inside.add()
            gate.wait()
            return ok
        }
        let clients = try (0..<count).map { _ in try RawClient(server) }
        for client in clients { client.send(get) }
        await eventually("all clients are inside") { inside.value == count }
        for _ in 0..<count { gate.signal() }
        for client in clients { #expect(client.readResponse().body == "ale") }
        #expect(server.connectionCount == count)
        #expect(Set(server.receivedRequests.map(\.connection)) == Set(1...count))
    }

    @Test("200 concurrent requests of a real session each receive their own response")
    func manyRequests() async throws {
        let server = try MockServer { MockResponse(statusCode: 200, data: Data($0.path.utf8)) }
        let base = server.baseURLString
        let right = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
                group.addTask {
                    await plainSession.response(to: Request(.GET, url: "\(base)/\(number)")).text == "/\(number)"
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(right == 200)
    }

    @Test(
        "Invalid bytes get an error and the end of their connection, and the next client is served",
        arguments: RequestParserTests.wrong)
    func badBytes(status: Int, bytes: String) throws {
        let server = try MockServer { [ok] _ in ok }
        let client = try RawClient(server)
        client.send(bytes + get)
        let text = client.readToEnd()
        #expect(text.hasPrefix("HTTP/1.1 \(status) "))
        #expect(text.contains("\r\nConnection: close\r\n"))
        #expect(server.receivedRequests.isEmpty)
        #expect(try server.reply(to: get).hasSuffix("ale"))
    }

    @Test("A client that continues to send after an error still receives the response")
    func refusedUpload() throws {
        let server = try MockServer { [ok] _ in ok }
        let client = try RawClient(server)
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n\r\n")
        client.send(Data(count: 4 << 20))
        #expect(client.readToEnd().hasPrefix("HTTP/1.1 413 Content Too Large\r\n"))
    }

    @Test("Random bytes never stop the server")
    func randomBytes() throws {
        let server = try MockServer { [ok] _ in ok }
        var random = SeededGenerator(seed: 4949)
        for _ in 0..<200 {
            let client = try RawClient(server)
            client.send(
                Data(
                    (0..<Int.random(in: 1..<2000, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random)
                    }))
            client.finishSending()
            let text = client.readToEnd()
            #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 400 "))
        }
        #expect(try server.reply(to: get).hasSuffix("ale"))
    }
}
