import CCurl

/// The state of the zstd library for one body (RFC 8878).
struct ZstdStream: ~Copyable, DecodingStream {
    static var coding: ContentCoding { .zstd }

    private let zstd: ccurl_zstd
    private let stream: UnsafeMutableRawPointer

    /// The number of bytes up to the end of the next block. The library returns no output from a
    /// call that fails, so each call decodes only one block.
    private var wanted = 5

    /// The parameter `ZSTD_d_windowLogMax`.
    private static let windowLimit: CInt = 100
    /// The base-2 logarithm of 8 MiB, the maximum window of the content coding (RFC 9659, section
    /// 3).
    private static let windowBits: CInt = 23

    init?(_ zstd: ccurl_zstd) {
        guard let stream = zstd.create() else { return nil }
        guard zstd.is_error(zstd.set(stream, Self.windowLimit, Self.windowBits)) == 0 else {
            _ = zstd.destroy(stream)
            return nil
        }
        self.zstd = zstd
        self.stream = stream
    }

    deinit {
        _ = zstd.destroy(stream)
    }

    mutating func step(
        _ input: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isEnd: Bool)? {
        var source = ccurl_zstd_input(bytes: input.baseAddress, size: min(input.count, wanted), offset: 0)
        var output = ccurl_zstd_output(bytes: room.baseAddress, size: room.count, offset: 0)
        let result = zstd.decompress(stream, &output, &source)
        guard zstd.is_error(result) == 0 else { return nil }
        input = UnsafeRawBufferPointer(rebasing: input.dropFirst(source.offset))
        wanted = max(1, Int(clamping: result))
        return (output.offset, result == 0)
    }

    /// Another frame may follow; the library begins it automatically.
    mutating func continueAfterEnd(_ input: inout UnsafeRawBufferPointer) -> Bool { true }
}
