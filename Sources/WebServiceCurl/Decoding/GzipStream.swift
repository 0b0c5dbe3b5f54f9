import CCurl

/// The state of zlib for one body with the coding gzip (RFC 1952).
struct GzipStream: ~Copyable, DecodingStream {
    static var coding: ContentCoding { .gzip }

    /// Whether zeros follow the last member.
    ///
    /// Some programs write such padding. No member can follow it.
    private var isPadded = false
    private var zlib: ZlibStream

    init?(_ zlib: ccurl_zlib) {
        guard let stream = ZlibStream(zlib, .gzip) else { return nil }
        self.zlib = stream
    }

    mutating func step(
        _ input: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isEnd: Bool)? {
        zlib.step(&input, into: room)
    }

    mutating func continueAfterEnd(_ input: inout UnsafeRawBufferPointer) -> Bool {
        isPadded = isPadded || input.first == 0
        guard isPadded else { return zlib.reset() }
        defer { input = UnsafeRawBufferPointer(rebasing: input[input.endIndex...]) }
        return input.allSatisfy { $0 == 0 }
    }
}
