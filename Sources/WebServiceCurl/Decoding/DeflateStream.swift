import CCurl

/// The state of zlib for one body with the coding deflate.
///
/// The coding is the zlib format (RFC 1950), but some servers send the compressed data without its
/// header and checksum (RFC 1951). The first byte distinguishes the two forms, because compressors
/// write no block that begins with the first byte of the zlib format.
struct DeflateStream: ~Copyable, DecodingStream {
    static var coding: ContentCoding { .deflate }

    private let library: ccurl_zlib
    private var zlib: ZlibStream
    private var isRaw = false
    private var hasBegun = false
    /// The number of bytes that may still follow the raw form: the checksum of a body without a
    /// header.
    private var remainingSurplus = 4

    init?(_ library: ccurl_zlib) {
        guard let stream = ZlibStream(library, .zlib) else { return nil }
        self.library = library
        zlib = stream
    }

    mutating func step(
        _ input: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isEnd: Bool)? {
        if !hasBegun, let first = input.first {
            hasBegun = true
            // The method is 8, and the window has at most 15 bits.
            isRaw = first & 0x0F != 8 || first >> 4 > 7
            if isRaw {
                guard let raw = ZlibStream(library, .raw) else { return nil }
                zlib = raw
            }
        }
        return zlib.step(&input, into: room)
    }

    mutating func continueAfterEnd(_ input: inout UnsafeRawBufferPointer) -> Bool {
        guard isRaw, input.count <= remainingSurplus else { return false }
        remainingSurplus -= input.count
        input = UnsafeRawBufferPointer(rebasing: input[input.endIndex...])
        return true
    }
}
