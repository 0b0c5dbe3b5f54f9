#if !canImport(CryptoKit)
/// The hash function SHA-1 (FIPS 180-4), for systems without a library that provides it.
struct SHA1 {
    private typealias State = (a: UInt32, b: UInt32, c: UInt32, d: UInt32, e: UInt32)
    private var state: State = (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0)
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    init() { pending.reserveCapacity(64) }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        count &+= UInt64(bytes.count)
        var rest = bytes[...]
        if !pending.isEmpty {
            let taken = rest.prefix(64 - pending.count)
            pending += taken
            rest = rest.dropFirst(taken.count)
            guard pending.count == 64 else { return }
            pending.withUnsafeBytes { Self.add($0[...], to: &state) }
            pending.removeAll(keepingCapacity: true)
        }
        while rest.count >= 64 {
            Self.add(rest.prefix(64), to: &state)
            rest = rest.dropFirst(64)
        }
        pending += rest
    }

    /// The hash of the bytes so far.
    var value: [UInt8] {
        var hash = self
        let length = count &* 8
        var end: [UInt8] = [0x80]
        end += [UInt8](repeating: 0, count: (119 - pending.count) % 64)
        end += (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) }
        end.withUnsafeBytes { hash.update($0) }
        let (a, b, c, d, e) = hash.state
        return [a, b, c, d, e].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
    }

    /// Adds a block of 64 bytes.
    private static func add(_ block: Slice<UnsafeRawBufferPointer>, to state: inout State) {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 80) { words in
            let bytes = UnsafeRawBufferPointer(rebasing: block)
            for index in 0..<16 {
                words[index] = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self))
            }
            for index in 16..<80 {
                let word = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16]
                words[index] = word << 1 | word >> 31
            }
            var (a, b, c, d, e) = state
            for index in 0..<80 {
                let (mixed, constant): (UInt32, UInt32) =
                    switch index / 20 {
                    case 0: (b & c | ~b & d, 0x5A82_7999)
                    case 1: (b ^ c ^ d, 0x6ED9_EBA1)
                    case 2: (b & c | b & d | c & d, 0x8F1B_BCDC)
                    default: (b ^ c ^ d, 0xCA62_C1D6)
                    }
                let sum = (a << 5 | a >> 27) &+ mixed &+ e &+ constant &+ words[index]
                (e, d, c, b, a) = (d, c, b << 30 | b >> 2, a, sum)
            }
            state = (state.a &+ a, state.b &+ b, state.c &+ c, state.d &+ d, state.e &+ e)
        }
    }
}
#endif
