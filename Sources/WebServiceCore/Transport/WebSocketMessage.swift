public import Foundation

/// A message of a WebSocket connection (RFC 6455, section 5.6).
public enum WebSocketMessage: Sendable, Hashable {
    /// A text message.
    case text(String)
    /// A binary message.
    case data(Data)

    /// The bytes of the message, which are in UTF-8 for a text message.
    public var bytes: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .data(let data): data
        }
    }

    /// The number of bytes of the message.
    public var byteCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let data): data.count
        }
    }
}

extension WebSocketMessage {
    /// Returns the message decoded as JSON, or by another decoder.
    ///
    /// - Throws: ``WebServiceError/Code/decoding`` with the bytes of the message as
    ///   ``WebServiceError/body`` and the decoder's error as ``WebServiceError/underlying``.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: any BodyDecoder = JSONDecoder()
    ) throws -> Value {
        try JSON.decode(type, from: bytes, of: "a message", using: decoder)
    }
}

/// The content of a Close frame: the reason why an endpoint closes a WebSocket connection (RFC
/// 6455, section 5.5.1).
///
/// This value is the ``WebServiceError/underlying`` error if a connection was closed with a code
/// that indicates an error.
public struct WebSocketClosure: Error, Sendable, Hashable {
    /// The reason as a number.
    public var code: Code
    /// The reason as text, which is not intended for the user and is usually empty.
    public var reason: String

    /// Creates the content of a Close frame.
    public init(_ code: Code, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// The code and the reason as a part of an error message.
    package var explanation: String {
        " with code \(code.rawValue)" + (reason.isEmpty ? "" : ": \(reason.escapingControls)")
    }

    /// The reason why an endpoint closes a connection, as a number (RFC 6455, section 7.4).
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The number in the Close frame.
        public let rawValue: UInt16

        /// Creates a code. Codes from 3000 to 3999 are registered by libraries; codes from 4000 to
        /// 4999 are for private use.
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// The purpose of the connection is fulfilled.
        public static let normalClosure = Self(rawValue: 1000)
        /// The server is stopping, or the program is leaving the connection.
        public static let goingAway = Self(rawValue: 1001)
        /// The peer has violated the protocol.
        public static let protocolError = Self(rawValue: 1002)
        /// A message has a type that the endpoint does not accept.
        public static let unsupportedData = Self(rawValue: 1003)
        /// A text message is not UTF-8, or the data of a message is inconsistent.
        public static let invalidPayload = Self(rawValue: 1007)
        /// A message violates a rule of the endpoint.
        public static let policyViolation = Self(rawValue: 1008)
        /// A message is too large.
        public static let messageTooBig = Self(rawValue: 1009)
        /// The server has not negotiated an extension that the client requires.
        public static let missingExtension = Self(rawValue: 1010)
        /// The server has met an unexpected condition.
        public static let internalError = Self(rawValue: 1011)

        /// Whether a Close frame can contain the code.
        ///
        /// The codes below 3000 are those of the IANA registry. Codes 1004, 1005, 1006 and 1015
        /// are reserved (section 7.4.1). Codes from 3000 to 4999 are for libraries and applications
        /// (section 7.4.2).
        package var isValid: Bool {
            switch rawValue {
            case 1000...1003, 1007...1014, 3000...4999: true
            default: false
            }
        }
    }
}
