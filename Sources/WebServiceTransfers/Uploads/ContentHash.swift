import Foundation
import WebServiceCore

/// A hash of the first bytes of a file. The hash is extended while the file is uploaded.
///
/// The hash reveals that a program has changed bytes that were sent, even if the program has
/// restored the modification date.
struct ContentHash: Sendable, Equatable, Codable {
    private static let blockLength: Int64 = 64 << 10

    /// The number of bytes.
    private(set) var length: Int64 = 0
    /// The hash of all whole blocks.
    private var blocks: UInt64 = 0
    /// The hash of all bytes; 0 if they consist of whole blocks.
    private var rest: UInt64 = 0

    /// Adds the bytes up to a position. The bytes of an incomplete block are read again.
    ///
    /// - Parameter bytes: A closure that returns the bytes of a range of the file.
    mutating func extend(to end: Int64, reading bytes: (Range<Int64>) throws -> Data) rethrows {
        guard end > length else { return }
        var start = length - length % Self.blockLength
        while start < end {
            let next = min(end, start + Self.blockLength)
            let hash = try bytes(start..<next).withUnsafeBytes { XXHash64.hash($0, seed: blocks) }
            (blocks, rest) = next - start == Self.blockLength ? (hash, 0) : (blocks, hash)
            (start, length) = (next, next)
        }
    }
}
