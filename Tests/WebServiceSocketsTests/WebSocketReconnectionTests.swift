import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

@Suite("WebSocket: reconnection", .permit)
struct WebSocketReconnectionTests {
    private let clock = TestClock()

    @Test("Messages continue over further connections, each of which subscribes again")
    func reconnection() async throws {
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        let subscriptions = Collected<WebSocketMessage?>()
        func script(_ text: String, _ end: @escaping @Sendable (MockWebSocket) async throws -> Void) -> MockResponse {
            .webSocket { socket in
                subscriptions.add(try await socket.next())
                try await socket.send(text)
                try await end(socket)
            }
        }
        stubs.on(
            .GET, "/prices",
            [
                script("1") { $0.disconnect() }, MockResponse(statusCode: 503),
                script("2") { try await $0.close(.policyViolation) }, script("3") { _ in },
                MockResponse(statusCode: 404),
            ])
        let prices = service.reconnectingWebSocket("/prices") { try await $0.send("subscribe") }
        let received = Collected<WebSocketMessage>()
        let reader = Task(executorPreference: clock.executor) {
            await failure {
                for try await message in prices.messages { received.add(message) }
            }
        }
        await clock.advance(by: .seconds(600))
        let error = await reader.value
        #expect(received.values == [.text("1"), .text("2"), .text("3")])
        #expect(code(error) == .unacceptableStatus)
        #expect(subscriptions.values == [.text("subscribe"), .text("subscribe"), .text("subscribe")])
    }

    /// The ways in which `onOpen` does not return.
    enum Delay: CaseIterable, Sendable {
        /// It waits for a message of the server.
        case message
        /// It waits for something else, and ignores that it is cancelled.
        case other
    }

    @Test("`onOpen` that does not return ends its connection", arguments: Delay.allCases)
    func onOpenTimeout(_ delay: Delay) async throws {
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        let gate = Once<Bool>()
        Permit.atEnd { gate.set(true) }
        let closures = Collected<WebSocketClosure?>()
        let mute = MockResponse.webSocket { socket in
            _ = await failure { while try await socket.next() != nil {} }
            closures.add(socket.closure)
        }
        stubs.on(.GET, "/prices", [mute, .webSocket { try await $0.send("1") }, MockResponse(statusCode: 404)])
        let calls = Collected<Void>()
        let prices = service.reconnectingWebSocket("/prices") { socket in
            calls.add(())
            guard calls.values.count == 1 else { return }
            switch delay {
            case .message: _ = try await socket.messages.first { _ in true }
            case .other: _ = await gate.value
            }
        } configuring: {
            $0.options.timeout = .seconds(20)
        }
        let received = Collected<WebSocketMessage>()
        let reader = Task(executorPreference: clock.executor) {
            await failure { for try await message in prices.messages { received.add(message) } }
        }
        await clock.advance(by: .milliseconds(19_999))
        #expect(calls.values.count == 1)
        #expect(service.exchanges.map(\.kind) == [.stream])
        await clock.advance(by: .seconds(60))
        #expect(received.values == [.text("1")])
        #expect((await reader.value as? WebServiceError)?.response?.status == 404)
        await eventually { closures.values.count == 1 }
        #expect(delay == .message || closures.values == [WebSocketClosure(.goingAway)])
    }

    @Test("The error of an `onOpen` that does not return names the option")
    func onOpenError() async throws {
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(.GET, "/prices", .webSocket { _ = try await $0.next() })
        let prices = service.reconnectingWebSocket("/prices", reconnection: .never) { socket in
            _ = try await socket.messages.first { _ in true }
        }
        let reader = Task(executorPreference: clock.executor) {
            await failure { for try await _ in prices.messages {} }
        }
        await clock.advance(by: .seconds(60))
        let error = await reader.value
        #expect(urlCode(error) == .timedOut)
        #expect(error?.localizedDescription.contains("onOpen exceeded the timeout of 60.0 seconds") == true)
    }

    @Test("Cancelling the reader cancels `onOpen`")
    func onOpenCancelled() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/prices", .webSocket { _ = try await $0.next() })
        let (calls, ends) = (Collected<Void>(), Collected<URLError.Code?>())
        let prices = service.reconnectingWebSocket("/prices") { socket in
            calls.add(())
            let error = await failure { _ = try await socket.messages.first { _ in true } }
            ends.add(urlCode(error))
            if let error { throw error }
        }
        let reader = Task { await failure { for try await _ in prices.messages {} } }
        await calls.wait()
        reader.cancel()
        #expect(urlCode(await reader.value) == .cancelled)
        #expect(await ends.wait() == [.cancelled])
    }

    @Test("Messages that arrive before `onOpen` returns are delivered afterwards")
    func buffered() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(
            .GET, "/prices",
            .webSocket { socket in
                for text in ["welcome", "1", "2"] { try await socket.send(text) }
                _ = try await socket.next()
            })
        let prices = service.reconnectingWebSocket("/prices") { socket in
            #expect(try await socket.messages.first { _ in true } == .text("welcome"))
            try await socket.send("subscribe")
        }
        var iterator = prices.messages.makeAsyncIterator()
        #expect(try await iterator.next() == .text("1"))
        #expect(try await iterator.next() == .text("2"))
    }

    @Test("A socket that `onOpen` has stored takes no message of the connection", arguments: [true, false])
    func storedSocket(waits: Bool) async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(
            .GET, "/prices",
            .webSocket { socket in
                for text in ["1", "2"] { try await socket.send(text) }
                _ = try await socket.next()
            })
        let stored = Once<WebSocket>()
        let prices = service.reconnectingWebSocket("/prices") { socket in stored.set(socket) }
        var iterator = prices.messages.makeAsyncIterator()
        #expect(try await iterator.next() == .text("1"))
        let socket = await stored.value
        let error = await #expect(throws: WebServiceError.self) {
            if waits { _ = try await socket.message(within: .seconds(1)) }
            for try await _ in socket.messages {}
        }
        #expect(error?.code == .streamConsumed)
        #expect(try await iterator.next() == .text("2"))
    }
}
