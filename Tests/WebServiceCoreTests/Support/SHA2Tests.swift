import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("SHA-256 and SHA-512", .permit)
struct SHA2Tests {
    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test(
        "the examples of FIPS 180-4 have their published hashes",
        arguments: [
            (
                "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
                    + "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
            ),
            (
                "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                    + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
            ),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
                "204a8fc6dda82f0a0ced7beb8e08a41657c16ef468b228a8279be331a703c335"
                    + "96fd15c13b1b07f9aa1d3bea57789ca031ad85c7a71dd70354ec631238ca3445"
            ),
            (
                "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
                    + "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
                "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018"
                    + "501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909"
            ),
        ])
    func examples(text: String, short: String, long: String) {
        #expect(Self.hex(SHA2.sha256.hash(Data(text.utf8))) == short)
        #expect(Self.hex(SHA2.sha512.hash(Data(text.utf8))) == long)
    }

    @Test("HMAC-SHA256 has the codes of RFC 4231, for a short key and one that is longer than a block")
    func authenticationCodes() {
        func code(_ text: String, _ key: Data) -> String {
            SHA2.sha256.authenticationCode(of: Data(text.utf8), key: key)
                .map { String(0x100 + Int($0), radix: 16).dropFirst() }.joined()
        }
        #expect(
            code("Hi There", Data(repeating: 0x0B, count: 20))
                == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
        #expect(
            code("Test Using Larger Than Block-Size Key - Hash Key First", Data(repeating: 0xAA, count: 131))
                == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    }

    @Test("a million letters have their published hashes")
    func million() {
        let letters = Data(repeating: UInt8(ascii: "a"), count: 1_000_000)
        #expect(
            Self.hex(SHA2.sha256.hash(letters)) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
        #expect(
            Self.hex(SHA2.sha512.hash(letters))
                == "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
                + "de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b")
    }

    /// The expected values are from Python's `hashlib`: the hash of the hashes of 300 messages.
    @Test("messages of every length up to 299 bytes have the hashes of another implementation")
    func lengths() {
        for (algorithm, expected) in [
            (SHA2.sha256, "d5238871a46ac4a1a75ac3fb19d645b0b3b9e5f35f5f720e2b240d605c6b694e"),
            (
                SHA2.sha512,
                "30d6c78a55e1f152f00703601a37b39b96c6c8fa2b3e66fb9c8182466b108d39"
                    + "d5dd84827c69cadb4376853da7ec31ea83a0a7a0e5a713bac426e0f0ceea8424"
            ),
        ] {
            var all = Data()
            for length in 0..<300 {
                all += algorithm.hash(Data((0..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + length) }))
            }
            #expect(Self.hex(algorithm.hash(all)) == expected)
        }
    }

    @Test("the hash does not depend on how a message is split", arguments: SHA2.allCases)
    func pieces(algorithm: SHA2) {
        let message = Data((0..<400).map { UInt8(truncatingIfNeeded: $0) })
        let whole = algorithm.hash(message)
        for first in 0...400 {
            var hash = RunningHash(algorithm)
            for piece in [message.prefix(first), message.dropFirst(first).prefix(61), message.dropFirst(first + 61)] {
                piece.withUnsafeBytes { hash.update($0) }
            }
            #expect(hash.value == whole)
        }
    }
}
