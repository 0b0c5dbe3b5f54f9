public import Foundation
public import WebServiceCore
public import WebServiceMocking
import WebSocketCodec

/// The server's end of a WebSocket connection of a ``MockServer`` or a `MockSession`.
///
/// ```swift
/// server.on(.GET, "/echo", .webSocket { socket in
///     while let message = try await socket.next() { try await socket.send(message) }
/// })
/// ```
/// All members may be used from any thread.
public final class MockWebSocket: Sendable {
    /// The request of the handshake.
    public let request: ReceivedRequest

    /// The subprotocol of the connection; `nil` if there is none.
    public let subprotocol: String?

    let channel: WebSocketChannel
    private let connection: any ByteConnection

    /// - Parameter bytes: The bytes that were received after the handshake.
    init(
        _ request: ReceivedRequest, _ agreement: WebSocketAgreement, _ upgrade: MockResponse.WebSocketUpgrade,
        over connection: any ByteConnection, _ clock: TaskClock, bytes: Data
    ) {
        self.request = request
        subprotocol = agreement.subprotocol
        self.connection = connection
        var settings = WebSocketChannel.Settings()
        settings.protocolOptions.deflate = agreement.deflate
        settings.protocolOptions.respondsToPings = upgrade.respondsToPings
        channel = WebSocketChannel(.server, over: connection, settings, clock)
        channel.start(with: bytes)
    }

    /// Returns the next message of the client; `nil` after ``close(_:reason:)``, and after the
    /// client has closed the connection with code 1000 or 1001 or without a code.
    ///
    /// - Throws: The error with which the connection has ended.
    public func next() async throws -> WebSocketMessage? { try await channel.next() }

    /// Sends a message. Waits while the client does not read.
    public func send(_ message: WebSocketMessage) async throws { try await channel.send(message) }

    /// Sends a text message.
    public func send(_ text: String) async throws { try await channel.send(.text(text)) }

    /// Sends a binary message.
    public func send(_ data: Data) async throws { try await channel.send(.data(data)) }

    /// Sends a value as a text message, encoded as JSON.
    public func send(_ value: some Encodable) async throws {
        try await channel.send(.text(String(decoding: try JSONEncoder().encode(value), as: UTF8.self)))
    }

    /// Sends bytes unchanged, for example those of an invalid frame.
    ///
    /// Messages of earlier calls may still be buffered and then follow the bytes.
    public func send(raw bytes: Data) async throws { try await connection.send(bytes) }

    /// Closes the connection, and waits for the client to close it too, for at most 5 seconds.
    public func close(_ code: WebSocketClosure.Code = .normalClosure, reason: String = "") async throws {
        try await channel.close(code, reason: reason)
    }

    /// Closes the connection without a Close frame.
    public func disconnect() { channel.cancel() }

    /// The code and the reason with which the client has closed the connection; `nil` if it has not
    /// sent a code.
    public var closure: WebSocketClosure? { channel.closure }

    /// Runs a script, and then closes the connection.
    func run(_ script: MockResponse.WebSocketScript) async {
        var code = WebSocketClosure.Code.normalClosure
        do { try await script(self) } catch { code = .internalError }
        try? channel.beginClosing(code, reason: "")  // the code is valid
    }
}

extension MockResponse {
    /// A closure that uses the server's end of a connection.
    public typealias WebSocketScript = @Sendable (_ socket: MockWebSocket) async throws -> Void

    /// The acceptance of a handshake.
    package struct WebSocketUpgrade: Sendable {
        let subprotocols: [String]
        let compresses: Bool
        let respondsToPings: Bool
        let script: WebSocketScript
    }

    /// Returns a response that accepts the handshake of a WebSocket connection, and runs a script
    /// on the connection.
    ///
    /// After the script, the connection is closed with code 1000, or with 1011 if the script throws
    /// an error. A request that is not a valid handshake receives status 400, 405 or 426. `headers`
    /// are added to the response that accepts the handshake, and `delay` precedes the response.
    /// `wire` and the body have no effect.
    ///
    /// - Parameters:
    ///   - subprotocols: The supported subprotocols, in order of preference.
    ///   - compresses: Whether messages are compressed if the client supports compression (RFC
    ///     7692). Defaults to `true`.
    ///   - respondsToPings: Whether the server responds to the pings of the client. If it does not
    ///     and sends nothing else, a client considers the connection lost. Defaults to `true`.
    ///   - script: A closure that receives and sends the messages. On a server, its Swift task is
    ///     cancelled when the connection ends.
    public static func webSocket(
        subprotocols: [String] = [], compresses: Bool = true, respondsToPings: Bool = true,
        _ script: @escaping WebSocketScript
    ) -> MockResponse {
        var response = MockResponse(statusCode: 101)
        response.upgrade = WebSocketUpgrade(
            subprotocols: subprotocols, compresses: compresses, respondsToPings: respondsToPings, script: script)
        return response
    }

    /// Returns the response to a handshake, and the properties of the connection; no properties if
    /// the request is invalid and refused.
    func handshakeResponse(
        to request: ReceivedRequest, _ upgrade: WebSocketUpgrade
    ) -> (response: MockResponse, agreement: WebSocketAgreement?) {
        do {
            let handshake = try ServerHandshake(method: request.method.rawValue, headers: request.headers)
            let agreement = handshake.agreement(
                subprotocols: upgrade.subprotocols, deflate: upgrade.compresses ? DeflateParameters() : nil)
            var response = MockResponse(statusCode: 101)
            response.headers = handshake.fields(for: agreement).adding(headers)
            return (response.after(delay), agreement)
        } catch {
            var response = MockResponse(statusCode: error.status, text: "\(error)\n")
            response.headers = response.headers.adding(ServerHandshake.fields(for: error))
            return (response.after(delay), nil)
        }
    }
}
