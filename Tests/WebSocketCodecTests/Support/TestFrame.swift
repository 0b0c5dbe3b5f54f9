import Foundation
import WebServiceCore

@testable import WebSocketCodec

/// A frame that a test sends, or that an endpoint has sent. It is written without the code under
/// test.
struct TestFrame: Hashable {
    var first: UInt8
    var payload: [UInt8]

    /// - Parameter flags: The four bits before the opcode: FIN, RSV1, RSV2 and RSV3.
    init(_ opcode: UInt8, _ payload: [UInt8] = [], flags: UInt8 = 0b1000) {
        first = flags << 4 | opcode
        self.payload = payload
    }

    static func text(_ text: String) -> TestFrame { TestFrame(1, Array(text.utf8)) }

    static func close(_ code: UInt16, _ reason: String = "") -> TestFrame {
        TestFrame(8, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason.utf8)
    }

    /// Returns the frame as the role sends it. A client masks with a fixed key.
    func bytes(from role: WebSocketRole) -> [UInt8] {
        let isMasked = role == .client
        let mask: UInt8 = isMasked ? 0x80 : 0
        var bytes = [first]
        switch payload.count {
        case ..<126: bytes.append(mask | UInt8(payload.count))
        case ..<65_536: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default:
            bytes.append(mask | 127)
            bytes += (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
        }
        guard isMasked else { return bytes + payload }
        let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        return bytes + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }

    /// Parses complete frames of a role.
    static func parse(_ bytes: [UInt8], from role: WebSocketRole) -> [TestFrame] {
        var rest = bytes[...]
        var frames: [TestFrame] = []
        while let first = rest.popFirst(), let second = rest.popFirst() {
            let size = second & 0x7F == 127 ? 8 : second & 0x7F == 126 ? 2 : 0
            let extended = rest.prefix(size).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(size)
            let key = Array(rest.prefix(role == .client ? 4 : 0))
            rest = rest.dropFirst(key.count)
            let masked = rest.prefix(size == 0 ? Int(second & 0x7F) : extended)
            rest = rest.dropFirst(masked.count)
            var frame = TestFrame(0, key.isEmpty ? Array(masked) : masked.enumerated().map { $1 ^ key[$0 % 4] })
            frame.first = first
            frames.append(frame)
        }
        return frames
    }
}

/// Returns the bytes of hexadecimal digits.
func hex(_ digits: String) -> [UInt8] {
    let digits = digits.utf8.filter { $0 != UInt8(ascii: " ") }.map {
        UInt8(Character(UnicodeScalar($0)).hexDigitValue ?? 0)
    }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}
