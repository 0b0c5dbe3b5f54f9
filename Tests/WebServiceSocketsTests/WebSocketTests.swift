import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

struct Order: Codable, Hashable, Sendable {
    var id: Int
    var name: String
}

@Suite("WebSocket", .permit)
struct WebSocketTests {
    @Test("Messages of every kind arrive unchanged", arguments: SocketTransport.allCases)
    func echo(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/echo", .echo)
        let socket = try await service.webSocket("/echo")
        var messages = socket.messages.makeAsyncIterator()
        try await socket.send("grüße")
        #expect(try await messages.next() == .text("grüße"))
        let data = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) })
        try await socket.send(data)
        #expect(try await messages.next() == .data(data))
        try await socket.send("")
        #expect(try await messages.next() == .text(""))
        try await socket.send(Order(id: 1, name: "Pale Ale"))
        var orders = socket.messages(of: Order.self).makeAsyncIterator()
        #expect(try await orders.next() == Order(id: 1, name: "Pale Ale"))
        try await socket.close()
        #expect(try await orders.next() == nil)
        #expect(socket.closure == WebSocketClosure(.normalClosure))
    }

    @Test("The server selects a subprotocol", arguments: SocketTransport.allCases)
    func subprotocol(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(
            .GET, "/chat",
            .webSocket(subprotocols: ["v2", "v1"]) { socket in
                try await socket.send(socket.request.headers["Sec-WebSocket-Protocol"] ?? "")
            })
        let socket = try await service.webSocket("/chat", subprotocols: ["v1", "v3"])
        #expect(socket.subprotocol == "v1")
        #expect(socket.response.status == 101)
        #expect(try await socket.messages.first { _ in true } == .text("v1, v3"))
    }

    @Test(
        "The server closes the connection with a code and a reason",
        arguments: SocketTransport.allCases)
    func closedByServer(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(
            .GET, "/chat",
            .webSocket { socket in
                try await socket.send("last")
                try await socket.close(.policyViolation, reason: "too loud")
            })
        let socket = try await service.webSocket("/chat")
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("last"))
        let error = await failure { _ = try await messages.next() }
        #expect(code(error) == .webSocketClosed)
        #expect(
            (error as? WebServiceError)?.message
                == "the peer has closed the connection with code 1008: too loud; open another one")
        #expect(socket.closure == WebSocketClosure(.policyViolation, reason: "too loud"))
        let sending = await failure { try await socket.send("late") }
        #expect(code(sending) == .webSocketClosed)
    }

    @Test("The loss of the connection is an error", arguments: SocketTransport.allCases)
    func lost(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(
            .GET, "/chat",
            .webSocket { socket in
                _ = try await socket.next()
                socket.disconnect()
            })
        let socket = try await service.webSocket("/chat")
        let error = await failure {
            try await socket.send("go")  // may already report the loss
            for try await _ in socket.messages {}
        }
        #expect(urlCode(error) == .networkConnectionLost)
    }

    @Test("`cancelAll` ends connections", arguments: SocketTransport.allCases)
    func cancelAll(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/echo", .echo)
        let socket = try await service.webSocket("/echo")
        service.cancelAll()
        let error = await failure { for try await _ in socket.messages {} }
        #expect(urlCode(error) == .cancelled)
    }

    @Test("Releasing the connection closes it with the code 1001", arguments: SocketTransport.allCases)
    func released(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        let closures = Collected<WebSocketClosure?>()
        stubs.on(
            .GET, "/chat",
            .webSocket { socket in
                while try await socket.next() != nil {}
                closures.add(socket.closure)
            })
        do {
            let socket = try await service.webSocket("/chat")
            try await socket.send("hello")
        }
        await eventually { closures.values == [WebSocketClosure(.goingAway)] }
    }

    @Test("A server that does not respond to the Close frame delays `close` by the timeout only")
    func closeTimeout() async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        let gate = Once<Bool>()
        Permit.atEnd { gate.set(true) }
        stubs.on(.GET, "/deaf", .webSocket { _ in _ = await gate.value })
        let socket = try await service.webSocket("/deaf")
        // Fills the buffers, so that the server never reads the Close frame.
        for _ in 0..<8 { try await socket.send(Data(repeating: 1, count: 64 << 10)) }
        let closing = Task(executorPreference: clock.executor) { try await socket.close() }
        await clock.advance(by: .seconds(5))
        try await closing.value
        #expect(socket.closure == nil)
    }
}
