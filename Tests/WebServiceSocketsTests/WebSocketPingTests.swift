import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets
import WebSocketCodec

@Suite("WebSocket: pings of the program", .permit)
struct WebSocketPingTests {
    private let clock = TestClock()

    private func channel(over connection: HandConnection, pingInterval: Duration? = nil) -> WebSocketChannel {
        var settings = WebSocketChannel.Settings()
        settings.pingInterval = pingInterval
        let clock = WebService(baseURLString: "https://api.test", clock: clock).taskClock
        let channel = WebSocketChannel(.client, over: connection, settings, clock)
        channel.start(with: Data())
        return channel
    }

    private func ping(_ channel: WebSocketChannel, within limit: Duration = .seconds(10)) -> Task<Duration, any Error> {
        Task(executorPreference: clock.executor) { try await channel.ping(within: limit) }
    }

    private static func payload(_ event: WebSocketEvent?) -> [UInt8] {
        if case .ping(let payload)? = event { Array(payload) } else { [] }
    }

    private static func pong(_ payload: [UInt8]) -> [UInt8] { [0x8A, UInt8(payload.count)] + payload }

    @Test("Concurrent pings return their durations, and messages arrive", arguments: SocketTransport.allCases)
    func roundTrip(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/echo", .echo)
        let socket = try await service.webSocket("/echo")
        let durations = try await withThrowingTaskGroup(of: Duration.self) { group in
            for _ in 0..<20 { group.addTask { try await socket.ping(within: .seconds(60)) } }
            try await socket.send("hello")
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(durations.count == 20)
        #expect(durations.allSatisfy { $0 >= .zero && $0 < .seconds(60) })
        #expect(try await socket.messages.first { _ in true } == .text("hello"))
    }

    @Test("The duration is measured by the service's clock, from each call to its pong")
    func matching() async throws {
        let connection = HandConnection()
        let channel = channel(over: connection)
        var pings: [Task<Duration, any Error>] = []
        for _ in 1...3 {
            pings.append(ping(channel))
            await clock.advance(by: .milliseconds(100))
        }
        let payloads = connection.events.map { Self.payload($0) }
        #expect(Set(payloads).count == 3)
        connection.add(Self.pong(payloads[0]))
        await clock.advance(by: .milliseconds(100))
        connection.add(Self.pong(payloads[2]))
        await clock.advance(by: .zero)
        #expect(try await pings[0].value == .milliseconds(300))
        // A peer may respond to the latest ping only.
        #expect(try await pings[1].value == .milliseconds(300))
        #expect(try await pings[2].value == .milliseconds(200))
        channel.cancel()
    }

    @Test("Other pongs complete no call, and a timeout does not end the connection")
    func otherPayloads() async throws {
        let connection = HandConnection()
        let channel = channel(over: connection)
        let (ends, ping) = (Collected<Bool>(), ping(channel, within: .seconds(5)))
        let waiting = Task(executorPreference: clock.executor) {
            let error = await failure { _ = try await ping.value }
            ends.add(true)
            return error
        }
        await clock.advance(by: .zero)
        let payload = Self.payload(connection.events.first)
        #expect(payload.count == 8)
        var next = payload
        next[7] += 1
        for other in [[], [1], Array(payload.dropLast()), payload + [0], next, Array(repeating: 0xFF, count: 8)] {
            connection.add(Self.pong(other))
        }
        connection.add(Array(repeatElement(Self.pong(next), count: 10_000).joined()))
        await clock.advance(by: .milliseconds(4_999))
        #expect(ends.values == [])
        await clock.advance(by: .milliseconds(1))
        let error = await waiting.value
        #expect(urlCode(error) == .timedOut)
        #expect(error?.localizedDescription == "the peer did not respond to the ping within 5.0 seconds")
        connection.add(Self.pong(payload) + [0x81, 0x01, 0x61])
        #expect(try await channel.next() == .text("a"))
        channel.cancel()
    }

    @Test("A pong of a ping that has timed out does not answer a later one")
    func latePong() async throws {
        let connection = HandConnection()
        let channel = channel(over: connection)
        let first = ping(channel, within: .seconds(1))
        await clock.advance(by: .seconds(1))
        #expect(urlCode(await failure { _ = try await first.value }) == .timedOut)
        let second = ping(channel)
        await clock.advance(by: .zero)
        let payloads = connection.events.map { Self.payload($0) }
        connection.add(Self.pong(payloads[0]))
        await clock.advance(by: .seconds(2))
        connection.add(Self.pong(payloads[1]))
        await clock.advance(by: .zero)
        #expect(try await second.value == .seconds(2))
        channel.cancel()
    }

    @Test("The loss of the connection ends a ping with its error", arguments: SocketTransport.allCases)
    func lost(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(
            .GET, "/chat",
            .webSocket(respondsToPings: false) { socket in
                _ = try await socket.next()
                socket.disconnect()
            })
        let socket = try await service.webSocket("/chat")
        async let error = failure { _ = try await socket.ping(within: .seconds(600)) }
        try await socket.send("go")
        #expect(urlCode(await error) == .networkConnectionLost)
        #expect(urlCode(await failure { _ = try await socket.ping() }) == .networkConnectionLost)
    }

    @Test("Closing the connection ends a ping", arguments: SocketTransport.allCases)
    func closed(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/chat", .webSocket(respondsToPings: false) { _ = try await $0.next() })
        let socket = try await service.webSocket("/chat")
        async let error = failure { _ = try await socket.ping(within: .seconds(600)) }
        try await socket.close()
        #expect(code(await error) == .webSocketClosed)
        #expect(code(await failure { _ = try await socket.ping() }) == .webSocketClosed)
    }

    @Test("A server that does not respond to pings causes a timeout", arguments: SocketTransport.allCases)
    func noPong(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make(clock: clock)
        stubs.on(
            .GET, "/chat",
            .webSocket(respondsToPings: false) { socket in
                while let message = try await socket.next() { try await socket.send(message) }
            })
        let socket = try await service.webSocket("/chat")
        let ping = Task(executorPreference: clock.executor) {
            await failure { _ = try await socket.ping(within: .seconds(3)) }
        }
        await clock.advance(by: .seconds(3))
        #expect(urlCode(await ping.value) == .timedOut)
        try await socket.send("still open")
        #expect(try await socket.messages.first { _ in true } == .text("still open"))
    }

    @Test("Cancelling a Swift task that waits for a pong does not end the connection")
    func cancelled() async throws {
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(
            .GET, "/echo", .webSocket(respondsToPings: false) { try await $0.send(try await $0.next() ?? .text("")) })
        let socket = try await service.webSocket("/echo")
        let ping = Task(executorPreference: clock.executor) { await failure { _ = try await socket.ping() } }
        await clock.advance(by: .zero)
        ping.cancel()
        #expect(urlCode(await ping.value) == .cancelled)
        try await socket.send("hello")
        #expect(try await socket.messages.first { _ in true } == .text("hello"))
    }

    @Test("No automatic ping follows a ping that waits, and a silent peer is still detected")
    func automatic() async throws {
        let connection = HandConnection()
        let channel = channel(over: connection, pingInterval: .seconds(30))
        await clock.advance(by: .seconds(29))
        let waiting = ping(channel, within: .seconds(600))
        await clock.advance(by: .seconds(1))
        #expect(connection.events.map { Self.payload($0).count } == [8])
        await clock.advance(by: .seconds(30))
        #expect(urlCode(await failure { _ = try await waiting.value }) == .timedOut)
        #expect(urlCode(await failure { _ = try await channel.next() }) == .timedOut)
    }
}
