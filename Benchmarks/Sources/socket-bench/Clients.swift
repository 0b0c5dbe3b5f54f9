import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import WebServiceCore
import WebServiceCurl
import WebServiceSockets

/// A client to measure. Over one connection, it sends the next message when one comes back.
struct Client: Sendable {
    let name: String
    /// - Returns: The number of messages that came back.
    let run: @Sendable (Load) async throws -> Int

    static let own = "WebService over CurlSession"
    static let websockets = "Python's websockets"
    static let nio = "swift-nio, asynchronous channel"

    /// The clients that are part of this program.
    static let all = [Client(name: own, run: runOwn), Client(name: nio, run: runNIO)]

    private static func runOwn(_ load: Load) async throws -> Int {
        let service = WebService(baseURLString: "http://127.0.0.1:\(load.port)")
        service.session = try CurlSession()
        var options = WebSocket.Options()
        options.compresses = false
        let socket = try await service.webSocket("/", options: options)
        let message = load.message
        var progress = Progress(load)
        for _ in 0..<load.inFlight { try await socket.send(message) }
        for try await received in socket.messages {
            guard case .data(let data) = received else { throw Failure(description: "a message is text") }
            switch try progress.next(data.count) {
            case .send: try await socket.send(message)
            case .wait: break
            case .end:
                try await socket.close()
                return progress.count
            }
        }
        throw Failure(description: "the connection has ended")
    }

    private static func runNIO(_ load: Load) async throws -> Int {
        let upgrade = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .connect(host: "127.0.0.1", port: load.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let upgrader = NIOTypedWebSocketClientUpgrader<NIOAsyncChannel<WebSocketFrame, WebSocketFrame>?>(
                        maxFrameSize: 1 << 24
                    ) { channel, _ in
                        channel.eventLoop.makeCompletedFuture {
                            try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                        }
                    }
                    let head = HTTPRequestHead(
                        version: .http1_1, method: .GET, uri: "/", headers: ["Host": "127.0.0.1:\(load.port)"])
                    let configuration = NIOTypedHTTPClientUpgradeConfiguration(
                        upgradeRequestHead: head, upgraders: [upgrader]
                    ) { $0.eventLoop.makeSucceededFuture(nil) }
                    return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
                        configuration: .init(upgradeConfiguration: configuration))
                }
            }
        guard let channel = try await upgrade.get() else { throw Failure(description: "the handshake has failed") }
        return try await channel.executeThenClose { inbound, outbound in
            let message = ByteBuffer(bytes: load.message)
            func frame() -> WebSocketFrame {
                WebSocketFrame(fin: true, opcode: .binary, maskKey: .random(), data: message)
            }
            var progress = Progress(load)
            for _ in 0..<load.inFlight { try await outbound.write(frame()) }
            for try await received in inbound {
                guard received.opcode == .binary, received.fin else {
                    throw Failure(description: "a frame is not a message")
                }
                switch try progress.next(received.data.readableBytes) {
                case .send: try await outbound.write(frame())
                case .wait: break
                case .end: return progress.count
                }
            }
            throw Failure(description: "the connection has ended")
        }
    }
}

/// The messages of a run that have come back.
private struct Progress {
    enum Step { case send, wait, end }

    private(set) var count = 0
    private let length: Int
    private let end: ContinuousClock.Instant
    /// The number of messages in flight.
    private var inFlight: Int

    init(_ load: Load) {
        length = load.length
        inFlight = load.inFlight
        end = .now + .seconds(load.seconds)
    }

    /// Counts a message, and returns what follows it.
    mutating func next(_ received: Int) throws -> Step {
        guard received == length else {
            throw Failure(description: "a message has \(received) instead of \(length) bytes")
        }
        count += 1
        if ContinuousClock.now < end { return .send }
        inFlight -= 1
        return inFlight > 0 ? .wait : .end
    }
}
