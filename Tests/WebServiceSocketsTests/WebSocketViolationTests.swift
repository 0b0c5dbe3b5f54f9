import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

@Suite("WebSocket: servers that violate the protocol", .permit)
struct WebSocketViolationTests {
    /// Bytes of a server, with the error and the close code that follow them.
    struct Violation: Sendable, CustomTestStringConvertible {
        let rule: String
        let bytes: [UInt8]
        var error = WebServiceError.Code.webSocketViolation
        var closeCode = WebSocketClosure.Code.protocolError

        var testDescription: String { rule }
    }

    static let violations = [
        Violation(rule: "is masked", bytes: [0x81, 0x81, 1, 2, 3, 4, 0x60]),
        Violation(rule: "reserved bit", bytes: [0xA1, 0x00]),
        Violation(rule: "reserved opcode", bytes: [0x83, 0x00]),
        Violation(
            rule: "control frame has more than 125 bytes",
            bytes: [0x89, 0x7E, 0x00, 0x7E] + Array(repeating: 0, count: 126)),
        Violation(rule: "control frame is fragmented", bytes: [0x09, 0x00]),
        Violation(rule: "does not follow a fragment", bytes: [0x80, 0x00]),
        Violation(rule: "before the last fragment", bytes: [0x01, 0x00, 0x81, 0x00]),
        Violation(rule: "more bytes than necessary", bytes: [0x82, 0x7E, 0x00, 0x01, 0x00]),
        Violation(rule: "only one byte", bytes: [0x88, 0x01, 0x03]),
        Violation(rule: "a code that cannot be sent", bytes: [0x88, 0x02, 0x03, 0xED]),
        Violation(
            rule: "the reason of a Close frame", bytes: [0x88, 0x03, 0x03, 0xE8, 0xFF], closeCode: .invalidPayload),
        Violation(rule: "text message is not UTF-8", bytes: [0x81, 0x02, 0xC3, 0x28], closeCode: .invalidPayload),
        Violation(
            rule: "frame is larger", bytes: [0x82, 0x7F, 0, 0, 1, 0, 0, 0, 0, 0], error: .elementTooLarge,
            closeCode: .messageTooBig),
    ]

    @Test(
        "A violation ends the connection with the code of its rule, and the error names the rule",
        arguments: violations, SocketTransport.allCases)
    func violation(_ violation: Violation, _ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        let closures = Collected<WebSocketClosure?>()
        stubs.on(
            .GET, "/chat",
            .webSocket(compresses: false) { socket in
                try await socket.send(raw: Data(violation.bytes))
                _ = await failure { while try await socket.next() != nil {} }
                closures.add(socket.closure)
            })
        let socket = try await service.webSocket("/chat")
        let error = await failure { for try await _ in socket.messages {} }
        #expect(code(error) == violation.error)
        let message = (error as? WebServiceError)?.message ?? ""
        #expect(message.contains(violation.rule))
        await eventually { closures.values.count == 1 }
        #expect(closures.values.first??.code == violation.closeCode)
    }

    @Test(
        "The Close frame arrives although the server continues to send",
        arguments: SocketTransport.allCases)
    func continues(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        let closures = Collected<WebSocketClosure?>()
        stubs.on(
            .GET, "/chat",
            .webSocket(compresses: false) { socket in
                // Sending fails once the Close frame has arrived.
                _ = await failure {
                    try await socket.send(raw: Data([0x83, 0x00]))
                    for _ in 0..<100 { try await socket.send(raw: Data(count: 64 << 10)) }
                }
                _ = await failure { while try await socket.next() != nil {} }
                closures.add(socket.closure)
            })
        let socket = try await service.webSocket("/chat")
        #expect(code(await failure { for try await _ in socket.messages {} }) == .webSocketViolation)
        await eventually { closures.values == [WebSocketClosure(.protocolError)] }
    }

    @Test(
        "A message that is larger than the limit after decompression is an error",
        arguments: SocketTransport.allCases)
    func decompressionBomb(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/bomb", .webSocket { socket in try await socket.send(Data(count: 64 << 20)) })
        var options = WebSocket.Options()
        options.maximumMessageBytes = 1 << 20
        let socket = try await service.webSocket("/bomb", options: options)
        let error = await failure { for try await _ in socket.messages {} }
        #expect(code(error) == .elementTooLarge)
    }

    @Test("Endless fragments are an error")
    func endlessFragments() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(
            .GET, "/chat",
            .webSocket { socket in
                try await socket.send(raw: Data([0x02, 0x00]))
                while true { try await socket.send(raw: Data([0x00, 0x00])) }
            })
        var options = WebSocket.Options()
        options.maximumFragmentCount = 100
        let socket = try await service.webSocket("/chat", options: options)
        let error = await failure { for try await _ in socket.messages {} }
        #expect(code(error) == .elementTooLarge)
    }

    @Test(
        "A response that does not correspond to the handshake is an error",
        arguments: [
            ["Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="],
            ["Upgrade": "h2c", "Connection": "Upgrade"],
            [:],
        ])
    func handshake(_ fields: [String: String]) async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/chat", MockResponse(statusCode: 101, headers: fields))
        let error = await failure { _ = try await service.webSocket("/chat") }
        #expect(code(error) == .webSocketHandshake)
    }

    @Test("A response without a change of the protocol is an error")
    func unchangedProtocol() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/chat", .text("hello"))
        let error = await failure { _ = try await service.webSocket("/chat") }
        #expect(code(error) == .webSocketHandshake)
        #expect((error as? WebServiceError)?.response?.status == 200)
    }
}
