import Foundation
import WebServiceCore

/// A PNG image with a color gradient, without compression.
enum Picture {
    static func png(width: Int = 160, height: Int = 96) -> Data {
        var rows: [UInt8] = []
        for y in 0..<height {
            rows.append(0)
            for x in 0..<width {
                let (red, green) = (40 + 180 * x / width, 90 + 110 * y / height)
                rows += [UInt8(red), UInt8(green), 150]
            }
        }
        var header = bytes(width) + bytes(height)
        header += [8, 2, 0, 0, 0]
        var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        file += chunk("IHDR", header)
        file += chunk("IDAT", stored(rows))
        file += chunk("IEND", [])
        return Data(file)
    }

    /// The zlib format with stored blocks (RFC 1950 and RFC 1951, section 3.2.4).
    private static func stored(_ data: [UInt8]) -> [UInt8] {
        var result: [UInt8] = [0x78, 0x01]
        var rest = data[...]
        while !rest.isEmpty {
            let block = rest.prefix(65_535)
            rest = rest.dropFirst(block.count)
            let (low, high) = (UInt8(block.count & 255), UInt8(block.count >> 8))
            result += [rest.isEmpty ? 1 : 0, low, high, ~low, ~high] + block
        }
        let sums = data.reduce((1, 0)) { sums, byte in
            let first = (sums.0 + Int(byte)) % 65_521
            return (first, (sums.1 + first) % 65_521)
        }
        return result + bytes(sums.1 << 16 | sums.0)
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let content = Array(type.utf8) + data
        return bytes(data.count) + content + bytes(Int(crc(content)))
    }

    private static func crc(_ data: [UInt8]) -> UInt32 {
        var sum = UInt32.max
        for byte in data {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : (sum >> 1) ^ 0xEDB8_8320 }
        }
        return ~sum
    }

    private static func bytes(_ number: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}
