import CCurl

/// The state of the brotli library for one body (RFC 7932).
///
/// The format has no checksum: a damaged body of valid syntax is not detected.
struct BrotliStream: ~Copyable, DecodingStream {
    static var coding: ContentCoding { .brotli }

    private let brotli: ccurl_brotli
    private let stream: UnsafeMutableRawPointer

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
        var (inputCount, roomCount) = (input.count, room.count)
        var next: UnsafePointer<UInt8>? = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var output: UnsafeMutablePointer<UInt8>? = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let result = brotli.decompress(stream, &inputCount, &next, &roomCount, &output, nil)
        input = UnsafeRawBufferPointer(rebasing: input.suffix(inputCount))
        guard result >= Self.success, result <= Self.needsOutput else { return nil }
        return (room.count - roomCount, result == Self.success)
    }

    mutating func continueAfterEnd(_ input: inout UnsafeRawBufferPointer) -> Bool { false }
}
