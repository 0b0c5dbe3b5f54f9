package import WebServiceCore

/// The rule of the protocol, or the limit of this endpoint, that a peer violates.
package enum WebSocketViolation: Error, Sendable, Hashable, CaseIterable {
    // Frames (RFC 6455, sections 5.1 to 5.5)
    case reservedBit
    case reservedOpcode
    case maskedFrame
    case unmaskedFrame
    case nonMinimalLength
    case invalidLength
    case fragmentedControlFrame
    case longControlFrame
    case unexpectedContinuation
    case missingContinuation

    // Close frames (sections 5.5.1 and 7.4)
    case incompleteCloseCode
    case invalidCloseCode
    case invalidReason
    case missingClose

    // Content of messages (section 8.1; RFC 7692, section 6.2)
    case invalidText
    case invalidCompression

    // Limits of this endpoint
    case frameTooLarge
    case messageTooLarge
    case tooManyFragments
    case outOfMemory

    /// The code of the Close frame with which the endpoint responds; `nil` if none can be sent.
    package var closeCode: WebSocketClosure.Code? {
        switch self {
        case .reservedBit, .reservedOpcode, .maskedFrame, .unmaskedFrame, .nonMinimalLength, .invalidLength,
            .fragmentedControlFrame, .longControlFrame, .unexpectedContinuation, .missingContinuation,
            .incompleteCloseCode, .invalidCloseCode:
            .protocolError
        case .invalidReason, .invalidText, .invalidCompression: .invalidPayload
        case .frameTooLarge, .messageTooLarge: .messageTooBig
        case .tooManyFragments: .policyViolation
        case .outOfMemory: .internalError
        case .missingClose: nil
        }
    }
}

extension WebSocketViolation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .reservedBit: "a frame sets a reserved bit that no extension defines"
        case .reservedOpcode: "a frame has a reserved opcode"
        case .maskedFrame: "a frame of the server is masked"
        case .unmaskedFrame: "a frame of the client is not masked"
        case .nonMinimalLength: "the length of a frame is encoded in more bytes than necessary"
        case .invalidLength: "the length of a frame has more than 63 bits"
        case .fragmentedControlFrame: "a control frame is fragmented"
        case .longControlFrame: "a control frame has more than 125 bytes"
        case .unexpectedContinuation: "a continuation frame does not follow a fragment of a message"
        case .missingContinuation: "a message starts before the last fragment of another one"
        case .incompleteCloseCode: "a Close frame has only one byte"
        case .invalidCloseCode: "a Close frame has a code that cannot be sent"
        case .invalidReason: "the reason of a Close frame is not UTF-8"
        case .missingClose: "the connection ended without a Close frame"
        case .invalidText: "a text message is not UTF-8"
        case .invalidCompression: "a compressed message cannot be decompressed"
        case .frameTooLarge: "a frame is larger than the limit"
        case .messageTooLarge: "a message is larger than the limit"
        case .tooManyFragments: "a message has more fragments than the limit"
        case .outOfMemory: "a message cannot be decompressed, because zlib could not allocate memory"
        }
    }
}
