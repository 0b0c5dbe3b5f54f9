import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

@Suite(.permit) struct MockServerTests {
    private let server: MockServer

    init() throws {
        server = try MockServer()
    }

    @Test("A real session gets the response of a route, and the server records the request")
    func roundTrip() async throws {
        server.on(.GET, "/brewers", MockResponse(statusCode: 200, json: [["name": "Long Trail"]]))
        let answer = await plainSession.response(to: try get(server.baseURLString + "/brewers?state=new+york%21"))
        #expect(answer.status == 200)
        #expect(answer.text == #"[{"name":"Long Trail"}]"#)
        #expect(answer.response?.value(forHTTPHeaderField: "Content-Type") == "application/json")
        let request = try #require(server.receivedRequests.first)
        #expect(request.method == .GET)
        #expect(request.path == "/brewers")
        #expect(request.queryItems == [.init(name: "state", value: "new york!")])
        #expect(request.headers["Host"] == "127.0.0.1:\(server.port)")
        #expect(server.baseURL.absoluteString == "http://127.0.0.1:\(server.port)")
    }

    @Test("A handler receives the request with its body, and an error that it throws is a 500")
    func handler() async throws {
        server.on(.POST, "/brewers") { (request: ReceivedRequest) in
            MockResponse(statusCode: 201, json: try request.decode([String: String].self))
        }
        var request = try get(server.baseURLString + "/brewers", method: "POST")
        request.httpBody = Data(#"{"name":"ale"}"#.utf8)
        #expect(await plainSession.response(to: request).text == #"{"name":"ale"}"#)
        request.httpBody = Data("no json".utf8)
        let failed = await plainSession.response(to: request)
        #expect(failed.status == 500)
        #expect(failed.text?.hasPrefix("the handler for POST /brewers threw: ") == true)
        request.httpBody = Data(repeating: UInt8(ascii: "["), count: 513)
        #expect(await plainSession.response(to: request).text?.contains("nested deeper than 512 levels") == true)
    }

    @Test("The latest route that matches the method and path is used, regardless of the query")
    func routing() throws {
        server.on(.GET, "/a", MockResponse(statusCode: 201))
        server.on(.GET, "/a?ignored", MockResponse(statusCode: 202))
        #expect(try server.reply(to: "GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n").hasPrefix("HTTP/1.1 202 Accepted\r\n"))
        let missing = try server.reply(to: "PUT /a%0A?token=canary HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(missing.hasPrefix("HTTP/1.1 404 Not Found\r\n"))
        #expect(missing.contains("\r\n\r\nno stub matches PUT /a%0A; the closest of 2 stubs:\n  GET /a (MockServer"))
        #expect(missing.contains("method: expected GET, received PUT; path: expected /a, received /a%0A\n"))
        #expect(!missing.contains("canary"))
    }

    @Test("A fallback handler responds to a request without a route")
    func fallback() async throws {
        let server = try MockServer { request in MockResponse(statusCode: 200, data: Data(request.target.utf8)) }
        server.on(.GET, "/a", MockResponse(statusCode: 204))
        #expect(await plainSession.response(to: try get(server.baseURLString + "/a")).status == 204)
        #expect(await plainSession.response(to: try get(server.baseURLString + "/b?c")).text == "/b?c")
    }

    @Test("Requests of one client share a connection")
    func keepAlive() async throws {
        server.on(.GET, "/", MockResponse(statusCode: 200, data: Data("ale".utf8)))
        let client = try RawClient(server)
        for _ in 0..<5 {
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(client.readResponse().body == "ale")
        }
        #expect(server.connectionCount == 1)
        let session = makePlainSession()  // a new one: sessions close connections if they have many to other servers
        for _ in 0..<5 { #expect(await session.response(to: try get(server.baseURLString)).text == "ale") }
        #expect(server.connectionCount == 2)
        #expect(server.receivedRequests.map(\.connection) == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    }

    @Test(
        "The connection closes after HTTP/1.0 and at the request of either side",
        arguments: [
            ("GET / HTTP/1.0\r\n\r\n", nil), ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", nil),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: x , Close\r\n\r\n", nil),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "close"),
        ] as [(String, String?)])
    func close(request: String, option: String?) throws {
        var response = MockResponse(statusCode: 200)
        response.headers["Connection"] = option
        server.on(.GET, "/", response)
        let client = try RawClient(server)
        client.send(request)
        let fields = option == nil ? "Content-Length: 0\r\nConnection: close" : "Connection: close\r\nContent-Length: 0"
        #expect(client.readToEnd() == "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n")
    }

    @Test("Pipelined requests receive their responses in order")
    func pipelining() throws {
        let server = try MockServer { request in MockResponse(statusCode: 200, data: Data(request.path.utf8)) }
        let client = try RawClient(server)
        client.send((0..<200).map { "POST /\($0) HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\r\n" }.joined())
        for number in 0..<200 { #expect(client.readResponse().body == "/\(number)") }
        #expect(server.connectionCount == 1)
        #expect(server.receivedRequests.count == 200)
    }

    @Test("A client that expects a 100 receives one before its response")
    func expectContinue() throws {
        server.on(.POST, "/") { MockResponse(statusCode: 200, data: $0.body) }
        let client = try RawClient(server)
        client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        #expect(client.read(through: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
        client.send("ale")
        #expect(client.readResponse().body == "ale")
    }

    @Test(
        "A response to the header is sent even if the body arrives together with the header",
        arguments: [
            "Content-Length: 3\r\n\r\nale", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\nno chunk\r\n", "Content-Length: 3\r\n\r\n",
            "Expect: 100-continue\r\nContent-Length: 300000000\r\n\r\n",
        ])
    func onHead(rest: String) throws {
        server.on(.POST, "/", 201)
        server.onHead(.POST, "/", 401)
        let start = "POST / HTTP/1.1\r\nHost: a\r\n"
        #expect(try server.reply(to: start + rest).hasPrefix("HTTP/1.1 401 "))
        #expect(server.receivedRequests.isEmpty)
        #expect(try server.reply(to: start + "Content-Length: 0\r\n\r\n").hasPrefix("HTTP/1.1 201 "))
        server.onHead(.POST, "/", nil)
        #expect(try server.reply(to: start + "Content-Length: 3\r\n\r\nale").hasPrefix("HTTP/1.1 201 "))
    }

    @Test("Chunked bodies are sent and received", arguments: [1, 3, 4096, 1 << 20, 0, -1])
    func chunked(size: Int) async throws {
        let body = Data((0..<10_000).map { UInt8(truncatingIfNeeded: $0) })
        var response = MockResponse(statusCode: 200, data: body)
        response.wire = .chunked(size: size)
        server.on(.GET, "/", response)
        let answer = await plainSession.response(to: try get(server.baseURLString))
        #expect(answer.data == body)
        #expect(answer.error == nil)

        server.on(.POST, "/") { MockResponse(statusCode: 200, data: $0.body) }
        let client = try RawClient(server)
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nal\r\n1\r\ne\r\n0\r\n\r\n")
        #expect(client.readResponse().body == "ale")
    }

    @Test("A large body arrives complete in both directions")
    func large() async throws {
        server.on(.PUT, "/") { MockResponse(statusCode: 200, data: $0.body) }
        let piece = Data((0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        var body = Data()
        while body.count < 8 << 20 { body += piece }
        var request = try get(server.baseURLString, method: "PUT")
        request.httpBody = body
        #expect(await plainSession.response(to: request).data == body)
        #expect(server.receivedRequests.first?.body == body)
    }

    @Test("A handler that blocks does not block other connections")
    func blocking() async throws {
        let gate = DispatchSemaphore(value: 0)
        server.on(.GET, "/slow") { _ in
            gate.wait()
            return MockResponse(statusCode: 200)
        }
        server.on(.GET, "/fast", MockResponse(statusCode: 200))
        let slow = try RawClient(server)
        slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually("the slow request arrives") { server.receivedRequests.count == 1 }
        #expect(await plainSession.response(to: try get(server.baseURLString + "/fast")).status == 200)
        gate.signal()
        #expect(slow.readResponse().head.hasPrefix("HTTP/1.1 200 "))
    }
}
