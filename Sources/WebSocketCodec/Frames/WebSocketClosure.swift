package import WebServiceCore

extension WebSocketClosure {
    /// The maximum size of the reason, in bytes of UTF-8.
    package static let maximumReasonLength = FrameHeader.maximumControlLength - 2

    /// Returns the code and the reason in the payload of a Close frame.
    ///
    /// - Returns: `nil` for an empty payload.
    static func parse(_ payload: some Collection<UInt8>) throws(WebSocketViolation) -> WebSocketClosure? {
        guard !payload.isEmpty else { return nil }
        guard payload.count >= 2 else { throw .incompleteCloseCode }
        let code = Code(rawValue: payload.prefix(2).reduce(0) { $0 << 8 | UInt16($1) })
        guard code.isValid else { throw .invalidCloseCode }
        guard let reason = String(validating: payload.dropFirst(2), as: UTF8.self) else { throw .invalidReason }
        return WebSocketClosure(code, reason: reason)
    }

    /// Verifies that a Close frame can contain the code and the reason.
    func validate() throws(WebSocketSendError) {
        guard code.isValid else { throw .invalidCloseCode }
        guard reason.utf8.count <= Self.maximumReasonLength else { throw .reasonTooLong }
    }

    /// The payload of a Close frame.
    var payload: [UInt8] {
        [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + reason.utf8
    }
}
