package import Foundation

#if canImport(CryptoKit)
import CryptoKit
#endif

/// The hash functions SHA-256 and SHA-512 (FIPS 180-4).
package enum SHA2: String, Sendable, CaseIterable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"

    /// The length of a hash, in bytes.
    var length: Int { self == .sha256 ? 32 : 64 }

    /// Returns the hash of bytes in memory.
    package func hash(_ bytes: Data) -> [UInt8] {
        var hash = RunningHash(self)
        bytes.withUnsafeBytes { hash.update($0) }
        return hash.value
    }
}

/// A hash that is computed piece by piece.
struct RunningHash {
    // Concrete types, because only for these does the compiler specialize the generic type.
    private enum Function {
        case sha256(SHA256)
        case sha512(SHA512)
    }

    private var function: Function

    init(_ algorithm: SHA2) {
        function = algorithm == .sha256 ? .sha256(SHA256()) : .sha512(SHA512())
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
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
    var value: [UInt8] {
        switch function {
        case .sha256(let hash): Array(hash.finalize())
        case .sha512(let hash): Array(hash.finalize())
        }
    }
}

#if !canImport(CryptoKit)
private typealias SHA256 = PortableHash<UInt32>
private typealias SHA512 = PortableHash<UInt64>

/// The differences between the functions: the word, the number of rounds and the rotations.
private protocol SHA2Word: FixedWidthInteger, UnsignedInteger, BitwiseCopyable, Sendable {
    static var rounds: Int { get }
    /// The first bits of the fractions in the tables.
    init(fraction: UInt64)
    var bigSigma0: Self { get }
    var bigSigma1: Self { get }
    var smallSigma0: Self { get }
    var smallSigma1: Self { get }
}

extension SHA2Word {
    @inline(__always)
    func rotated(_ count: Self) -> Self { self &>> count | self &<< (Self(Self.bitWidth) &- count) }
}

extension UInt32: SHA2Word {
    static var rounds: Int { 64 }
    init(fraction: UInt64) { self.init(truncatingIfNeeded: fraction >> 32) }
    @inline(__always) var bigSigma0: UInt32 { rotated(2) ^ rotated(13) ^ rotated(22) }
    @inline(__always) var bigSigma1: UInt32 { rotated(6) ^ rotated(11) ^ rotated(25) }
    @inline(__always) var smallSigma0: UInt32 { rotated(7) ^ rotated(18) ^ self &>> 3 }
    @inline(__always) var smallSigma1: UInt32 { rotated(17) ^ rotated(19) ^ self &>> 10 }
}

extension UInt64: SHA2Word {
    static var rounds: Int { 80 }
    init(fraction: UInt64) { self = fraction }
    @inline(__always) var bigSigma0: UInt64 { rotated(28) ^ rotated(34) ^ rotated(39) }
    @inline(__always) var bigSigma1: UInt64 { rotated(14) ^ rotated(18) ^ rotated(41) }
    @inline(__always) var smallSigma0: UInt64 { rotated(1) ^ rotated(8) ^ self &>> 7 }
    @inline(__always) var smallSigma1: UInt64 { rotated(19) ^ rotated(61) ^ self &>> 6 }
}

/// The hash functions for systems without a library of them.
private struct PortableHash<Word: SHA2Word> {
    private static var blockLength: Int { 16 * MemoryLayout<Word>.size }

    private var state = Words()
    private let constants = fractionsOfCubeRoots.prefix(Word.rounds).map { Word(fraction: $0) }
    /// The start of the next block; shorter than a block.
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    /// The state. It begins with the fractions of the square roots of the first 8 primes.
    private struct Words {
        var a = Word(fraction: 0x6A09_E667_F3BC_C908)
        var b = Word(fraction: 0xBB67_AE85_84CA_A73B)
        var c = Word(fraction: 0x3C6E_F372_FE94_F82B)
        var d = Word(fraction: 0xA54F_F53A_5F1D_36F1)
        var e = Word(fraction: 0x510E_527F_ADE6_82D1)
        var f = Word(fraction: 0x9B05_688C_2B3E_6C1F)
        var g = Word(fraction: 0x1F83_D9AB_FB41_BD6B)
        var h = Word(fraction: 0x5BE0_CD19_137E_2179)

        var all: [Word] { [a, b, c, d, e, f, g, h] }
    }

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

    /// Returns the hash of the bytes, a bit, zeros and the number of bits.
    func finalize() -> [UInt8] {
        let lengthField = Self.blockLength / 8
        let zeros = (2 * Self.blockLength - pending.count - 1 - lengthField) % Self.blockLength + lengthField - 8
        var padding = [0x80] + [UInt8](repeating: 0, count: zeros)
        withUnsafeBytes(of: (count &* 8).bigEndian) { padding += $0 }
        var padded = self
        padding.withUnsafeBytes { padded.update(bufferPointer: $0) }
        return padded.state.all.flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } }
    }

    /// Processes whole blocks.
    private mutating func compress(_ blocks: UnsafeRawBufferPointer) {
        guard blocks.count >= Self.blockLength else { return }
        constants.withUnsafeBufferPointer { constants in
            withUnsafeTemporaryAllocation(of: Word.self, capacity: Word.rounds) { words in
                for start in stride(from: 0, to: blocks.count, by: Self.blockLength) {
                    Self.expand(UnsafeRawBufferPointer(rebasing: blocks[start...].prefix(Self.blockLength)), words)
                    Self.mix(words, constants, &state)
                }
            }
        }
    }

    /// Computes one word per round from the words of a block.
    @inline(__always)
    private static func expand(_ block: UnsafeRawBufferPointer, _ words: UnsafeMutableBufferPointer<Word>) {
        for index in 0..<16 {
            let offset = index &* MemoryLayout<Word>.size
            words[index] = Word(bigEndian: block.loadUnaligned(fromByteOffset: offset, as: Word.self))
        }
        for index in 16..<Word.rounds {
            words[index] =
                words[index &- 2].smallSigma1 &+ words[index &- 7] &+ words[index &- 15].smallSigma0
                &+ words[index &- 16]
        }
    }

    /// The roles of the words rotate from round to round instead of their values, so that all stay
    /// in registers.
    @inline(__always)
    private static func mix(
        _ words: UnsafeMutableBufferPointer<Word>, _ constants: UnsafeBufferPointer<Word>, _ state: inout Words
    ) {
        var (a, b, c, d) = (state.a, state.b, state.c, state.d)
        var (e, f, g, h) = (state.e, state.f, state.g, state.h)
        for index in stride(from: 0, to: Word.rounds, by: 8) {
            round(a, b, c, &d, e, f, g, &h, constants[index] &+ words[index])
            round(h, a, b, &c, d, e, f, &g, constants[index &+ 1] &+ words[index &+ 1])
            round(g, h, a, &b, c, d, e, &f, constants[index &+ 2] &+ words[index &+ 2])
            round(f, g, h, &a, b, c, d, &e, constants[index &+ 3] &+ words[index &+ 3])
            round(e, f, g, &h, a, b, c, &d, constants[index &+ 4] &+ words[index &+ 4])
            round(d, e, f, &g, h, a, b, &c, constants[index &+ 5] &+ words[index &+ 5])
            round(c, d, e, &f, g, h, a, &b, constants[index &+ 6] &+ words[index &+ 6])
            round(b, c, d, &e, f, g, h, &a, constants[index &+ 7] &+ words[index &+ 7])
        }
        state.a &+= a
        state.b &+= b
        state.c &+= c
        state.d &+= d
        state.e &+= e
        state.f &+= f
        state.g &+= g
        state.h &+= h
    }

    @inline(__always)
    private static func round(
        _ a: Word, _ b: Word, _ c: Word, _ d: inout Word, _ e: Word, _ f: Word, _ g: Word, _ h: inout Word,
        _ input: Word
    ) {
        let sum = h &+ e.bigSigma1 &+ (g ^ e & (f ^ g)) &+ input
        d &+= sum
        h = sum &+ a.bigSigma0 &+ (a & b | c & (a | b))
    }
}

/// The first 64 bits of the fractions of the cube roots of the first 80 primes.
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
#endif
