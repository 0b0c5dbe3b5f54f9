import Foundation
import WebServiceCore
import WebSocketCodec

extension Cassette {
    /// A message of a WebSocket connection, or the Close frame of one of its endpoints.
    struct Frame: Codable, Sendable {
        enum Endpoint: String, Codable, Sendable {
            case client, server
        }

        var from: Endpoint
        /// The code of a Close frame, or ``noCode``; `nil` for a message.
        var close: UInt16?
        /// A text message, or the reason in a Close frame.
        var text: String?
        /// A binary message.
        var base64: Data?

        /// The value that represents a Close frame without a code. This value cannot be sent (RFC
        /// 6455, section 7.4.1).
        static let noCode: UInt16 = 1005
    }
}

extension Cassette.Frame {
    init(_ message: CassetteSession.Exchange.Message) {
        from = message.isReceived ? .server : .client
        switch message.content {
        case .message(.text(let message)): text = message
        case .message(.data(let message)): base64 = message
        case .close(let closure):
            close = closure?.code.rawValue ?? Self.noCode
            if let closure, !closure.reason.isEmpty { text = closure.reason }
        }
    }

    /// The content; `nil` if it is invalid. A damaged file or a `willRecord` closure can cause
    /// this.
    var content: CassetteSession.Exchange.Message.Content? {
        switch (close, text, base64) {
        case (nil, let text?, nil): return .message(.text(text))
        case (nil, nil, let data?): return .message(.data(data))
        case (Self.noCode?, nil, nil): return .close(nil)
        case (let code?, let reason, nil):
            let closure = WebSocketClosure(WebSocketClosure.Code(rawValue: code), reason: reason ?? "")
            guard closure.code.isValid, closure.shortened == closure else { return nil }
            return .close(closure)
        default: return nil
        }
    }

    var message: CassetteSession.Exchange.Message? {
        content.map { CassetteSession.Exchange.Message(isReceived: from == .server, content: $0) }
    }
}

extension WebSocketClosure {
    /// The closure with its reason truncated to the length that a Close frame allows.
    var shortened: WebSocketClosure {
        var (closure, bytes) = (self, Self.maximumReasonLength)
        closure.reason = String(
            reason.prefix { character in
                bytes -= character.utf8.count
                return bytes >= 0
            })
        return closure
    }
}

extension WebSocketMessage {
    var isText: Bool { if case .text = self { true } else { false } }
}

extension Cassette.Message {
    /// Creates a message whose body is the content of a WebSocket message. The media type
    /// determines how secrets in the body are recognized.
    init(_ message: WebSocketMessage) {
        let isText = message.isText || Self.text(of: message.bytes) != nil
        set(isText ? ["Content-Type": "text/plain"] : [:], message.bytes)
    }
}
