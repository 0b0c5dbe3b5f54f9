/// The reason why a frame cannot be sent.
package enum WebSocketSendError: Error, Sendable, Hashable, CaseIterable {
    case closed
    case payloadTooLong
    case invalidCloseCode
    case reasonTooLong
}

extension WebSocketSendError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .closed: "the connection is closed or about to be closed"
        case .payloadTooLong: "the payload of a ping has more than 125 bytes"
        case .invalidCloseCode: "a Close frame cannot contain the code"
        case .reasonTooLong: "the reason has more than 123 bytes of UTF-8"
        }
    }
}
