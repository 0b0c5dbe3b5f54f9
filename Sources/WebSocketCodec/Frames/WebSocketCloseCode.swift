/// The reason why an endpoint closes a connection, as a number (RFC 6455, section 7.4).
package struct WebSocketCloseCode: RawRepresentable, Sendable, Hashable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let normalClosure = Self(rawValue: 1000)
    package static let goingAway = Self(rawValue: 1001)
    package static let protocolError = Self(rawValue: 1002)
    package static let unsupportedData = Self(rawValue: 1003)
    package static let invalidPayload = Self(rawValue: 1007)
    package static let policyViolation = Self(rawValue: 1008)
    package static let messageTooBig = Self(rawValue: 1009)
    package static let missingExtension = Self(rawValue: 1010)
    package static let internalError = Self(rawValue: 1011)

    /// A Boolean value that indicates whether a Close frame can contain the code.
    ///
    /// The codes below 3000 are those of the registry of IANA. 1004, 1005, 1006 and 1015 are
    /// reserved (section 7.4.1). 3000 to 4999 are for libraries and applications (section 7.4.2).
    package var isValid: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}
