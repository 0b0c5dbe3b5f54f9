package import Foundation

#if canImport(CryptoKit)
import CryptoKit
#endif

/// The hash functions SHA-256 and SHA-512 (FIPS 180-4).
package enum SHA2: String, Sendable, CaseIterable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"

    /// The length of a hash, in bytes.
    package var length: Int { self == .sha256 ? 32 : 64 }

    /// Returns the hash of bytes in memory.
    package func hash(_ bytes: Data) -> [UInt8] {
        var hash = RunningHash(self)
        bytes.withUnsafeBytes { hash.update($0) }
        return hash.value
    }

    /// Returns the code that authenticates bytes with a key: HMAC (RFC 2104).
    package func authenticationCode(of bytes: Data, key: Data) -> [UInt8] {
        let length = self == .sha256 ? 64 : 128
        var block = key.count > length ? Data(hash(key)) : key
        block.append(contentsOf: repeatElement(0, count: length - block.count))
        let inner = hash(Data(block.map { $0 ^ 0x36 }) + bytes)
        return hash(Data(block.map { $0 ^ 0x5C }) + inner)
    }
}

/// A hash that is computed piece by piece.
package struct RunningHash {
    private enum Function {
        case sha256(SHA256)
        case sha512(SHA512)
    }

    private var function: Function

    package init(_ algorithm: SHA2) {
        function = algorithm == .sha256 ? .sha256(SHA256()) : .sha512(SHA512())
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        switch function {
        case .sha256(var hash):
            hash.update(bufferPointer: bytes)
            function = .sha256(hash)
        case .sha512(var hash):
            hash.update(bufferPointer: bytes)
            function = .sha512(hash)
        }
    }

    /// The hash of all pieces so far.
    package var value: [UInt8] {
        switch function {
        case .sha256(let hash): Array(hash.finalize())
        case .sha512(let hash): Array(hash.finalize())
        }
    }
}

#if !canImport(CryptoKit)
private typealias SHA256 = PortableHash<SHA256Function>
private typealias SHA512 = PortableHash<SHA512Function>

/// The differences between the functions: the word, the number of rounds and the rotations.
///
/// The implementations are not generic, because a debug build would look up each operation of a
/// generic word.
private protocol SHA2Function {
    associatedtype Word: FixedWidthInteger & BitwiseCopyable & Sendable
    /// The first bits of the fractional parts of the cube roots of the first primes, one for each
    /// round.
    static var constants: [Word] { get }
    /// The first bits of the fractional parts of the square roots of the first 8 primes.
    static var initialState: [Word] { get }

    /// Updates the state with a block.
    ///
    /// - Parameter words: Space for one word per round.
    static func mix(
        _ block: UnsafeRawPointer, words: UnsafeMutablePointer<Word>, constants: UnsafePointer<Word>,
        state: UnsafeMutablePointer<Word>)
}

private enum SHA256Function: SHA2Function {
    static let constants = fractionsOfCubeRoots.prefix(64).map { UInt32(truncatingIfNeeded: $0 >> 32) }
    static let initialState = fractionsOfSquareRoots.map { UInt32(truncatingIfNeeded: $0 >> 32) }

    static func mix(
        _ block: UnsafeRawPointer, words: UnsafeMutablePointer<UInt32>, constants: UnsafePointer<UInt32>,
        state: UnsafeMutablePointer<UInt32>
    ) {
        var index = 0
        while index < 16 {
            words[index] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: index &* 4, as: UInt32.self))
            index &+= 1
        }
        while index < 64 {
            let (late, early) = (words[index &- 2], words[index &- 15])
            let smallSigma1 = rotated(late, 17) ^ rotated(late, 19) ^ late &>> 10
            let smallSigma0 = rotated(early, 7) ^ rotated(early, 18) ^ early &>> 3
            words[index] = smallSigma1 &+ words[index &- 7] &+ smallSigma0 &+ words[index &- 16]
            index &+= 1
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        index = 0
        while index < 64 {
            let bigSigma1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
            let bigSigma0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
            let sum = h &+ bigSigma1 &+ (g ^ e & (f ^ g)) &+ constants[index] &+ words[index]
            h = g
            g = f
            f = e
            e = d &+ sum
            d = c
            c = b
            b = a
            a = sum &+ bigSigma0 &+ (b & c | d & (b | c))
            index &+= 1
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
        state[4] &+= e
        state[5] &+= f
        state[6] &+= g
        state[7] &+= h
    }

    @inline(__always)
    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word &>> count | word &<< (32 &- count) }
}

private enum SHA512Function: SHA2Function {
    static let constants = fractionsOfCubeRoots.prefix(80).map { $0 }
    static let initialState = fractionsOfSquareRoots

    static func mix(
        _ block: UnsafeRawPointer, words: UnsafeMutablePointer<UInt64>, constants: UnsafePointer<UInt64>,
        state: UnsafeMutablePointer<UInt64>
    ) {
        var index = 0
        while index < 16 {
            words[index] = UInt64(bigEndian: block.loadUnaligned(fromByteOffset: index &* 8, as: UInt64.self))
            index &+= 1
        }
        while index < 80 {
            let (late, early) = (words[index &- 2], words[index &- 15])
            let smallSigma1 = rotated(late, 19) ^ rotated(late, 61) ^ late &>> 6
            let smallSigma0 = rotated(early, 1) ^ rotated(early, 8) ^ early &>> 7
            words[index] = smallSigma1 &+ words[index &- 7] &+ smallSigma0 &+ words[index &- 16]
            index &+= 1
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        index = 0
        while index < 80 {
            let bigSigma1 = rotated(e, 14) ^ rotated(e, 18) ^ rotated(e, 41)
            let bigSigma0 = rotated(a, 28) ^ rotated(a, 34) ^ rotated(a, 39)
            let sum = h &+ bigSigma1 &+ (g ^ e & (f ^ g)) &+ constants[index] &+ words[index]
            h = g
            g = f
            f = e
            e = d &+ sum
            d = c
            c = b
            b = a
            a = sum &+ bigSigma0 &+ (b & c | d & (b | c))
            index &+= 1
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
        state[4] &+= e
        state[5] &+= f
        state[6] &+= g
        state[7] &+= h
    }

    @inline(__always)
    private static func rotated(_ word: UInt64, _ count: UInt64) -> UInt64 { word &>> count | word &<< (64 &- count) }
}

/// The hash functions for systems without a library that provides them.
private struct PortableHash<Function: SHA2Function> {
    private static var blockLength: Int { 16 * MemoryLayout<Function.Word>.size }

    private var state = Function.initialState
    /// The start of the next block; shorter than a block.
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    mutating func update(bufferPointer: UnsafeRawBufferPointer) {
        var rest = bufferPointer[...]
        count &+= UInt64(rest.count)
        if !pending.isEmpty {
            let missing = rest.prefix(Self.blockLength - pending.count)
            pending += missing
            rest = rest.dropFirst(missing.count)
            guard pending.count == Self.blockLength else { return }
            let block = pending
            block.withUnsafeBytes { compress($0) }
            pending.removeAll(keepingCapacity: true)
        }
        let whole = rest.count - rest.count % Self.blockLength
        compress(UnsafeRawBufferPointer(rebasing: rest.prefix(whole)))
        pending += rest.dropFirst(whole)
    }

    /// Pads the bytes with a bit, zeros and the number of bits, and returns the hash.
    func finalize() -> [UInt8] {
        let lengthField = Self.blockLength / 8
        let zeros = (2 * Self.blockLength - pending.count - 1 - lengthField) % Self.blockLength + lengthField - 8
        var padding = [0x80] + [UInt8](repeating: 0, count: zeros)
        withUnsafeBytes(of: (count &* 8).bigEndian) { padding += $0 }
        var padded = self
        padding.withUnsafeBytes { padded.update(bufferPointer: $0) }
        return padded.state.flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } }
    }

    /// Processes whole blocks.
    private mutating func compress(_ blocks: UnsafeRawBufferPointer) {
        let constants = Function.constants
        var words = [Function.Word](repeating: 0, count: constants.count)
        guard let start = blocks.baseAddress else { return }
        var offset = 0
        while offset < blocks.count {
            Function.mix(start + offset, words: &words, constants: constants, state: &state)
            offset += Self.blockLength
        }
    }
}

/// The first 64 bits of the fractional parts of the cube roots of the first 80 primes.
private let fractionsOfCubeRoots: [UInt64] = [
    0x428A_2F98_D728_AE22, 0x7137_4491_23EF_65CD, 0xB5C0_FBCF_EC4D_3B2F, 0xE9B5_DBA5_8189_DBBC,
    0x3956_C25B_F348_B538, 0x59F1_11F1_B605_D019, 0x923F_82A4_AF19_4F9B, 0xAB1C_5ED5_DA6D_8118,
    0xD807_AA98_A303_0242, 0x1283_5B01_4570_6FBE, 0x2431_85BE_4EE4_B28C, 0x550C_7DC3_D5FF_B4E2,
    0x72BE_5D74_F27B_896F, 0x80DE_B1FE_3B16_96B1, 0x9BDC_06A7_25C7_1235, 0xC19B_F174_CF69_2694,
    0xE49B_69C1_9EF1_4AD2, 0xEFBE_4786_384F_25E3, 0x0FC1_9DC6_8B8C_D5B5, 0x240C_A1CC_77AC_9C65,
    0x2DE9_2C6F_592B_0275, 0x4A74_84AA_6EA6_E483, 0x5CB0_A9DC_BD41_FBD4, 0x76F9_88DA_8311_53B5,
    0x983E_5152_EE66_DFAB, 0xA831_C66D_2DB4_3210, 0xB003_27C8_98FB_213F, 0xBF59_7FC7_BEEF_0EE4,
    0xC6E0_0BF3_3DA8_8FC2, 0xD5A7_9147_930A_A725, 0x06CA_6351_E003_826F, 0x1429_2967_0A0E_6E70,
    0x27B7_0A85_46D2_2FFC, 0x2E1B_2138_5C26_C926, 0x4D2C_6DFC_5AC4_2AED, 0x5338_0D13_9D95_B3DF,
    0x650A_7354_8BAF_63DE, 0x766A_0ABB_3C77_B2A8, 0x81C2_C92E_47ED_AEE6, 0x9272_2C85_1482_353B,
    0xA2BF_E8A1_4CF1_0364, 0xA81A_664B_BC42_3001, 0xC24B_8B70_D0F8_9791, 0xC76C_51A3_0654_BE30,
    0xD192_E819_D6EF_5218, 0xD699_0624_5565_A910, 0xF40E_3585_5771_202A, 0x106A_A070_32BB_D1B8,
    0x19A4_C116_B8D2_D0C8, 0x1E37_6C08_5141_AB53, 0x2748_774C_DF8E_EB99, 0x34B0_BCB5_E19B_48A8,
    0x391C_0CB3_C5C9_5A63, 0x4ED8_AA4A_E341_8ACB, 0x5B9C_CA4F_7763_E373, 0x682E_6FF3_D6B2_B8A3,
    0x748F_82EE_5DEF_B2FC, 0x78A5_636F_4317_2F60, 0x84C8_7814_A1F0_AB72, 0x8CC7_0208_1A64_39EC,
    0x90BE_FFFA_2363_1E28, 0xA450_6CEB_DE82_BDE9, 0xBEF9_A3F7_B2C6_7915, 0xC671_78F2_E372_532B,
    0xCA27_3ECE_EA26_619C, 0xD186_B8C7_21C0_C207, 0xEADA_7DD6_CDE0_EB1E, 0xF57D_4F7F_EE6E_D178,
    0x06F0_67AA_7217_6FBA, 0x0A63_7DC5_A2C8_98A6, 0x113F_9804_BEF9_0DAE, 0x1B71_0B35_131C_471B,
    0x28DB_77F5_2304_7D84, 0x32CA_AB7B_40C7_2493, 0x3C9E_BE0A_15C9_BEBC, 0x431D_67C4_9C10_0D4C,
    0x4CC5_D4BE_CB3E_42B6, 0x597F_299C_FC65_7E2A, 0x5FCB_6FAB_3AD6_FAEC, 0x6C44_198C_4A47_5817,
]

/// The first 64 bits of the fractional parts of the square roots of the first 8 primes.
private let fractionsOfSquareRoots: [UInt64] = [
    0x6A09_E667_F3BC_C908, 0xBB67_AE85_84CA_A73B, 0x3C6E_F372_FE94_F82B, 0xA54F_F53A_5F1D_36F1,
    0x510E_527F_ADE6_82D1, 0x9B05_688C_2B3E_6C1F, 0x1F83_D9AB_FB41_BD6B, 0x5BE0_CD19_137E_2179,
]
#endif

/// The hash function SHA-1 (FIPS 180-4), for protocols that require it.
///
/// Collisions can be constructed, so security must not depend on this function.
package struct SHA1 {
    #if canImport(CryptoKit)
    private var function = Insecure.SHA1()

    package init() {}

    package mutating func update(_ bytes: UnsafeRawBufferPointer) { function.update(bufferPointer: bytes) }

    /// The hash of the bytes so far.
    package var value: [UInt8] { Array(function.finalize()) }
    #else
    private typealias State = (a: UInt32, b: UInt32, c: UInt32, d: UInt32, e: UInt32)
    private var state: State = (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0)
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    package init() { pending.reserveCapacity(64) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
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
    package var value: [UInt8] {
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
    #endif

    /// Returns the hash of bytes in memory.
    package static func hash(_ bytes: Data) -> [UInt8] {
        var hash = SHA1()
        bytes.withUnsafeBytes { hash.update($0) }
        return hash.value
    }
}

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

/// The hash XXH64 (xxHash specification 0.1.1), for the names of entries and their checksums.
///
/// The hash detects accidental changes. It is not cryptographic and does not protect against
/// forgery.
package enum XXHash64 {
    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

    package static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        var offset = 0
        var hash: UInt64
        if bytes.count >= 32 {
            var (a, b, c, d) = (seed &+ prime1 &+ prime2, seed &+ prime2, seed, seed &- prime1)
            while offset + 32 <= bytes.count {
                a = round(a, word(bytes, offset))
                b = round(b, word(bytes, offset + 8))
                c = round(c, word(bytes, offset + 16))
                d = round(d, word(bytes, offset + 24))
                offset += 32
            }
            hash = rotate(a, 1) &+ rotate(b, 7) &+ rotate(c, 12) &+ rotate(d, 18)
            for lane in [a, b, c, d] { hash = (hash ^ round(0, lane)) &* prime1 &+ prime4 }
        } else {
            hash = seed &+ prime5
        }
        hash &+= UInt64(bytes.count)
        while offset + 8 <= bytes.count {
            hash = rotate(hash ^ round(0, word(bytes, offset)), 27) &* prime1 &+ prime4
            offset += 8
        }
        if offset + 4 <= bytes.count {
            let half = UInt64(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
            hash = rotate(hash ^ half &* prime1, 23) &* prime2 &+ prime3
            offset += 4
        }
        while offset < bytes.count {
            hash = rotate(hash ^ UInt64(bytes[offset]) &* prime5, 11) &* prime1
            offset += 1
        }
        hash = (hash ^ hash >> 33) &* prime2
        hash = (hash ^ hash >> 29) &* prime3
        return hash ^ hash >> 32
    }

    private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    private static func round(_ lane: UInt64, _ word: UInt64) -> UInt64 {
        rotate(lane &+ word &* prime2, 31) &* prime1
    }

    private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
        value << count | value >> (64 - count)
    }
}

/// The content of a file that begins with a line with the version of the format and a checksum.
package enum CheckedContent {
    /// Returns the bytes of a file with the given content.
    ///
    /// - Parameter mark: The name and the version of the format, and a space.
    package static func encode(_ content: Data, mark: String) -> Data {
        Data(mark.utf8) + Data(checksum(content).utf8) + content
    }

    /// Returns the content after the first line; `nil` if the file has another version or is
    /// damaged.
    package static func decode(_ bytes: Data, mark: String) -> Data? {
        let (mark, length) = (Data(mark.utf8), 17)
        guard bytes.starts(with: mark) else { return nil }
        let content = bytes.dropFirst(mark.count + length)
        guard bytes.dropFirst(mark.count).prefix(length).elementsEqual(checksum(content).utf8) else { return nil }
        return Data(content)
    }

    /// Returns the checksum as 16 hexadecimal digits and a line feed.
    private static func checksum(_ content: Data) -> String {
        let hash = String(content.withUnsafeBytes { XXHash64.hash($0) }, radix: 16)
        return String(repeating: "0", count: 16 - hash.utf8.count) + hash + "\n"
    }
}
