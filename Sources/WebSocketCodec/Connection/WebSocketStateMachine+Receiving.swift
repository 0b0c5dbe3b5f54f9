package import Foundation
import WebServiceCore

extension WebSocketStateMachine {
    /// Processes received bytes, and returns all events that they complete.
    package mutating func receive(_ bytes: some ContiguousBytes) -> [WebSocketEvent] {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes
            var events: [WebSocketEvent] = []
            while let event = receive(&rest) { events.append(event) }
            return events
        }
    }

    /// Returns the next event, and removes the bytes up to its end from the front of `bytes`.
    ///
    /// The caller can pass the remaining bytes later, after it has processed the event. After the
    /// last event of a connection, all bytes are removed and ignored.
    ///
    /// - Returns: The event, or `nil` if all bytes were processed and completed no event.
    package mutating func receive(_ bytes: inout UnsafeRawBufferPointer) -> WebSocketEvent? {
        guard phase == .open || phase == .closing else {
            _ = bytes.removePrefix(bytes.count)
            return nil
        }
        do {
            while let part = try parser.next(&bytes) {
                if let event = try process(part) { return event }
            }
            return nil
        } catch {
            return fail(error)
        }
    }

    private mutating func process(_ part: FrameParser.Part) throws(WebSocketViolation) -> WebSocketEvent? {
        switch part {
        case .header(let header):
            if !header.opcode.isControl { try assembler.begin(header) }
            return nil
        case .payload(let bytes, let header, let offset):
            guard header.opcode.isControl else {
                try assembler.append(bytes, header, at: offset)
                return nil
            }
            controlPayload += bytes
            return nil
        case .end(let header):
            guard header.opcode.isControl else { return try assembler.end(header).map { .message($0) } }
            defer { controlPayload.removeAll(keepingCapacity: true) }
            controlPayload.withUnsafeMutableBytes { header.maskingKey?.apply(to: $0, at: 0) }
            return try process(header.opcode, controlPayload)
        }
    }

    /// Processes a control frame.
    private mutating func process(_ opcode: Opcode, _ payload: [UInt8]) throws(WebSocketViolation) -> WebSocketEvent? {
        switch opcode {
        case .ping:
            if phase == .open, options.respondsToPings { output.append(pong: controlFrame(.pong, payload)) }
            return .ping(Data(payload))
        case .pong:
            return .pong(Data(payload))
        case .close:
            let closure = try WebSocketClosure.parse(payload)
            if phase == .open {
                output.append(controlFrame(.close, closure.map { WebSocketClosure($0.code).payload } ?? []))
            }
            phase = .closed
            return .closed(closure)
        case .continuation, .text, .binary:
            return nil
        }
    }
}
