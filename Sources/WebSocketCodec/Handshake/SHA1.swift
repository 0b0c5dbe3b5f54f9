import Foundation

/// The hash function SHA-1 (FIPS 180-4), for the field `Sec-WebSocket-Accept` only.
///
/// Security does not depend on the hash: the field only proves that a server supports WebSocket
/// (RFC 6455, section 10.8).
enum SHA1 {
    /// Returns the hash of bytes in memory.
    static func hash(_ bytes: [UInt8]) -> [UInt8] {
        var message = bytes + [0x80]
        message += [UInt8](repeating: 0, count: (120 - message.count % 64) % 64)
        message += bigEndian(UInt64(bytes.count) &* 8)
        var state: (a: UInt32, b: UInt32, c: UInt32, d: UInt32, e: UInt32) = (
            0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0
        )
        for start in stride(from: 0, to: message.count, by: 64) {
            var (a, b, c, d, e) = state
            for (round, word) in schedule(message[start..<start + 64]).enumerated() {
                let (mixed, constant): (UInt32, UInt32) =
                    switch round / 20 {
                    case 0: (b & c | ~b & d, 0x5A82_7999)
                    case 1: (b ^ c ^ d, 0x6ED9_EBA1)
                    case 2: (b & c | b & d | c & d, 0x8F1B_BCDC)
                    default: (b ^ c ^ d, 0xCA62_C1D6)
                    }
                let next = rotated(a, 5) &+ mixed &+ e &+ constant &+ word
                (e, d, c, b, a) = (d, c, rotated(b, 30), a, next)
            }
            state = (state.a &+ a, state.b &+ b, state.c &+ c, state.d &+ d, state.e &+ e)
        }
        return [state.a, state.b, state.c, state.d, state.e].flatMap { bigEndian($0) }
    }

    /// Returns the 80 words of a block.
    private static func schedule(_ block: ArraySlice<UInt8>) -> [UInt32] {
        var words = stride(from: block.startIndex, to: block.endIndex, by: 4).map { index in
            block[index..<index + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<80 {
            words.append(rotated(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1))
        }
        return words
    }

    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word << count | word >> (32 - count) }

    private static func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { [UInt8]($0) }
    }
}
