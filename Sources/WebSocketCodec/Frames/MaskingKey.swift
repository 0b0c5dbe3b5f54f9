/// The key that a client applies to the payload of a frame (RFC 6455, section 5.3).
package struct MaskingKey: Sendable, Hashable {
    /// The four bytes of the key. The first one is the most significant.
    package let value: UInt32

    package init(_ value: UInt32) { self.value = value }

    /// Masks bytes in place, or removes the mask.
    ///
    /// - Parameter offset: The position of the bytes in the payload of the frame.
    package func apply(to bytes: UnsafeMutableRawBufferPointer, at offset: Int) {
        let shift = UInt32(truncatingIfNeeded: offset & 3) * 8
        let rotated = UInt64(value << shift | value >> (32 - shift))
        let word = (rotated << 32 | rotated).bigEndian
        var index = 0
        while index + 8 <= bytes.count {
            let masked = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ word
            bytes.storeBytes(of: masked, toByteOffset: index, as: UInt64.self)
            index += 8
        }
        withUnsafeBytes(of: word) { word in
            while index < bytes.count {
                bytes[index] ^= word[index & 7]
                index += 1
            }
        }
    }
}
