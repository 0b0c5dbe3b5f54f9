package import Foundation
package import WebServiceCore

/// The state machine of one endpoint of a connection after the handshake (RFC 6455, RFC 7692).
///
/// The state machine performs no I/O. The caller passes received bytes to `receive(_:)`, and sends
/// the bytes of ``takeOutput(minimumCount:)`` after each event, because a violation replaces output
/// that was not taken. The state is confined to its owner.
package struct WebSocketStateMachine: ~Copyable {
    /// The phase of a connection.
    package enum Phase: Sendable, Hashable {
        case open
        /// A Close frame was sent. Messages of the peer are still received.
        case closing
        /// Both endpoints have sent a Close frame. As soon as the output is sent, a server closes
        /// the byte connection, and a client waits for the byte connection to end, up to a timeout
        /// (section 7.1.1).
        case closed
        /// The peer has violated the protocol, or the byte connection has ended without a Close
        /// frame. The output usually ends with a Close frame (section 7.1.7). The byte connection
        /// is then closed as in the phase ``closed``.
        case failed
    }

    package let role: WebSocketRole
    package internal(set) var phase = Phase.open
    let options: WebSocketOptions
    var parser: FrameParser
    var assembler: MessageAssembler
    /// The payload of the control frame that is being received.
    var controlPayload: [UInt8] = []
    var output = FrameQueue()
    var generator: any RandomNumberGenerator & Sendable

    let zlib: Zlib?
    /// The state of the extension, which the first compressed message creates.
    var deflater: MessageDeflater?
    /// Whether messages are compressed.
    var compresses: Bool

    /// - Parameter generator: The source of the masking keys of a client.
    package init(
        _ role: WebSocketRole, _ options: WebSocketOptions = WebSocketOptions(), zlib: Zlib? = .system,
        generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.role = role
        self.options = options
        self.zlib = zlib
        self.generator = generator
        parser = FrameParser(
            role: role, allowsCompression: options.deflate != nil, maximumLength: options.limits.maximumFrameLength)
        assembler = MessageAssembler(role: role, limits: options.limits, deflate: options.deflate, zlib: zlib)
        compresses = options.deflate.map { MessageDeflater.windowBits.contains($0.windowBits(from: role)) } ?? false
    }

    /// The number of bytes that wait to be sent.
    package var outputCount: Int { output.count }

    /// The number of bytes of all frames that were added so far, without those of pongs. The last
    /// message has been taken when ``takenCount`` reaches this number.
    package var addedCount: Int { output.addedCount }

    /// The number of bytes of all frames that ``takeOutput(minimumCount:)`` has returned so far,
    /// without those of pongs.
    package var takenCount: Int { output.takenCount }

    /// Removes complete frames from the output, and returns their bytes.
    ///
    /// - Parameter minimumCount: The number of bytes after which no more frames are added.
    /// - Returns: `nil` if there is nothing to send.
    package mutating func takeOutput(minimumCount: Int = 64 << 10) -> Data? {
        output.takeFirst(minimumCount: minimumCount)
    }

    /// Ends the connection, because the byte connection has ended.
    ///
    /// - Returns: ``WebSocketViolation/missingClose``, once, if the peer has not sent a Close
    ///   frame.
    package mutating func connectionEnded() -> WebSocketEvent? {
        switch phase {
        case .open, .closing: fail(.missingClose)
        case .closed, .failed: nil
        }
    }

    /// Ends the connection with the Close frame that the violation requires.
    mutating func fail(_ violation: WebSocketViolation) -> WebSocketEvent {
        let sendsClose = phase == .open
        phase = .failed
        if sendsClose {
            output.removeAll()
            if let code = violation.closeCode { output.append(controlFrame(.close, WebSocketClosure(code).payload)) }
        }
        return .failed(violation)
    }

    /// Returns a control frame.
    mutating func controlFrame(_ opcode: Opcode, _ payload: some Collection<UInt8>) -> Data {
        var frame = Data()
        FrameHeader.append(FrameHeader(opcode, maskingKey: nextMaskingKey()), payload, to: &frame)
        return frame
    }

    /// Returns the key for the next frame; `nil` for a server.
    mutating func nextMaskingKey() -> MaskingKey? {
        role == .client ? MaskingKey(UInt32(truncatingIfNeeded: generator.next())) : nil
    }
}
