/// The content of a Close frame (RFC 6455, section 5.5.1).
package struct WebSocketClosure: Sendable, Hashable {
    package var code: WebSocketCloseCode
    /// The reason, which is at most ``maximumReasonLength`` bytes of UTF-8.
    package var reason: String

    package init(_ code: WebSocketCloseCode, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// The maximum size of the reason, in bytes.
    package static let maximumReasonLength = FrameHeader.maximumControlLength - 2

    /// Parses the payload of a Close frame.
    ///
    /// - Returns: `nil` for an empty payload.
    static func parse(_ payload: some Collection<UInt8>) throws(WebSocketViolation) -> WebSocketClosure? {
        guard !payload.isEmpty else { return nil }
        guard payload.count >= 2 else { throw .incompleteCloseCode }
        let code = WebSocketCloseCode(rawValue: payload.prefix(2).reduce(0) { $0 << 8 | UInt16($1) })
        guard code.isValid else { throw .invalidCloseCode }
        guard let reason = String(validating: payload.dropFirst(2), as: UTF8.self) else { throw .invalidReason }
        return WebSocketClosure(code, reason: reason)
    }

    /// The payload of a Close frame.
    var payload: [UInt8] {
        [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + reason.utf8
    }
}
