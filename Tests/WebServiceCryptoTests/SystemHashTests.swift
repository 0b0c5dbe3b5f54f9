import Foundation
import TestSupport
import Testing

@testable import SystemCrypto

/// The hashes of the library of the system, and those of this package.
@Suite("SystemHash", .permit)
struct SystemHashTests {
    /// The test vectors of FIPS 180 and RFC 3174.
    private static let vectors: [(HashFunction, String, Int, String)] = [
        (.sha1, "", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (.sha1, "abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            .sha1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        ),
        (.sha1, "a", 1_000_000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
        (
            .sha1, "0123456701234567012345670123456701234567012345670123456701234567", 10,
            "dea356a2cddd90c7a7ecedc5ebb563934f460452"
        ),
        (.sha256, "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (.sha256, "a", 1_000_000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        (
            .sha512, "abc", 1,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
    ]

    private func hash(
        _ bytes: Data, _ function: HashFunction, chunk: Int = .max, usesLibrary: Bool
    ) -> String {
        let hash = SystemHash(function, usesLibrary: usesLibrary)
        var rest = bytes
        while !rest.isEmpty {
            rest.prefix(chunk).withUnsafeBytes { hash.update($0) }
            rest = rest.dropFirst(chunk)
        }
        return hash.finish().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test("The published hashes hold with and without the library", arguments: [true, false])
    func vectors(_ usesLibrary: Bool) {
        for (function, text, count, expected) in Self.vectors {
            let bytes = Data(String(repeating: text, count: count).utf8)
            #expect(hash(bytes, function, usesLibrary: usesLibrary) == expected)
        }
    }

    @Test(
        "The hash depends neither on the chunks nor on the implementation, for every length around a block",
        arguments: HashFunction.allCases)
    func chunks(_ function: HashFunction) {
        for count in 0...260 {
            let bytes = Data((0..<count).map { UInt8(truncatingIfNeeded: $0) })
            let chunked = [1, 7, 63, 64, 65, 127, 128].map { hash(bytes, function, chunk: $0, usesLibrary: false) }
            let own = Set(chunked + [hash(bytes, function, usesLibrary: false)])
            #expect(own == [hash(bytes, function, chunk: 61, usesLibrary: true)])
        }
    }

    #if !canImport(CryptoKit)
    @Test("A library that is missing, or that has other functions, is not used")
    func otherLibraries() {
        let names = ["libwebservice-none.so.1", "libm.so.6"]
        #expect(names.compactMap { Libcrypto($0) }.count == 0)
        #expect(Libcrypto.shared != nil)
    }
    #endif
}
