import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

// Every snippet about WebSocket of Guide.md, Cookbook.md and the articles of WebServiceSockets, with
// its expected behavior. `DocumentationTests` verifies that none is missing.

@Suite("Snippets about WebSocket", .permit)
struct WebSocketSnippets {
    struct Tapping: Codable, Sendable {
        var tap: Int
        var beer: String
    }

    struct Price: Codable, Sendable {
        var symbol: String
        var cents: Int
    }

    struct Post: Codable, Sendable {
        var id: UUID
        var text: String
    }

    struct Chat: Sendable {
        let socket: ReconnectingWebSocket

        init(_ service: WebService, room: String) {
            socket = service.reconnectingWebSocket(
                "/chat", maximumQueuedMessages: 100,
                onOpen: { socket in try await socket.send(["join": room]) })
        }

        /// Sends a post. The server ignores an ID that it has already received.
        func send(_ text: String) async throws {
            let post = Post(id: UUID(), text: text)
            for _ in 1...3 {
                do {
                    return try await socket.send(post)
                } catch let error as URLError where error.code != .cancelled {
                    continue  // the connection was lost: send the post over the next one
                }
            }
            try await socket.send(post)
        }

        /// Descriptions of the state for the user: the current one, and one for each change.
        var status: some AsyncSequence<String, Never> {
            socket.states.map { state in
                switch state {
                case .connecting: "connecting"
                case .open: "online"
                case .waiting(let date, _): "offline until \(date.formatted())"
                case .closed: "closed"
                }
            }
        }
    }

    private let mock = MockService()
    private var service: WebService { mock.service }

    @Test("A chat selects a subprotocol, receives a value, and is closed")
    func chat() async throws {
        let received = Collected<WebSocketMessage>()
        mock.on(
            .path("/chat") && .header("X-Room", "brewers"),
            .webSocket(subprotocols: ["v1"]) { socket in
                while let message = try await socket.next() { received.add(message) }
            })
        let chat = try await service.webSocket("/chat", subprotocols: ["v2", "v1"]) { request in
            request.headers["X-Room"] = "brewers"
        }
        try await chat.send(Tapping(tap: 3, beer: "Lager"))
        try await chat.close()
        #expect(chat.subprotocol == "v1")
        #expect(chat.closure?.code == .normalClosure)
        #expect(try await received.wait().first?.decode(Tapping.self).beer == "Lager")
    }

    @Test("Messages are sent while others are received")
    func bothDirections() async throws {
        mock.on(
            .GET, "/echo",
            .webSocket { socket in
                while let message = try await socket.next() { try await socket.send(message) }
            })
        let lines = ["ale", "bock"]
        let socket = try await service.webSocket("/echo")
        async let sending: Void = {
            for line in lines { try await socket.send(line) }
            try await socket.close()
        }()
        for try await message in socket.messages {
            print("received \(message.byteCount) bytes")
        }
        try await sending
        #expect(socket.closure?.code == .normalClosure)
    }

    @Test("The options limit the messages of the server")
    func options() async throws {
        mock.on(
            .GET, "/feed",
            .webSocket { socket in
                try await socket.send(.data(Data(count: 2 << 20)))
                _ = try await socket.next()
            })
        var options = WebSocket.Options()
        options.maximumMessageBytes = 1 << 20
        options.pingInterval = .seconds(10)
        options.compresses = false
        let socket = try await service.webSocket("/feed", options: options)
        let error = await #expect(throws: WebServiceError.self) { for try await _ in socket.messages {} }
        #expect(error?.code == .elementTooLarge)
    }

    @Test("A subscription is sent again with each connection")
    func taps() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let service = mock.service
        let tap = MockResponse.webSocket { socket in
            guard try await socket.next() == .text("subscribe") else { return }
            try await socket.send(#"{"tap": 1, "beer": "Porter"}"#)
        }
        mock.on(.GET, "/taps", [tap, tap, .status(404)])
        let reader = Task(executorPreference: clock.executor) {
            let taps = service.reconnectingWebSocket(
                "/taps", onOpen: { socket in try await socket.send("subscribe") })
            for try await message in taps.messages {
                let tapping = try message.decode(Tapping.self)
                print(tapping.beer)
            }
        }
        await clock.advance(by: .seconds(10))
        let error = await #expect(throws: WebServiceError.self) { try await reader.value }
        #expect(error?.status == 404)
        #expect(mock.receivedRequests.count == 3)
    }

    @Test("Updates are decoded, and a malformed one is skipped")
    func updates() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let service = mock.service
        let updates = MockResponse.webSocket { socket in
            guard try await socket.next()?.decode() == ["subscribe": ["ALE", "BOCK"]] else { return }
            try await socket.send("{}")
            try await socket.send(#"{"symbol": "ALE", "cents": 450}"#)
        }
        mock.on(.GET, "/prices", [updates, .status(404)])
        let prices = Collected<Int>()
        let show: @Sendable (String, Int) -> Void = { _, cents in prices.add(cents) }
        let symbols = ["ALE", "BOCK"]
        let reader = Task(executorPreference: clock.executor) {
            let updates = service.reconnectingWebSocket(
                "/prices", reconnection: .reconnecting(maximumDelay: .seconds(10)),
                onOpen: { socket in try await socket.send(["subscribe": symbols]) })
            for try await message in updates.messages {
                guard let price = try? message.decode(Price.self) else { continue }  // not a price
                show(price.symbol, price.cents)
            }
        }
        await clock.advance(by: .seconds(2))
        let error = await #expect(throws: WebServiceError.self) { try await reader.value }
        #expect(error?.status == 404)
        #expect(prices.values == [450])
    }

    @Test("A monitor has a round trip and a status, or no status in time", arguments: [true, false])
    func monitor(hasStatus: Bool) async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let service = mock.service
        let received = Collected<WebSocketMessage?>()
        mock.on(
            .GET, "/monitor",
            .webSocket { socket in
                received.add(try await socket.next())
                if hasStatus { try await socket.send("green") }
                _ = try await socket.next()
            })
        let reader = Task(executorPreference: clock.executor) {
            let monitor = try await service.webSocket("/monitor")
            print(try await monitor.ping())
            try await monitor.send("status")
            if let status = try await monitor.message(within: .seconds(5)) {
                print(status)
            } else {
                print("no status, and \(monitor.bufferedByteCount) bytes wait to be sent")
            }
            return clock.elapsed
        }
        await clock.advance(by: .seconds(60))
        #expect(try await reader.value == (hasStatus ? .zero : .seconds(5)))
        #expect(received.values == [.text("status")])
    }

    @Test("A chat sends what was written without a connection, in order")
    func keptChat() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let service = mock.service
        let texts = Collected<String>()
        let join = #"{"join":"brewers"}"#
        mock.on(
            .GET, "/chat",
            [
                .status(503),
                .webSocket { socket in
                    guard try await socket.next() == .text(join) else { return }
                    while let message = try await socket.next() {
                        texts.add(try message.decode(Post.self).text)
                        try await socket.send(message)
                    }
                },
            ])
        let shown = Collected<String>()
        let show: @Sendable (String) -> Void = { shown.add($0) }
        let statuses = Collected<String>()
        let reader = Task(executorPreference: clock.executor) {
            let chat = Chat(service, room: "brewers")
            Task(executorPreference: clock.executor) {
                for await status in chat.status { statuses.add(status) }
            }
            Task(executorPreference: clock.executor) {
                for text in ["ale", "bock"] { try await chat.send(text) }
            }
            for try await post in chat.socket.messages(of: Post.self) {
                show(post.text)
                if post.text == "bock" { break }
            }
            try await chat.socket.close()
        }
        await clock.advance(by: .seconds(60))
        try await reader.value
        #expect(texts.values == ["ale", "bock"])
        #expect(shown.values == ["ale", "bock"])
        #expect(statuses.values.last == "closed")
        #expect(statuses.values.contains { $0.hasPrefix("offline until ") })
    }

    @Test("A chat shows the posts of others")
    func posts() async throws {
        mock.on(
            .GET, "/chat",
            .webSocket { socket in
                try await socket.send(Post(id: UUID(), text: "ale"))
                _ = try await socket.next()
                _ = try await socket.next()
            })
        let shown = Collected<String>()
        let show: @Sendable (String) -> Void = { shown.add($0) }
        let service = service
        let reader = Task {
            let chat = Chat(service, room: "brewers")
            for try await post in chat.socket.messages(of: Post.self) {
                show(post.text)
            }
        }
        #expect(await shown.wait() == ["ale"])
        reader.cancel()
        _ = await reader.result
    }

    @Test("A client is tested with a script")
    func script() async throws {
        let session = MockSession()
        session.on(
            .GET, "/prices",
            .webSocket { socket in
                guard try await socket.next() == .text("subscribe") else { return }
                try await socket.send(#"{"symbol": "ALE", "cents": 450}"#)
                try await socket.close(.policyViolation, reason: "too many subscriptions")
            })
        let service = WebService(baseURLString: "https://prices.test")
        service.session = session

        let socket = try await service.webSocket("/prices")
        try await socket.send("subscribe")
        var prices = socket.messages(of: Price.self).makeAsyncIterator()
        #expect(try await prices.next()?.cents == 450)
        let error = await #expect(throws: WebServiceError.self) { try await prices.next() }
        #expect(error?.code == .webSocketClosed)
        #expect(socket.closure?.code == .policyViolation)
    }

    @Test("A reconnection takes no real time")
    func reconnection() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.on(.GET, "/prices", [.status(503), .webSocket { socket in try await socket.send("open") }])
        let first = Task(executorPreference: clock.executor) {
            try await mock.service.reconnectingWebSocket("/prices").messages.first { _ in true }
        }
        await clock.advance(by: .seconds(2))
        #expect(try await first.value == .text("open"))
        #expect(mock.receivedRequests.count == 2)
    }
}
