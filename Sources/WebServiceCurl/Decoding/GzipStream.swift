import CCurl

/// The state of zlib for one body with the coding gzip (RFC 1952).
struct GzipStream: ~Copyable, DecodingStream {
    static var coding: ContentCoding { .gzip }

    /// A Boolean value that indicates whether zeros follow the last member.
    ///
    /// Some programs write such padding. No member can follow it.
    private var isPadded = false

    private let zlib: ccurl_zlib
    private let stream = UnsafeMutablePointer<ccurl_z_stream>.allocate(capacity: 1)
    private let isOpen: Bool

    /// 15 bits of window size, plus 16 for a gzip header and trailer.
    private static let gzip: Int32 = 15 + 16
    private static let streamEnd: Int32 = 1
    /// No progress is possible without more bytes.
    private static let needsMore: Int32 = -5

    init?(_ zlib: ccurl_zlib) {
        self.zlib = zlib
        stream.initialize(to: ccurl_z_stream())
        isOpen = zlib.inflateInit2_(stream, Self.gzip, "1.2.3", Int32(MemoryLayout<ccurl_z_stream>.size)) == 0
        if !isOpen { return nil }
    }

    deinit {
        if isOpen { _ = zlib.inflateEnd(stream) }
        stream.deallocate()
    }

    mutating func step(
        _ input: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isEnd: Bool)? {
        let piece = input.prefix(Int(UInt32.max))
        stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_in = UInt32(piece.count)
        stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(room.count)
        let result = zlib.inflate(stream, 0)
        stream.pointee.next_in = nil
        input = UnsafeRawBufferPointer(rebasing: input[(piece.count - Int(stream.pointee.avail_in))...])
        guard result == 0 || result == Self.streamEnd || result == Self.needsMore else { return nil }
        return (room.count - Int(stream.pointee.avail_out), result == Self.streamEnd)
    }

    mutating func continueAfterEnd(_ input: inout UnsafeRawBufferPointer) -> Bool {
        isPadded = isPadded || input.first == 0
        guard isPadded else { return zlib.inflateReset(stream) == 0 }
        defer { input = UnsafeRawBufferPointer(rebasing: input[input.endIndex...]) }
        return input.allSatisfy { $0 == 0 }
    }
}
