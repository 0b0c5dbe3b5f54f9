import Foundation
import TestSupport
import WebServiceCore

@testable import WebSocketCodec

/// A state machine as an object, with deterministic masking keys.
final class Endpoint {
    private var machine: WebSocketStateMachine

    init(_ role: WebSocketRole, _ options: WebSocketOptions = .make(), zlib: Zlib? = .system) {
        machine = WebSocketStateMachine(role, options, zlib: zlib, generator: SeededGenerator(seed: 1))
    }

    var phase: WebSocketStateMachine.Phase { machine.phase }
    var outputCount: Int { machine.outputCount }

    /// Receives bytes at once.
    func receive(_ bytes: [UInt8]) -> [WebSocketEvent] { machine.receive(bytes) }

    /// Receives bytes in pieces.
    func receive(_ bytes: [UInt8], by size: Int) -> [WebSocketEvent] {
        stride(from: 0, to: bytes.count, by: size).flatMap { receive(Array(bytes[$0..<min($0 + size, bytes.count)])) }
    }

    /// Receives bytes up to the next event, and returns the number of the others.
    func receiveOne(_ bytes: [UInt8]) -> (WebSocketEvent?, rest: Int) {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes
            return (machine.receive(&rest), rest.count)
        }
    }

    /// Removes all output.
    func output() -> [UInt8] {
        var bytes: [UInt8] = []
        while let part = machine.takeOutput() { bytes += part }
        return bytes
    }

    /// Removes the output, as frames without masks.
    func frames() -> [TestFrame] { TestFrame.parse(output(), from: machine.role) }

    func takeOutput(minimumCount: Int) -> Data? { machine.takeOutput(minimumCount: minimumCount) }

    func send(_ message: WebSocketMessage) throws { try machine.send(message) }
    func send(_ text: String) throws { try machine.send(.text(text)) }
    func ping(_ payload: Data) throws { try machine.ping(payload) }
    func close(_ code: WebSocketClosure.Code, reason: String = "") throws { try machine.close(code, reason: reason) }
    func connectionEnded() -> WebSocketEvent? { machine.connectionEnded() }
}

extension WebSocketOptions {
    static func make(
        deflate: DeflateParameters? = nil, limits: WebSocketLimits = WebSocketLimits(), minimumCompressed: Int = 0,
        sentFrame: Int = 128 << 10
    ) -> WebSocketOptions {
        var options = WebSocketOptions()
        options.deflate = deflate
        options.limits = limits
        options.minimumCompressedLength = minimumCompressed
        options.maximumSentFrameLength = sentFrame
        return options
    }
}

extension WebSocketLimits {
    static func make(frame: Int = 16 << 20, message: Int = 16 << 20, fragments: Int = 1 << 18) -> WebSocketLimits {
        var limits = WebSocketLimits()
        limits.maximumFrameLength = frame
        limits.maximumMessageLength = message
        limits.maximumFragmentCount = fragments
        return limits
    }
}

extension DeflateParameters {
    static func make(
        serverNoContext: Bool = false, clientNoContext: Bool = false, serverBits: Int = 15, clientBits: Int = 15
    ) -> DeflateParameters {
        var parameters = DeflateParameters()
        parameters.serverNoContextTakeover = serverNoContext
        parameters.clientNoContextTakeover = clientNoContext
        parameters.serverMaxWindowBits = serverBits
        parameters.clientMaxWindowBits = clientBits
        return parameters
    }
}
