import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

@Suite("WebSocket: a timeout for one message", .permit)
struct WebSocketReceiveTests {
    private let clock = TestClock()

    @Test("A timeout does not end the connection", arguments: SocketTransport.allCases)
    func timeout(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make(clock: clock)
        stubs.on(.GET, "/echo", .echo)
        let socket = try await service.webSocket("/echo")
        let ends = Collected<WebSocketMessage?>()
        let reader = Task(executorPreference: clock.executor) {
            ends.add(try await socket.message(within: .seconds(5)))
        }
        await clock.advance(by: .milliseconds(4_999))
        #expect(ends.values == [])
        await clock.advance(by: .milliseconds(1))
        try await reader.value
        #expect(ends.values == [nil])
        try await socket.send("hello")
        #expect(try await socket.message(within: .seconds(5)) == .text("hello"))
    }

    @Test(
        "A message that arrives around the timeout is delivered once",
        arguments: [4_999, 5_000, 5_001])
    func race(milliseconds: Int) async throws {
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        let clock = clock
        stubs.on(
            .GET, "/late",
            .webSocket { socket in
                for number in 1...20 {
                    try await clock.sleep(for: .milliseconds(milliseconds))
                    try await socket.send("\(number)")
                }
            })
        let socket = try await service.webSocket("/late")
        let reader = Task(executorPreference: clock.executor) {
            var texts: [WebSocketMessage] = []
            while texts.count < 20 {
                if let message = try await socket.message(within: .seconds(5)) { texts.append(message) }
            }
            return texts
        }
        await clock.advance(by: .seconds(200))
        #expect(try await reader.value == (1...20).map { .text("\($0)") })
    }

    @Test("A duration of zero returns what has arrived")
    func poll() async throws {
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(.GET, "/echo", .echo)
        let socket = try await service.webSocket("/echo")
        #expect(try await socket.message(within: .zero) == nil)
        #expect(try await socket.message(within: .seconds(-1)) == nil)
        try await socket.send("hello")
        await clock.advance(by: .zero)
        #expect(try await socket.message(within: .zero) == .text("hello"))
    }

    @Test("The end of the connection is an error", arguments: SocketTransport.allCases)
    func end(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/one", .webSocket { try await $0.send("1") })
        stubs.on(.GET, "/lost", .webSocket { $0.disconnect() })
        let socket = try await service.webSocket("/one")
        #expect(try await socket.message(within: .seconds(60)) == .text("1"))
        for _ in 1...2 {
            #expect(code(await failure { _ = try await socket.message(within: .seconds(60)) }) == .webSocketClosed)
        }
        #expect(try await socket.messages.first { _ in true } == nil)
        let lost = try await service.webSocket("/lost")
        #expect(urlCode(await failure { _ = try await lost.message(within: .seconds(60)) }) == .networkConnectionLost)
    }

    @Test("An iteration continues after the call, and waits for no message at the same time")
    func iteration() async throws {
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(
            .GET, "/numbers",
            .webSocket { socket in
                for number in 1...3 { try await socket.send("\(number)") }
                _ = try await socket.next()
            })
        let socket = try await service.webSocket("/numbers")
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("1"))
        #expect(try await socket.message(within: .seconds(1)) == .text("2"))
        #expect(try await messages.next() == .text("3"))
        let reader = Task(executorPreference: clock.executor) {
            await failure { _ = try await socket.messages.first { _ in true } }
        }
        await clock.advance(by: .zero)
        #expect(code(await failure { _ = try await socket.message(within: .seconds(1)) }) == .streamConsumed)
        reader.cancel()
        #expect(urlCode(await reader.value) == .cancelled)
    }
}
