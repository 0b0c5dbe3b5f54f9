import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

@Suite("UTF8Validator", .permit)
struct UTF8ValidatorTests {
    /// Returns the number of bytes before the first invalid one, and whether they are complete.
    private func result(_ bytes: [UInt8], by size: Int) -> (valid: Int, isComplete: Bool) {
        var validator = UTF8Validator()
        for start in stride(from: 0, to: bytes.count, by: size) {
            let piece = bytes[start..<min(start + size, bytes.count)]
            let isValid = Array(piece).withUnsafeBytes { validator.accepts($0) }
            if !isValid { return (start, false) }
        }
        return (bytes.count, validator.isComplete)
    }

    @Test("All characters are valid, and incomplete without their last byte")
    func allCharacters() {
        var wrong: [UInt32] = []
        // All of one and two units, and the others at intervals.
        for value in UInt32(0)...0x10FFFF where isThorough || value < 0x1000 || value % 31 == 0 || value >= 0x10FF00 {
            guard let scalar = Unicode.Scalar(value) else { continue }
            var validator = UTF8Validator()
            let bytes = Array(UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            let isStart = bytes.dropLast().allSatisfy { byte in
                withUnsafeBytes(of: byte) { validator.accepts($0) } && !validator.isComplete
            }
            let isEnd = bytes.last.map { withUnsafeBytes(of: $0) { validator.accepts($0) } } ?? false
            if !isStart || !isEnd || !validator.isComplete { wrong.append(value) }
        }
        #expect(wrong == [])
    }

    @Test(
        "The first invalid byte is detected, without the bytes that follow",
        arguments: [
            ("80", 0), ("bf", 0), ("c0", 0), ("c1", 0), ("f5", 0), ("ff", 0), ("61fe", 1), ("c241", 1), ("e09f", 1),
            ("e0a041", 2), ("eda0", 1), ("edbf", 1), ("f08f", 1), ("f490", 1), ("f0908041", 3), ("f1808041", 3),
            ("6161616161616161ff", 8), ("cebae1bdb9cf83cebcceb5f4908080", 12), ("c3a9c3a9c3a9c3c3", 7),
        ])
    func firstInvalidByte(bytes: String, valid: Int) {
        #expect(result(hex(bytes), by: 1).valid == valid)
        #expect(result(hex(bytes), by: 100).valid == 0)
    }

    @Test("The result is that of the standard library for random bytes, however they are split")
    func randomBytes() {
        var generator = SeededGenerator(seed: 7)
        let parts = ["61", "6162636465666768", "c3a9", "e282ac", "f09f9880", "ed9fbf", "eda080", "c0", "80", "f0"].map(
            hex)
        var wrong: [[UInt8]] = []
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0..<6, using: &generator)).flatMap { _ in
                parts.randomElement(using: &generator) ?? []
            }
            let size = Int.random(in: 1..<12, using: &generator)
            let isValid = result(bytes, by: size) == (bytes.count, true)
            if isValid != (String(validating: bytes, as: UTF8.self) != nil) { wrong.append(bytes) }
        }
        #expect(wrong == [])
    }

    @Test("A text message fails at its first invalid byte, before the end of the frame")
    func frame() {
        let message = hex("817e0100cebae1bdb9cf83cebcceb5f4")
        #expect(Endpoint(.client).receive(message) == [])
        #expect(Endpoint(.client).receive(message + [0x90]) == [.failed(.invalidText)])
    }

    @Test("A masked text message fails at its first invalid byte")
    func maskedFrame() {
        let frame = TestFrame(1, hex("61626364f490") + [UInt8](repeating: 0x61, count: 50)).bytes(from: .client)
        #expect(Endpoint(.server).receive(Array(frame.prefix(11))) == [])
        #expect(Endpoint(.server).receive(Array(frame.prefix(12))) == [.failed(.invalidText)])
    }

    @Test("A character can be split between fragments")
    func fragments() {
        let endpoint = Endpoint(.client)
        #expect(endpoint.receive(hex("0102f09f 000198 800180")) == [.message(.text("😀"))])
    }
}
