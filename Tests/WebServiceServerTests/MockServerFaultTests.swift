import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

/// Faulty responses that a transport has to survive, byte by byte.
@Suite(.permit) struct MockServerFaultTests {
    private let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    private let whole = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale"

    private func server(_ wire: MockResponse.Wire, _ text: String = "ale", status: Int = 200) throws -> MockServer {
        try MockServer { _ in
            var response = MockResponse(statusCode: status, data: Data(text.utf8))
            response.wire = wire
            return response
        }
    }

    /// Returns the first bytes of the complete response.
    private func first(_ count: Int) -> String {
        String(decoding: whole.utf8.prefix(max(count, 0)), as: UTF8.self)
    }

    @Test("A cut response is its first bytes and an orderly close, at every offset")
    func cut() throws {
        for count in [Int.min, -1] + Array(0...whole.utf8.count + 1) + [Int.max] {
            let server = try server(.cut(after: count))
            let client = try RawClient(server)
            client.send(get)
            #expect(client.readToEnd() == first(count))
            #expect(!client.wasReset)
        }
    }

    @Test("A reset follows the bytes before it", arguments: [0, 1, 20, 40, 41, Int.max])
    func reset(count: Int) throws {
        let server = try server(.reset(after: count))
        let client = try RawClient(server)
        client.send(get)
        #expect(client.readToEnd() == first(count))
        #expect(client.wasReset)
        #expect(try server.reply(to: get) == first(count))
    }

    @Test(
        "A stall is the first bytes and then silence, until the server stops",
        arguments: [0, 10, 40, Int.max])
    func stall(count: Int) throws {
        let server = try server(.stall(after: count))
        let client = try RawClient(server)
        client.send(get)
        let expected = first(count)
        #expect(client.read(count: expected.utf8.count) == expected)
        #expect(!client.hasNews(within: 50))
        server.stop()
        #expect(client.readToEnd().isEmpty)
    }

    @Test("The server ends a stalled connection when the client leaves")
    func leftStall() async throws {
        let server = try server(.stall(after: 10))
        #expect(try server.reply(to: get) == first(10))
        await eventually("the connection has ended") { server.openConnectionCount == 0 }
    }

    @Test("A drip pauses between its pieces until the client stops sending or the server stops")
    func dripPause() async throws {
        let server = try server(.drip(size: 10, pause: .seconds(1000)))
        let client = try RawClient(server)
        client.send(get)
        #expect(client.read(count: 10) == "HTTP/1.1 2")
        #expect(!client.hasNews(within: 50))
        client.finishSending()  // this ends the pauses
        #expect(client.readToEnd() == String(decoding: whole.utf8.dropFirst(10), as: UTF8.self))
        let other = try RawClient(server)
        other.send(get)
        #expect(other.read(count: 10) == "HTTP/1.1 2")
        server.stop()
        #expect(other.readToEnd().isEmpty)
    }

    @Test("An endless response continues until the client leaves", arguments: ["", "ale"])
    func endless(text: String) async throws {
        let server = try server(.endless, text)
        do {
            let client = try RawClient(server)
            client.send(get)
            #expect(client.read(through: "\r\n\r\n") == "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = text.isEmpty ? "4000\r\n\(String(repeating: "x", count: 16 << 10))\r\n" : "3\r\nale\r\n"
            for _ in 0..<100 where client.read(count: chunk.utf8.count) != chunk { Issue.record("not the chunk") }
        }
        await eventually("the connection has ended") { server.openConnectionCount == 0 }
        let client = try RawClient(server)
        client.send("GET / HTTP/1.0\r\n\r\n")
        #expect(client.read(through: "\r\n\r\n") == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        #expect(client.read(count: 9) == (text.isEmpty ? "xxxxxxxxx" : "alealeale"))
        server.stop()
    }

    @Test("A response without a body is not endless")
    func endlessWithoutBody() throws {
        let server = try server(.endless, status: 204)
        #expect(try server.reply(to: get) == "HTTP/1.1 204 No Content\r\n\r\n")
    }

    @Test("An interim response before the final one is sent as raw bytes")
    func interim() throws {
        let bytes = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
        #expect(try server(.raw(Data(bytes.utf8))).reply(to: get) == bytes)
    }
}
