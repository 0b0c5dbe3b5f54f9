import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("Checksums", .permit)
struct ChecksumTests {
    @Test("the digits of a checksum are read in both cases")
    func digits() {
        let checksum = Checksum.sha256(String(repeating: "0fF0", count: 16))
        #expect(checksum.algorithm == .sha256)
        #expect(checksum.hash == (0..<32).map { $0 % 2 == 0 ? 0x0F : 0xF0 })
        #expect(Checksum.sha512(String(repeating: "ab", count: 64)).hash == [UInt8](repeating: 0xAB, count: 64))
    }

    @Test(
        "a string that is not a hash of the algorithm is no checksum",
        arguments: [
            "", "0", String(repeating: "0", count: 63), String(repeating: "0", count: 65),
            String(repeating: "g", count: 64), String(repeating: "0", count: 66),
            String(repeating: "0", count: 63) + " ",
        ])
    func invalid(hex: String) {
        #expect(Checksum.sha256(hex).hash == nil)
        #expect(Checksum.sha512(hex + String(repeating: "0", count: 64)).hash == nil || hex.utf8.count == 64)
    }
}
