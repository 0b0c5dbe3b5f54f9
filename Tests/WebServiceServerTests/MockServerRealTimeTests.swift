import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

/// The pauses of a server between the pieces of a response.
@Suite("MockServer: real time", .permit) struct MockServerRealTimeTests {
    private let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    private let whole = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale"

    private func server(_ wire: MockResponse.Wire) throws -> MockServer {
        try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200, data: Data("ale".utf8))
            response.wire = wire
            return response
        }
    }

    @Test(
        "A drip is the complete response in pieces, and the connection stays open",
        arguments: [-1, 1, 7, 40, 41, Int.max])
    func drip(size: Int) throws {
        let server = try server(.drip(size: size, pause: .milliseconds(1)))
        let client = try RawClient(server)
        // Both responses may have begun before the client reads the first one.
        let start = ContinuousClock.now
        client.send(get + get)  // pending input neither ends a pause nor is lost
        for _ in 0..<2 { #expect(client.read(count: whole.utf8.count) == whole) }
        #expect(size > 1 || start.duration(to: .now) >= .milliseconds(80))  // 41 bytes each, without the last pauses
        #expect(server.connectionCount == 1)
    }

    @Test("A throttled response arrives complete, at its rate")
    func throttle() throws {
        let server = try server(.throttle(bytesPerSecond: 1_000))
        let client = try RawClient(server)
        let start = ContinuousClock.now
        client.send(get + get)
        for _ in 0..<2 { #expect(client.read(count: whole.utf8.count) == whole) }
        #expect(start.duration(to: .now) >= .milliseconds(60))  // 82 bytes in pieces of 10, without the last pauses
        #expect(server.connectionCount == 1)
    }
}
