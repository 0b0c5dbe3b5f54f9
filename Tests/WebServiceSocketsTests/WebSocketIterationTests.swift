import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

@Suite("WebSocket: iterations over the messages", .permit)
struct WebSocketIterationTests {
    /// Sends the numbers from 1 to 5, and closes the connection with an error.
    private static let numbers = MockResponse.webSocket { socket in
        for number in 1...5 { try await socket.send("\(number)") }
        try await socket.close(.policyViolation)
    }

    @Test("Two readers at the same time are an error")
    func twoReaders() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/echo", .echo)
        let socket = try await service.webSocket("/echo")
        // One of them waits, and the other one fails.
        let errors = Collected<WebServiceError.Code?>()
        let readers = (0..<2).map { _ in
            Task { errors.add(code(await failure { _ = try await socket.messages.first { _ in true } })) }
        }
        await eventually { errors.values == [.streamConsumed] }
        for reader in readers { reader.cancel() }
    }

    /// Reads with two iterators in turn: the later one continues, and the earlier one may not.
    private func expectOneIteration(_ messages: WebSocket.Messages<WebSocketMessage>) async throws {
        var (first, second) = (messages.makeAsyncIterator(), messages.makeAsyncIterator())
        #expect(try await first.next() == .text("1"))
        #expect(try await first.next() == .text("2"))
        #expect(try await second.next() == .text("3"))
        #expect(code(await failure { _ = try await first.next() }) == .streamConsumed)
        #expect(try await second.next() == .text("4"))
        #expect(try await messages.first { _ in true } == .text("5"))
        #expect(code(await failure { _ = try await second.next() }) == .streamConsumed)
    }

    @Test("Two iterations do not share the messages of a connection")
    func twoIterators() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/numbers", Self.numbers)
        try await expectOneIteration(try await service.webSocket("/numbers").messages)
    }

    @Test("Two iterations do not share the messages of successive connections")
    func twoIteratorsReconnecting() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/numbers", Self.numbers)
        try await expectOneIteration(service.reconnectingWebSocket("/numbers").messages)
    }

    @Test("An iteration over values and one over messages do not share them")
    func values() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/numbers", Self.numbers)
        let socket = try await service.webSocket("/numbers")
        var messages = socket.messages.makeAsyncIterator()
        var values = socket.messages(of: Int.self).makeAsyncIterator()
        #expect(try await messages.next() == .text("1"))
        #expect(try await values.next() == 2)
        #expect(code(await failure { _ = try await messages.next() }) == .streamConsumed)
        #expect(try await values.next() == 3)
    }

    @Test("Each iteration after a failure throws it again")
    func failureAgain() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/numbers", Self.numbers)
        let socket = try await service.webSocket("/numbers")
        for _ in 1...3 {
            #expect(code(await failure { for try await _ in socket.messages {} }) == .webSocketClosed)
        }
    }

    @Test("Each iteration after the failure of the last connection throws it again")
    func failureAgainReconnecting() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/prices", MockResponse(statusCode: 404))
        let prices = service.reconnectingWebSocket("/prices")
        for _ in 1...3 {
            let error = await failure { for try await _ in prices.messages {} }
            #expect((error as? WebServiceError)?.response?.status == 404)
        }
        #expect(stubs.receivedRequests.count == 1)
    }
}
