import Foundation

/// The hash function MD5 (RFC 1321), for Digest authentication only.
enum MD5 {
    /// Returns the hash of bytes in memory.
    static func hash(_ bytes: [UInt8]) -> [UInt8] {
        var message = bytes + [0x80]
        message += [UInt8](repeating: 0, count: (120 - message.count % 64) % 64)
        message += littleEndian(UInt64(bytes.count) &* 8)
        var state: (a: UInt32, b: UInt32, c: UInt32, d: UInt32) = (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476)
        for start in stride(from: 0, to: message.count, by: 64) {
            let words = stride(from: start, to: start + 64, by: 4).map { index in
                message[index..<index + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            }
            var (a, b, c, d) = state
            for round in 0..<64 {
                let (mixed, word): (UInt32, Int) =
                    switch round / 16 {
                    case 0: (b & c | ~b & d, round)
                    case 1: (d & b | ~d & c, (5 * round + 1) % 16)
                    case 2: (b ^ c ^ d, (3 * round + 5) % 16)
                    default: (c ^ (b | ~d), 7 * round % 16)
                    }
                let sum = a &+ mixed &+ constants[round] &+ words[word]
                let shift = shifts[round / 16 * 4 + round % 4]
                (a, d, c, b) = (d, c, b, b &+ (sum << shift | sum >> (32 - shift)))
            }
            state = (state.a &+ a, state.b &+ b, state.c &+ c, state.d &+ d)
        }
        return littleEndian(state.a) + littleEndian(state.b) + littleEndian(state.c) + littleEndian(state.d)
    }

    private static let constants = (1...64).map { UInt32(abs(sin(Double($0))) * 4_294_967_296) }
    private static let shifts: [UInt32] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21]

    private static func littleEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { [UInt8]($0) }
    }
}
