import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceStorage

@testable import WebServiceCrypto

/// The cipher and the format of an entry.
@Suite("AESGCMCipher", .permit)
struct AESGCMCipherTests {
    /// A test case of "The Galois/Counter Mode of Operation" (McGrew and Viega), appendix B.
    struct Known: Sendable {
        var number: Int
        var key, nonce, plaintext, context, ciphertext, tag: String
    }

    private static let long = (
        key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        plaintext: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        ciphertext: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
            + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
    )

    static let known = [
        Known(
            number: 13, key: String(repeating: "00", count: 32), nonce: String(repeating: "00", count: 12),
            plaintext: "", context: "", ciphertext: "", tag: "530f8afbc74536b9a963b4f1c4cb738b"),
        Known(
            number: 14, key: String(repeating: "00", count: 32), nonce: String(repeating: "00", count: 12),
            plaintext: String(repeating: "00", count: 16), context: "",
            ciphertext: "cea7403d4d606b6e074ec5d3baf39d18", tag: "d0d1c8a799996bf0265b98b5d48ab919"),
        Known(
            number: 15, key: long.key, nonce: "cafebabefacedbaddecaf888", plaintext: long.plaintext + "1aafd255",
            context: "", ciphertext: long.ciphertext + "898015ad", tag: "b094dac5d93471bdec1a502270e3cc6c"),
        Known(
            number: 16, key: long.key, nonce: "cafebabefacedbaddecaf888", plaintext: long.plaintext,
            context: "feedfacedeadbeeffeedfacedeadbeefabaddad2", ciphertext: long.ciphertext,
            tag: "76fc6ece0f4e1768cddf8853bb2d551b"),
    ]

    private func bytes(_ hexadecimal: String) -> Data {
        var (bytes, rest) = (Data(), hexadecimal[...])
        while let byte = UInt8(rest.prefix(2), radix: 16) {
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    @Test("The published test cases of AES-256-GCM hold", arguments: known)
    func publishedCases(known: Known) throws {
        let cipher = try AESGCMCipher(key: bytes(known.key))
        let sealed = bytes(known.nonce + known.ciphertext + known.tag)
        let (plaintext, context) = (bytes(known.plaintext), bytes(known.context))
        #expect(try cipher.seal(plaintext, authenticating: context, nonce: bytes(known.nonce)) == sealed)
        #expect(try cipher.open(sealed, authenticating: context) == plaintext)
        #expect(throws: WebServiceError.self) { try cipher.open(sealed, authenticating: context + [0]) }
    }

    @Test("The context and the data may be slices")
    func slices() throws {
        let cipher = try cipher()
        let data = Data("abcdef".utf8)
        let sealed = try cipher.seal(data[2...], authenticating: data[..<2])
        let padded = Data([1, 2, 3]) + sealed
        #expect(try cipher.open(padded.dropFirst(3), authenticating: Data("ab".utf8)) == Data("cdef".utf8))
    }

    @Test("Each nonce is new")
    func nonces() throws {
        let cipher = try cipher()
        let nonces = try (0..<2_000).map { _ in try cipher.seal(Data(), authenticating: Data()).prefix(12) }
        #expect(Set(nonces).count == 2_000)
    }

    @Test("An entry begins with its header, which is authenticated with its key")
    func format() async throws {
        let inner: any ResponseStorage = MemoryStorage()
        let key = StorageKey(identifier: "a", account: "ann")
        let date = Date(timeIntervalSince1970: 2)  // 0x4000000000000000
        let storage = EncryptedStorage(inner, cipher: try cipher())
        try await storage.store(StorageEntry(.value(Data("secret".utf8)), date: date), for: key)
        let data = try #require(try await inner.entry(for: key)?.data)
        #expect(data.count == 50)  // header, nonce, ciphertext, tag: 16 + 12 + 6 + 16
        let header: [UInt8] = [0x57, 0x53, 0x45, 0x63, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x40]
        #expect(Array(data.prefix(16)) == header)
        let opened = try cipher().open(data.dropFirst(16), authenticating: data.prefix(16) + key.bytes)
        #expect(opened == Data("secret".utf8))
    }

    @Test("A key of another length is an error", arguments: [0, 1, 16, 24, 31, 33, 64])
    func lengths(count: Int) throws {
        for keys in [[count], [32, count]] {
            let keys = keys.map { Data(repeating: 1, count: $0) }
            let error = #expect(throws: WebServiceError.self) {
                try AESGCMCipher(key: keys[0], earlierKeys: Array(keys.dropFirst()))
            }
            #expect(error?.code == .storage)
            #expect(error.map { "\($0)" }?.contains("32 bytes, not \(count);") == true)
        }
    }

    @Test("No description contains a key")
    func descriptions() throws {
        let cipher = try cipher(201, earlier: [202])
        let storage = EncryptedStorage(MemoryStorage(), cipher: cipher)
        var dumps = ""
        dump(cipher, to: &dumps)
        dump(storage, to: &dumps)
        for text in ["\(cipher)", String(reflecting: cipher), "\(storage)", String(reflecting: storage), dumps] {
            #expect(!text.contains("201"))
            #expect(!text.contains("c9c9"))
            #expect(!text.contains("32 bytes"))
        }
    }
}
