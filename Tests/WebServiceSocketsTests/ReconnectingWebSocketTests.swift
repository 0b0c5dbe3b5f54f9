import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

/// A short name of a state.
private func name(_ state: ReconnectingWebSocket.State) -> String {
    switch state {
    case .connecting: "connecting"
    case .open: "open"
    case .waiting: "waiting"
    case .closed(let error): error == nil ? "closed" : "failed"
    }
}

@Suite("WebSocket: the handle of successive connections", .permit)
struct ReconnectingWebSocketTests {
    private let clock = TestClock()

    /// Messages that a server has received, with the number of the connection.
    private let received = Collected<String>()

    /// A server that collects messages, and loses its connection after some of them.
    private func collector(_ connection: Int, losingAfter count: Int? = nil) -> MockResponse {
        .webSocket { [received] socket in
            var rest = count ?? .max
            while rest > 0, case .text(let text)? = try await socket.next() {
                received.add("\(connection) \(text)")
                rest -= 1
            }
            if count != nil { socket.disconnect() }
        }
    }

    private func make(
        _ responses: [MockResponse], maximumQueuedMessages: Int = 0,
        reconnection: ServerSentEvent.Reconnection = .reconnecting(),
        onOpen: @escaping @Sendable (WebSocket) async throws -> Void = { _ in }
    ) async throws -> (ReconnectingWebSocket, WebService) {
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(.GET, "/chat", responses)
        let chat = service.reconnectingWebSocket(
            "/chat", reconnection: reconnection, maximumQueuedMessages: maximumQueuedMessages, onOpen: onOpen)
        await clock.advance(by: .zero)
        return (chat, service)
    }

    private func send(_ text: String, _ chat: ReconnectingWebSocket) async -> Task<(any Error)?, Never> {
        let task = Task(executorPreference: clock.executor) { await failure { try await chat.send(text) } }
        await clock.advance(by: .zero)
        return task
    }

    // MARK: States

    @Test("The state changes from a connection to the next one, and ends after closing")
    func states() async throws {
        let (chat, _) = try await make([collector(1, losingAfter: 1), .status(503), collector(2)])
        let names = Collected<String>()
        let observer = Task(executorPreference: clock.executor) {
            for await state in chat.states { names.add(name(state)) }
        }
        await clock.advance(by: .zero)
        #expect(name(chat.state) == "open")
        try await chat.send("bye")
        await clock.advance(by: .zero)
        guard case .waiting(let date, let error) = chat.state else {
            Issue.record("the state is \(chat.state)")
            return
        }
        #expect(urlCode(error) == .networkConnectionLost)
        #expect((1...1.5).contains(date.timeIntervalSince(clock.date)))
        await clock.advance(by: .seconds(date.timeIntervalSince(clock.date) + 0.001))
        guard case .waiting(let later, let refusal) = chat.state else {
            Issue.record("the state is \(chat.state)")
            return
        }
        #expect((refusal as? WebServiceError)?.status == 503)
        #expect((2...3).contains(later.timeIntervalSince(clock.date)))
        await clock.advance(by: .seconds(3))
        #expect(name(chat.state) == "open")
        try await chat.close()
        #expect(name(chat.state) == "closed")
        await observer.value
        #expect(names.values.first == "open")
        #expect(names.values.filter { $0 != "connecting" } == ["open", "waiting", "waiting", "open", "closed"])
        // A later observer receives the last state.
        #expect(await chat.states.map { name($0) }.reduce(into: []) { $0.append($1) } == ["closed"])
    }

    @Test("The state is connecting until `onOpen` has returned")
    func connecting() async throws {
        let gate = Once<Bool>()
        Permit.atEnd { gate.set(true) }
        let (chat, _) = try await make([collector(1)]) { _ in _ = await gate.value }
        #expect(name(chat.state) == "connecting")
        #expect(code(await failure { try await chat.send("early") }) == .webSocketNotOpen)
        #expect(code(await failure { _ = try await chat.ping() }) == .webSocketNotOpen)
        gate.set(true)
        await eventually { name(chat.state) == "open" }
        #expect(try await chat.ping() == .zero)
    }

    @Test("A final refusal closes the handle with its error, which every call throws")
    func refused() async throws {
        let (chat, _) = try await make([collector(1, losingAfter: 0), .status(403)], maximumQueuedMessages: 2)
        let sending = await send("queued", chat)
        await clock.advance(by: .seconds(2))
        #expect((await sending.value as? WebServiceError)?.status == 403)
        guard case .closed(let error) = chat.state else {
            Issue.record("the state is \(chat.state)")
            return
        }
        #expect((error as? WebServiceError)?.status == 403)
        #expect((await failure { try await chat.send("late") } as? WebServiceError)?.status == 403)
        #expect((await failure { _ = try await chat.ping() } as? WebServiceError)?.status == 403)
        #expect((await failure { _ = try await chat.message(within: .zero) } as? WebServiceError)?.status == 403)
        try await chat.close()
    }

    // MARK: Sending

    @Test("Without a queue, messages are refused while the connection is not open")
    func noQueue() async throws {
        let (chat, _) = try await make([collector(1, losingAfter: 1), collector(2)])
        try await chat.send("a")
        await clock.advance(by: .zero)
        let error = await failure { try await chat.send("b") }
        #expect(code(error) == .webSocketNotOpen)
        #expect(urlCode((error as? WebServiceError)?.underlying) == .networkConnectionLost)
        await clock.advance(by: .seconds(2))
        try await chat.send("c")
        await clock.advance(by: .zero)
        #expect(received.values == ["1 a", "2 c"])
    }

    @Test("Queued messages are sent in order, after `onOpen` and before later ones")
    func queue() async throws {
        let (chat, _) = try await make(
            [collector(1, losingAfter: 1), .status(503), collector(2)], maximumQueuedMessages: 3
        ) { socket in try await socket.send("hello") }
        await clock.advance(by: .zero)
        #expect(received.values == ["1 hello"])
        var sends: [Task<(any Error)?, Never>] = []
        for text in ["a", "b", "c"] { sends.append(await send(text, chat)) }
        #expect(chat.bufferedByteCount == 3)
        #expect(code(await failure { try await chat.send("d") }) == .webSocketNotOpen)
        #expect(chat.bufferedByteCount == 3)
        await clock.advance(by: .seconds(10))
        for send in sends { #expect(await send.value == nil) }
        #expect(chat.bufferedByteCount == 0)
        try await chat.send("e")
        await clock.advance(by: .zero)
        #expect(received.values == ["1 hello", "2 hello", "2 a", "2 b", "2 c", "2 e"])
    }

    @Test("Cancelling a Swift task removes its message from the queue")
    func cancelled() async throws {
        let (chat, _) = try await make(
            [collector(1, losingAfter: 0), collector(2)], maximumQueuedMessages: 2)
        let (first, second) = (await send("a", chat), await send("b", chat))
        first.cancel()
        #expect(urlCode(await first.value) == .cancelled)
        #expect(chat.bufferedByteCount == 1)
        let third = await send("c", chat)
        await clock.advance(by: .seconds(2))
        #expect(await second.value == nil)
        #expect(await third.value == nil)
        #expect(received.values == ["2 b", "2 c"])
    }

    @Test("A message whose sending was interrupted fails, is not sent again, and the others are")
    func interrupted() async throws {
        let connection = Once<MockWebSocket>()
        let gate = Once<Bool>()
        Permit.atEnd { gate.set(true) }
        let deaf = MockResponse.webSocket(compresses: false) { socket in
            connection.set(socket)
            _ = await gate.value
        }
        let (chat, _) = try await make([.status(503), deaf, collector(3)], maximumQueuedMessages: 3)
        // The first one fills the buffer of the server, so that most of the second one is not read.
        let large = String(repeating: "x", count: 1 << 20)
        let (first, second, third) = (await send(large, chat), await send(large, chat), await send("a", chat))
        await clock.advance(by: .seconds(2))
        #expect(name(chat.state) == "open")
        #expect(await first.value == nil)
        #expect(chat.bufferedByteCount == large.utf8.count + 1)
        // An open connection accepts any number of messages, and three of them remain when it is
        // lost.
        let (fourth, fifth, last) = (await send("b", chat), await send("c", chat), await send("d", chat))
        #expect(chat.bufferedByteCount == large.utf8.count + 4)
        await connection.value.disconnect()
        await clock.advance(by: .zero)
        #expect(urlCode(await second.value) == .networkConnectionLost)
        #expect(code(await last.value) == .webSocketNotOpen)
        #expect(chat.bufferedByteCount == 3)
        await clock.advance(by: .seconds(10))
        for send in [third, fourth, fifth] { #expect(await send.value == nil) }
        #expect(received.values == ["3 a", "3 b", "3 c"])
    }

    @Test(
        "Over connections that are lost again and again, no message arrives twice or out of order",
        arguments: SocketTransport.allCases)
    func losses(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        let received = Collected<Int>()
        stubs.on(.GET, "/chat") { _ in
            .webSocket { socket in
                for _ in 0..<7 {
                    guard case .text(let text)? = try await socket.next() else { return }
                    received.add(Int(text) ?? -1)
                }
                socket.disconnect()
            }
        }
        let chat = service.reconnectingWebSocket(
            "/chat", reconnection: .reconnecting(baseDelay: .milliseconds(1), maximumDelay: .milliseconds(2)),
            maximumQueuedMessages: 1)
        // What a lost connection has accepted may be lost, so the number of messages is not known.
        var number = 0
        while received.values.count < 60, number < 1_000_000 {
            number += 1
            _ = await failure { try await chat.send("\(number)") }
        }
        try await chat.close()
        let numbers = received.values
        #expect(numbers == Set(numbers).sorted())
        #expect(numbers.count >= 60)
    }

    // MARK: Closing

    /// The states in which a handle is closed.
    enum Phase: CaseIterable, Sendable { case connecting, opening, open, waiting }

    @Test("Closing ends the handle in each state, and the queued messages", arguments: Phase.allCases)
    func close(_ phase: Phase) async throws {
        let gate = Once<Bool>()
        Permit.atEnd { gate.set(true) }
        let closures = Collected<WebSocketClosure?>()
        let server = MockResponse.webSocket { socket in
            _ = await failure { while try await socket.next() != nil {} }
            closures.add(socket.closure)
        }
        let response: MockResponse =
            switch phase {
            case .connecting: server.after(.seconds(20))
            case .waiting: .status(503)
            case .opening, .open: server
            }
        let (chat, service) = try await make([response], maximumQueuedMessages: 1) { _ in
            if phase == .opening { _ = await gate.value }
        }
        #expect(
            name(chat.state) == [.open: "open", .waiting: "waiting"][phase, default: "connecting"])
        let queued = phase == .open ? nil : await send("queued", chat)
        let reader = Task(executorPreference: clock.executor) { try await chat.messages.first { _ in true } }
        await clock.advance(by: .zero)
        let closing = Task(executorPreference: clock.executor) { try await chat.close(.policyViolation) }
        await clock.advance(by: .seconds(1))
        try await closing.value
        #expect(name(chat.state) == "closed")
        #expect(try await reader.value == nil)
        if let queued { #expect(code(await queued.value) == .webSocketClosed) }
        #expect(code(await failure { try await chat.send("late") }) == .webSocketClosed)
        #expect(code(await failure { _ = try await chat.message(within: .zero) }) == .webSocketClosed)
        if phase == .open || phase == .opening {
            #expect(await closures.wait() == [WebSocketClosure(.policyViolation)])
        }
        await clock.advance(by: .seconds(60))
        #expect(service.exchanges.isEmpty)
        try await chat.close()
    }

    @Test("A code that cannot be sent does not close the handle")
    func invalidCode() async throws {
        let (chat, _) = try await make([collector(1)])
        #expect(code(await failure { try await chat.close(WebSocketClosure.Code(rawValue: 1005)) }) == .encoding)
        #expect(code(await failure { try await chat.close(reason: String(repeating: "x", count: 124)) }) == .encoding)
        #expect(name(chat.state) == "open")
    }

    @Test("`onOpen` may close the handle")
    func closeInOnOpen() async throws {
        let handle = Mutex<ReconnectingWebSocket?>(nil)
        let (chat, _) = try await make([.status(503), collector(1)]) { _ in
            try await handle.withLock { $0.take() }?.close()
        }
        handle.withLock { $0 = chat }
        await clock.advance(by: .seconds(10))
        #expect(name(chat.state) == "closed")
    }

    @Test("Releasing the handle closes the connection with the code 1001", arguments: SocketTransport.allCases)
    func released(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        let closures = Collected<WebSocketClosure?>()
        stubs.on(
            .GET, "/chat",
            .webSocket { socket in
                while try await socket.next() != nil {}
                closures.add(socket.closure)
            })
        var chat: ReconnectingWebSocket? = service.reconnectingWebSocket("/chat")
        let states = try #require(chat?.states)
        await eventually { if case .open? = chat?.state { true } else { false } }
        chat = nil
        #expect(await closures.wait() == [WebSocketClosure(.goingAway)])
        // The sequence of states ends.
        #expect(await states.map { name($0) }.reduce("") { $1 } == "closed")
        await eventually { service.exchanges.isEmpty }
    }

    @Test("`cancelAll` ends the handle, also between two connections", arguments: [true, false])
    func cancelAll(isOpen: Bool) async throws {
        let (chat, service) = try await make([isOpen ? collector(1) : .status(503)], maximumQueuedMessages: 1)
        let queued = isOpen ? nil : await send("queued", chat)
        service.cancelAll()
        await clock.advance(by: .zero)
        #expect(name(chat.state) == "failed")
        if let queued { #expect(urlCode(await queued.value) == .cancelled) }
        #expect(urlCode(await failure { try await chat.send("late") }) == .cancelled)
        #expect(urlCode(await failure { for try await _ in chat.messages {} }) == .cancelled)
        #expect(service.exchanges.isEmpty)
    }

    @Test("`cancelAll` ends the handle, also when the next handshake has not begun")
    func cancelAllBeforeHandshake() async throws {
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(.GET, "/chat", [.status(503), collector(2)])
        let requests = Collected<Void>()
        let chat = service.reconnectingWebSocket(
            "/chat",
            configuring: { _ in
                requests.add(())
                if requests.values.count == 2 { service.cancelAll() }
            })
        await clock.advance(by: .seconds(10))
        guard case .closed(let error) = chat.state else {
            Issue.record("the state is \(chat.state)")
            return
        }
        #expect(urlCode(error) == .cancelled)
        #expect(service.exchanges.isEmpty)
    }

    @Test("Cancelling a reader ends the handle, also between two connections", arguments: [true, false])
    func readerCancelled(isOpen: Bool) async throws {
        let (chat, service) = try await make([isOpen ? collector(1) : .status(503)])
        let reader = Task(executorPreference: clock.executor) {
            await failure { for try await _ in chat.messages {} }
        }
        await clock.advance(by: .zero)
        reader.cancel()
        #expect(urlCode(await reader.value) == .cancelled)
        await clock.advance(by: .zero)
        #expect(name(chat.state) == "failed")
        #expect(urlCode(await failure { for try await _ in chat.messages {} }) == .cancelled)
        #expect(service.exchanges.isEmpty)
    }

    // MARK: Receiving

    @Test("A timeout of one message includes the time without a connection, and loses nothing")
    func messageWithin() async throws {
        let (chat, _) = try await make([.status(503), .webSocket { try await $0.send("1") }, .status(404)])
        let first = Task(executorPreference: clock.executor) { try await chat.message(within: .milliseconds(500)) }
        await clock.advance(by: .milliseconds(500))
        #expect(try await first.value == nil)
        #expect(name(chat.state) == "waiting")
        let second = Task(executorPreference: clock.executor) { try await chat.message(within: .seconds(5)) }
        await clock.advance(by: .seconds(2))
        #expect(try await second.value == .text("1"))
    }

    @Test("The connection is opened again without a reader, and no message is lost")
    func noReader() async throws {
        let server = MockResponse.webSocket { try await $0.send("\($0.request.headers["X-Number"] ?? "")") }
        let number = Collected<Void>()
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(.GET, "/chat", [server, server, server, .status(404)])
        let chat = service.reconnectingWebSocket(
            "/chat",
            configuring: { request in
                number.add(())
                request.headers["X-Number"] = "\(number.values.count)"
            })
        await clock.advance(by: .seconds(60))
        #expect(name(chat.state) == "failed")
        let texts = Collected<WebSocketMessage>()
        let error = await failure { for try await message in chat.messages { texts.add(message) } }
        #expect(texts.values == [.text("1"), .text("2"), .text("3")])
        #expect((error as? WebServiceError)?.status == 404)
    }

    @Test("Unread messages of earlier connections delay the next one")
    func unreadMessages() async throws {
        let server = MockResponse.webSocket(compresses: false) { socket in
            for _ in 1...3 { try await socket.send(Data(count: 1_000)) }
        }
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(.GET, "/chat") { _ in server }
        var options = WebSocket.Options()
        options.bufferSize = 8_000
        let chat = service.reconnectingWebSocket("/chat", options: options)
        await clock.advance(by: .seconds(3_600))
        #expect(stubs.receivedRequests.count == 3)
        #expect(name(chat.state) == "waiting")
        #expect(service.exchanges.map(\.kind) == [.reconnection])
        let reader = Task(executorPreference: clock.executor) {
            var messages = chat.messages.makeAsyncIterator()
            for _ in 1...3 { _ = try await messages.next() }
        }
        await clock.advance(by: .seconds(3_600))
        try await reader.value
        #expect(stubs.receivedRequests.count == 4)
        service.cancelAll()
        await clock.advance(by: .zero)
        #expect(name(chat.state) == "failed")
    }

    @Test("A half-open connection is detected, and replaced", arguments: SocketTransport.allCases)
    func halfOpen(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make(clock: clock)
        let silent = MockResponse.webSocket(respondsToPings: false) { _ = try await $0.next() }
        stubs.on(.GET, "/chat", [silent, .echo])
        let chat = service.reconnectingWebSocket("/chat")
        await eventually { if case .open = chat.state { true } else { false } }
        await clock.advance(by: .seconds(60))
        await eventually { if case .waiting = chat.state { true } else { false } }
        guard case .waiting(_, let error) = chat.state else { return }
        #expect(urlCode(error) == .timedOut)
        await clock.advance(by: .seconds(2))
        await eventually { if case .open = chat.state { true } else { false } }
        try await chat.send("hello")
        #expect(try await chat.messages.first { _ in true } == .text("hello"))
    }
}
