package import Foundation

/// An encoder of gzip (RFC 1952) that uses the system's zlib. Only one task may use an encoder.
package final class GzipEncoder {
    private let zlib: Zlib
    private let stream: UnsafeMutablePointer<Zlib.Stream>

    /// A window size of 15 bits selects the zlib format (RFC 1950). Adding 16 selects the gzip
    /// format.
    private static let zlib: CInt = 15
    private static let gzip: CInt = 15 + 16
    private static let deflated: CInt = 8
    private static let defaultLevel: CInt = -1
    private static let synchronize: CInt = 2
    private static let finish: CInt = 4
    /// zlib returns 0 on success, 1 at the end, and -5 if there is nothing to do.
    private static let nothingToDo: CInt = -5

    /// - Parameter isDeflate: Whether the format is that of the content coding `deflate`.
    /// - Throws: ``WebServiceError/Code/encoding`` if zlib is missing or cannot allocate memory.
    package init(_ zlib: Zlib? = .system, isDeflate: Bool = false) throws(WebServiceError) {
        guard let zlib else {
            throw WebServiceError(
                .encoding,
                "the body cannot be compressed, because the library zlib is missing; install it or do not set "
                    + "compressesBody")
        }
        self.zlib = zlib
        stream = .allocate(capacity: 1)
        stream.initialize(to: Zlib.Stream())
        let size = CInt(MemoryLayout<Zlib.Stream>.size)
        guard
            zlib.begin(stream, Self.defaultLevel, Self.deflated, isDeflate ? Self.zlib : Self.gzip, 8, 0, "1.2.3", size)
                == 0
        else {
            throw WebServiceError(
                .encoding, "zlib could not allocate memory to compress the body; send it uncompressed")
        }
    }

    deinit {
        // The call has no effect if the initialization has failed.
        _ = zlib.end(stream)
        stream.deallocate()
    }

    /// Returns the encoded bytes of a chunk. The receiver can decode them without further bytes.
    func encode(_ chunk: Data) throws(WebServiceError) -> Data {
        try run(chunk, Self.synchronize)
    }

    /// Encodes the last chunk, and returns the remaining encoded bytes with the end of the format.
    package func finish(with chunk: Data = Data()) throws(WebServiceError) -> Data {
        try run(chunk, Self.finish)
    }

    private func run(_ chunk: Data, _ flush: CInt) throws(WebServiceError) -> Data {
        var encoded = Data()
        let isEncoded = chunk.withUnsafeBytes { chunk in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32 << 10) { room in
                var rest = chunk[...]
                repeat {
                    // zlib counts bytes with 32 bits.
                    let part = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
                    rest = rest.dropFirst(part.count)
                    stream.pointee.input = part.baseAddress?.assumingMemoryBound(to: UInt8.self)
                    stream.pointee.inputCount = UInt32(part.count)
                    repeat {
                        stream.pointee.output = room.baseAddress
                        stream.pointee.outputCount = UInt32(room.count)
                        let result = zlib.step(stream, rest.isEmpty ? flush : 0)
                        guard result >= 0 || result == Self.nothingToDo else { return false }
                        encoded.append(contentsOf: room[..<(room.count - Int(stream.pointee.outputCount))])
                    } while stream.pointee.outputCount == 0
                } while !rest.isEmpty
                stream.pointee.input = nil
                return true
            }
        }
        guard isEncoded else {
            throw WebServiceError(.encoding, "zlib failed to compress the body; send it uncompressed")
        }
        return encoded
    }
}
