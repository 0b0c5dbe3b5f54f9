import Foundation
import TestSupport
import Testing
@testable import WebServiceUploads

/// SHA-1, and the count of requests without progress.
@Suite("Hashes and counts of uploads", .permit)
struct UploadHashTests {
    private func hash(_ bytes: Data, chunk: Int = .max) -> String {
        var hash = SHA1()
        var rest = bytes
        while !rest.isEmpty {
            rest.prefix(chunk).withUnsafeBytes { hash.update($0) }
            rest = rest.dropFirst(chunk)
        }
        return hash.value.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test(
        "SHA-1 has the values of FIPS 180 and RFC 3174", .covers("U-416"),
        arguments: [
            ("", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
            ), ("a", 1_000_000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
            (
                "0123456701234567012345670123456701234567012345670123456701234567", 10,
                "dea356a2cddd90c7a7ecedc5ebb563934f460452"
            ),
        ])
    func vectors(_ text: String, _ count: Int, _ expected: String) {
        let bytes = Data(String(repeating: text, count: count).utf8)
        #expect(hash(bytes) == expected)
        #expect(hash(bytes.prefix(10_000), chunk: 7) == hash(bytes.prefix(10_000)))
    }

    @Test("The chunks of the input do not change the hash, for every length around a block", .covers("U-416"))
    func chunks() {
        for count in 0...200 {
            let bytes = Data((0..<count).map { UInt8($0) })
            #expect(Set((1...70).map { hash(bytes, chunk: $0) }).count == 1)
        }
    }

    @Test("Small steps count together, and 64 KiB or a whole piece begin the count again", .covers("U-414"))
    func stalls() {
        var stalls = UploadStalls(now: 0)
        for index in 1...7 { stalls.add(Int64(index), isWhole: false, now: 5) }
        #expect(stalls.count == 7)
        #expect(stalls.spent(12) == .nanoseconds(12))
        stalls.add(64 << 10, isWhole: false, now: 9)
        #expect(stalls.count == 0)
        #expect(stalls.attempt == 1)
        #expect(stalls.spent(12) == .nanoseconds(3))
        stalls.add(64 << 10, isWhole: false, now: 10)
        #expect(stalls.count == 1)
        stalls.add(65 << 10, isWhole: true, now: 10)
        #expect(stalls.count == 0)
        // The upload has started over.
        stalls.add(0, isWhole: false, now: 10)
        stalls.add(64 << 10, isWhole: false, now: 10)
        #expect(stalls.count == 0)
    }
}
