import CCurl

/// The state of the brotli library for one body (RFC 7932).
///
/// The format has no checksum, so damage that results in valid syntax is not detected.
struct BrotliStream: ~Copyable, DecodingStream {
    static var coding: ContentCoding { .brotli }

    private let brotli: ccurl_brotli
    private let stream: UnsafeMutableRawPointer

    /// Whether the bytes after the last output are invalid.
    private var isInvalid = false

    /// The maximum number of input bytes for one call. The library discards the output of a call
    /// that fails.
    private static let pieceCount = 256
    private static let success: CInt = 1
    private static let needsOutput: CInt = 3

    init?(_ brotli: ccurl_brotli) {
        guard let stream = brotli.create(nil, nil, nil) else { return nil }
        self.brotli = brotli
        self.stream = stream
    }

    deinit {
        brotli.destroy(stream)
    }

    mutating func step(
        _ input: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isEnd: Bool)? {
        guard !isInvalid else { return nil }
        let pieceCount = min(input.count, Self.pieceCount)
        var (inputCount, roomCount) = (pieceCount, room.count)
        var next: UnsafePointer<UInt8>? = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var output: UnsafeMutablePointer<UInt8>? = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let result = brotli.decompress(stream, &inputCount, &next, &roomCount, &output, nil)
        input = UnsafeRawBufferPointer(rebasing: input.dropFirst(pieceCount - inputCount))
        let count = room.count - roomCount
        isInvalid = !(Self.success...Self.needsOutput).contains(result)
        return isInvalid && count == 0 ? nil : (count, result == Self.success)
    }

    mutating func continueAfterEnd(_ input: inout UnsafeRawBufferPointer) -> Bool { false }
}
