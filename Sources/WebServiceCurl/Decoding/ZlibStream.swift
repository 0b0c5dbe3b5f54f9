import CCurl

/// The state of zlib for the decompression of one body.
struct ZlibStream: ~Copyable {
    /// The format of the compressed bytes, as the parameter `windowBits` of zlib.
    enum Format: Int32 {
        /// A window size of 15 bits, plus 16 for a gzip header and trailer (RFC 1952).
        case gzip = 31
        /// The zlib format (RFC 1950) with a window size of 15 bits.
        case zlib = 15
        /// The deflate format without a header and a trailer (RFC 1951).
        case raw = -15
    }

    private let zlib: ccurl_zlib
    private let stream = UnsafeMutablePointer<ccurl_z_stream>.allocate(capacity: 1)
    private let isOpen: Bool
    /// Whether the bytes after the last output are invalid.
    private var isInvalid = false

    private static let streamEnd: Int32 = 1
    /// The result if no progress is possible without more bytes.
    private static let needsMore: Int32 = -5

    /// - Returns: `nil` if zlib cannot allocate its state.
    init?(_ zlib: ccurl_zlib, _ format: Format) {
        self.zlib = zlib
        stream.initialize(to: ccurl_z_stream())
        isOpen = zlib.inflateInit2_(stream, format.rawValue, "1.2.3", Int32(MemoryLayout<ccurl_z_stream>.size)) == 0
        if !isOpen { return nil }
    }

    deinit {
        if isOpen { _ = zlib.inflateEnd(stream) }
        stream.deallocate()
    }

    /// Decodes as many bytes as there is room for, as in ``DecodingStream``.
    mutating func step(
        _ input: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isEnd: Bool)? {
        guard !isInvalid else { return nil }
        let piece = input.prefix(Int(UInt32.max))
        stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_in = UInt32(piece.count)
        stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(room.count)
        let result = zlib.inflate(stream, 0)
        stream.pointee.next_in = nil
        input = UnsafeRawBufferPointer(rebasing: input[(piece.count - Int(stream.pointee.avail_in))...])
        let count = room.count - Int(stream.pointee.avail_out)
        isInvalid = result != 0 && result != Self.streamEnd && result != Self.needsMore
        return isInvalid && count == 0 ? nil : (count, result == Self.streamEnd)
    }

    /// Prepares for another stream of the same format.
    ///
    /// - Returns: Whether zlib could reset its state.
    mutating func reset() -> Bool { zlib.inflateReset(stream) == 0 }
}
