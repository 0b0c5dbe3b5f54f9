import Foundation
import WebServiceCore

/// A compressor of the messages of one connection (RFC 7692, section 7.2.1).
final class MessageDeflater {
    private let zlib: Zlib
    private let stream: UnsafeMutablePointer<Zlib.Stream>
    private let hasContextTakeover: Bool

    /// The base-2 logarithms of zlib's window sizes. zlib cannot compress with the smallest window
    /// of the extension, 256 bytes.
    static let windowBits = 9...15
    private static let deflated: CInt = 8
    private static let defaultLevel: CInt = -1
    private static let defaultMemory: CInt = 8
    private static let synchronize: CInt = 2
    /// The result of a call if zlib has neither input nor pending output (`Z_BUF_ERROR`).
    private static let bufferError: CInt = -5
    /// The length of the end of an empty block, which is removed from each message.
    private static let trailerLength = 4
    /// An empty block without its trailer, which is the form of an empty message.
    private static let emptyMessage: [UInt8] = [0]

    /// - Returns: `nil` if zlib does not support the window or cannot allocate memory.
    init?(_ zlib: Zlib, windowBits: Int, hasContextTakeover: Bool) {
        self.zlib = zlib
        self.hasContextTakeover = hasContextTakeover
        stream = .allocate(capacity: 1)
        stream.initialize(to: Zlib.Stream())
        guard Self.windowBits.contains(windowBits),
            zlib.begin(
                stream, Self.defaultLevel, Self.deflated, -CInt(windowBits), Self.defaultMemory, 0, "1.2.3",
                CInt(MemoryLayout<Zlib.Stream>.size)) == 0
        else { return nil }
    }

    deinit {
        // If the initialization has failed, this call only returns an error.
        _ = zlib.end(stream)
        stream.deallocate()
    }

    /// Returns the compressed message.
    ///
    /// - Returns: `nil` if zlib fails. The compressor can then no longer be used.
    func compress(_ message: UnsafeRawBufferPointer) -> Data? {
        guard !message.isEmpty else { return Data(Self.emptyMessage) }
        var compressed = Data()
        var rest = message
        while !rest.isEmpty {
            // zlib counts bytes with 32 bits.
            let piece = rest.removePrefix(1 << 30)
            stream.pointee.input = piece.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.inputCount = UInt32(piece.count)
            guard step(rest.isEmpty ? Self.synchronize : 0, &compressed) else { return nil }
        }
        stream.pointee.input = nil
        guard compressed.count > Self.trailerLength, hasContextTakeover || zlib.reset(stream) == 0 else { return nil }
        return compressed.dropLast(Self.trailerLength)
    }

    /// Compresses the input, and appends the output.
    private func step(_ flush: CInt, _ compressed: inout Data) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32 << 10) { room in
            repeat {
                stream.pointee.output = room.baseAddress
                stream.pointee.outputCount = UInt32(room.count)
                let result = zlib.step(stream, flush)
                guard result >= 0 || result == Self.bufferError else { return false }
                compressed.append(contentsOf: room[..<(room.count - Int(stream.pointee.outputCount))])
            } while stream.pointee.outputCount == 0
            return true
        }
    }
}
