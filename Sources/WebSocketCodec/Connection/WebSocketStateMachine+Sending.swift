package import Foundation
package import WebServiceCore

extension WebSocketStateMachine {
    /// Adds a message to the output.
    package mutating func send(_ message: WebSocketMessage) throws(WebSocketSendError) {
        guard phase == .open else { throw .closed }
        switch message {
        case .text(var text): text.withUTF8 { enqueue(.text, UnsafeRawBufferPointer($0)) }
        case .data(let data): data.withUnsafeBytes { enqueue(.binary, $0) }
        }
    }

    /// Adds a ping to the output.
    ///
    /// - Parameter payload: The payload, at most 125 bytes, which the peer returns in its pong.
    package mutating func ping(_ payload: Data = Data()) throws(WebSocketSendError) {
        guard phase == .open else { throw .closed }
        guard payload.count <= FrameHeader.maximumControlLength else { throw .payloadTooLong }
        output.append(controlFrame(.ping, payload))
    }

    /// Adds a Close frame to the output. No messages can be sent after it. Further calls have no
    /// effect.
    package mutating func close(
        _ code: WebSocketClosure.Code = .normalClosure, reason: String = ""
    ) throws(WebSocketSendError) {
        let closure = WebSocketClosure(code, reason: reason)
        try closure.validate()
        guard phase == .open else { return }
        phase = .closing
        output.append(controlFrame(.close, closure.payload))
    }

    private mutating func enqueue(_ opcode: Opcode, _ content: UnsafeRawBufferPointer) {
        guard compresses, content.count >= options.minimumCompressedLength, let compressed = compress(content) else {
            enqueueFrames(FrameHeader(opcode), content)
            return
        }
        compressed.withUnsafeBytes { enqueueFrames(FrameHeader(opcode, isCompressed: true), $0) }
    }

    /// Returns the compressed message; `nil` if zlib fails. Messages are then sent uncompressed.
    private mutating func compress(_ content: UnsafeRawBufferPointer) -> Data? {
        if deflater == nil, let zlib, let deflate = options.deflate {
            deflater = MessageDeflater(
                zlib, windowBits: deflate.windowBits(from: role),
                hasContextTakeover: deflate.hasContextTakeover(from: role))
        }
        let compressed = deflater?.compress(content)
        if compressed == nil { (compresses, deflater) = (false, nil) }
        return compressed
    }

    /// Adds the frames of a message.
    ///
    /// - Parameter first: The header of the first frame, without a length.
    private mutating func enqueueFrames(_ first: FrameHeader, _ payload: UnsafeRawBufferPointer) {
        var (header, rest) = (first, payload)
        repeat {
            let part = rest.removePrefix(max(1, options.maximumSentFrameLength))
            header.isFinal = rest.isEmpty
            header.maskingKey = nextMaskingKey()
            var frame = Data()
            FrameHeader.append(header, part, to: &frame)
            output.append(frame)
            header = FrameHeader(.continuation)
        } while !rest.isEmpty
    }
}
