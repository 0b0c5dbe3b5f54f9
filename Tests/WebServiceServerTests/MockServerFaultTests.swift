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
    /// The complete response of ``partsServer(_:isWriter:)``.
    private let wholeParts =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n2\r\nox\r\n0\r\n\r\n"

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

    @Test("A response to the header can stall", arguments: [MockResponse.Wire.stall(after: 9), .noResponse])
    func stallAfterHeader(wire: MockResponse.Wire) throws {
        let server = try MockServer()
        var response = MockResponse(statusCode: 413)
        response.wire = wire
        server.onHead(.POST, "/", response)
        let client = try RawClient(server)
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
        if wire != .noResponse { #expect(client.read(count: 9) == "HTTP/1.1 ") }
        #expect(!client.hasNews(within: 50))
        server.stop()
        #expect(client.readToEnd().isEmpty)
    }

    /// Returns a server whose response has a body in two parts, from a closure or from a sequence.
    private func partsServer(_ wire: MockResponse.Wire, isWriter: Bool) throws -> MockServer {
        try MockServer { _ in
            let parts = ["ale", "ox"].map { Data($0.utf8) }
            let chunks = AsyncStream<Data> { feed in
                for part in parts { feed.yield(part) }
                feed.finish()
            }
            var response = MockResponse(statusCode: 200, chunks: chunks)
            if isWriter {
                response = MockResponse(statusCode: 200) { body in for part in parts { try body.write(part) } }
            }
            response.wire = wire
            return response
        }
    }

    // The sequence needs a thread of the global executor, so the client blocks another one.
    @Test("A body in parts is cut at every offset", arguments: [true, false])
    func cutParts(isWriter: Bool) async throws {
        let whole = wholeParts
        for count in Array(-1...whole.utf8.count + 1) + [Int.max] {
            let server = try partsServer(.cut(after: count), isWriter: isWriter)
            let (received, wasReset) = try await blocking { [get] in
                let client = try RawClient(server)
                client.send(get)
                return (client.readToEnd(), client.wasReset)
            }
            #expect(received == String(decoding: whole.utf8.prefix(max(count, 0)), as: UTF8.self))
            #expect(!wasReset)
        }
    }

    @Test("A body in parts is reset, and stalls", arguments: [48, 55, 62, 66], [true, false])
    func resetParts(count: Int, isWriter: Bool) async throws {
        let expected = String(decoding: wholeParts.utf8.prefix(count), as: UTF8.self)
        let resetting = try partsServer(.reset(after: count), isWriter: isWriter)
        let (received, wasReset) = try await blocking { [get] in
            let client = try RawClient(resetting)
            client.send(get)
            return (client.readToEnd(), client.wasReset)
        }
        #expect(received == expected)
        #expect(wasReset)
        let stalling = try partsServer(.stall(after: count), isWriter: isWriter)
        let (part, hasNews, rest) = try await blocking { [get] in
            let client = try RawClient(stalling)
            client.send(get)
            let (part, hasNews) = (client.read(count: count), client.hasNews(within: 50))
            stalling.stop()
            return (part, hasNews, client.readToEnd())
        }
        #expect(part == expected)
        #expect(!hasNews)
        #expect(rest.isEmpty)
    }

    @Test("A cut ends a closure that writes without end")
    func cutWriter() throws {
        let server = try MockServer { _ in
            var response = MockResponse(statusCode: 200) { body in while true { try body.write(Data(count: 10)) } }
            response.wire = .cut(after: 1_000)
            return response
        }
        #expect(try server.reply(to: get).utf8.count == 1_000)
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

    @Test("The delay of a WebSocket stub precedes the response to the handshake", arguments: [(13, 101), (12, 426)])
    func handshakeDelay(version: Int, status: Int) throws {
        let server = try MockServer()
        server.on(.GET, "/", MockResponse.webSocket { _ in }.after(.seconds(1000)))
        let client = try RawClient(server)
        client.send(
            "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: \(version)\r\n\r\n")
        #expect(!client.hasNews(within: 50))
        client.finishSending()  // this ends the delay
        #expect(client.read(through: "\r\n").hasPrefix("HTTP/1.1 \(status) "))
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
