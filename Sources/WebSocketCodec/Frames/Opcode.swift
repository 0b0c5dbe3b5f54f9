/// The type of a frame (RFC 6455, section 5.2). The other values of four bits are reserved.
package enum Opcode: UInt8, Sendable, CaseIterable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Whether frames of this type can occur between the fragments of a message (section 5.5).
    package var isControl: Bool { rawValue & 0x8 != 0 }
}
