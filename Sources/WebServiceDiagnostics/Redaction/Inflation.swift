import Foundation
import WebServiceCore

/// A decoder for gzip (RFC 1952), zlib (RFC 1950) and deflate (RFC 1951) that uses the system's
/// zlib.
enum Inflation {
    /// The largest window, with automatic detection of gzip and zlib headers.
    private static let detected: CInt = 15 + 32
    private static let raw: CInt = -15
    private static let streamEnd: CInt = 1
    /// zlib cannot make progress because the input is truncated.
    private static let bufferError: CInt = -5

    /// Returns the decoded bytes, and whether the data is complete.
    ///
    /// - Parameters:
    ///   - data: The encoded bytes, which may be truncated.
    ///   - isRaw: Whether the data has no header.
    ///   - limit: The number of decoded bytes after which the data counts as truncated.
    /// - Returns: `nil` if the data is damaged or too large, or if zlib is missing.
    static func decode(_ data: Data, isRaw: Bool, limit: Int, _ zlib: Zlib? = .system)
        -> (bytes: [UInt8], isComplete: Bool)?
    {
        guard let zlib, data.count < 1 << 30 else { return nil }
        var stream = Zlib.Stream()
        let size = CInt(MemoryLayout<Zlib.Stream>.size)
        guard zlib.beginInflating(&stream, isRaw ? raw : detected, "1.2.3", size) == 0 else { return nil }
        defer { _ = zlib.endInflating(&stream) }
        var bytes: [UInt8] = []
        let isComplete = data.withUnsafeBytes { data -> Bool? in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32 << 10) { room in
                stream.input = data.baseAddress?.assumingMemoryBound(to: UInt8.self)
                stream.inputCount = UInt32(data.count)
                while bytes.count < limit {
                    stream.output = room.baseAddress
                    stream.outputCount = UInt32(room.count)
                    let result = zlib.inflate(&stream, 0)
                    bytes += room[..<(room.count - Int(stream.outputCount))]
                    if result == streamEnd { return stream.inputCount == 0 }
                    if result == bufferError { return false }
                    guard result == 0 else { return nil }
                }
                return false
            }
        }
        return isComplete.map { (bytes, $0) }
    }
}
