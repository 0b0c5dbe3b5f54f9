package import Foundation

/// The part of a frame before its payload (RFC 6455, section 5.2).
package struct FrameHeader: Sendable, Hashable {
    /// Whether the frame is the last one of its message.
    package var isFinal = true
    /// The bit RSV1, which indicates a compressed message (RFC 7692, section 6).
    package var isCompressed = false
    package var opcode: Opcode
    /// The key of the payload; `nil` in frames of a server.
    package var maskingKey: MaskingKey?
    /// The size of the payload, in bytes.
    package var length = 0

    package init(
        _ opcode: Opcode, isFinal: Bool = true, isCompressed: Bool = false, maskingKey: MaskingKey? = nil,
        length: Int = 0
    ) {
        self.opcode = opcode
        self.isFinal = isFinal
        self.isCompressed = isCompressed
        self.maskingKey = maskingKey
        self.length = length
    }

    /// The maximum size of a header, in bytes.
    static let maximumSize = 14
    /// The maximum payload size of a control frame, in bytes (section 5.5).
    package static let maximumControlLength = 125
    static let finalBit: UInt8 = 0x80
    static let compressedBit: UInt8 = 0x40
    static let reservedBits: UInt8 = 0x30
    static let opcodeBits: UInt8 = 0x0F
    static let maskBit: UInt8 = 0x80
    static let lengthBits: UInt8 = 0x7F
    /// The lengths in the second byte that indicate an extended length of 16 or 64 bits.
    static let length16: UInt8 = 126
    static let length64: UInt8 = 127

    /// Appends a frame: the header with the length of the payload, and the payload, masked if the
    /// header has a key.
    static func append(_ header: FrameHeader, _ payload: some Collection<UInt8>, to output: inout Data) {
        var header = header
        header.length = payload.count
        output.reserveCapacity(output.count + maximumSize + payload.count)
        header.append(to: &output)
        let start = output.count
        output.append(contentsOf: payload)
        guard let maskingKey = header.maskingKey else { return }
        output.withUnsafeMutableBytes { output in
            maskingKey.apply(to: UnsafeMutableRawBufferPointer(rebasing: output[start...]), at: 0)
        }
    }

    /// Appends the bytes of the header. The length is encoded in as few bytes as possible.
    package func append(to output: inout Data) {
        let flags = (isFinal ? Self.finalBit : 0) | (isCompressed ? Self.compressedBit : 0)
        output.append(flags | opcode.rawValue)
        let mask = maskingKey == nil ? 0 : Self.maskBit
        if length < Int(Self.length16) {
            output.append(mask | UInt8(truncatingIfNeeded: length))
        } else if let length = UInt16(exactly: length) {
            output.append(mask | Self.length16)
            withUnsafeBytes(of: length.bigEndian) { output.append(contentsOf: $0) }
        } else {
            output.append(mask | Self.length64)
            withUnsafeBytes(of: UInt64(length).bigEndian) { output.append(contentsOf: $0) }
        }
        guard let maskingKey else { return }
        withUnsafeBytes(of: maskingKey.value.bigEndian) { output.append(contentsOf: $0) }
    }
}
