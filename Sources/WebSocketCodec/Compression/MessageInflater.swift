import WebServiceCore

/// A decompressor of the messages of one connection (RFC 7692, section 7.2.2).
final class MessageInflater {
    private let zlib: Zlib
    private let stream: UnsafeMutablePointer<Zlib.Stream>
    /// The buffer for the output.
    private let room: UnsafeMutableRawBufferPointer
    /// The buffer for input without the mask.
    private let input: UnsafeMutableRawBufferPointer
    private let trailerBytes: UnsafeMutableRawBufferPointer
    private let hasContextTakeover: Bool
    /// Whether no bytes have followed the start of the message or the last block with the bit
    /// BFINAL.
    private var isAtStart = true

    private static let roomSize = 16 << 10
    /// The end of an empty block, which senders remove from each message.
    private static let trailer: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]
    private static let synchronize: CInt = 2
    private static let streamEnd: CInt = 1
    private static let memoryError: CInt = -4
    /// The result if zlib can make no progress without more bytes.
    private static let bufferError: CInt = -5
    /// The bit of ``Zlib/Stream/dataType`` that indicates the end of a block.
    private static let blockEnd: CInt = 128

    /// - Returns: `nil` if zlib cannot allocate memory.
    init?(_ zlib: Zlib, windowBits: Int, hasContextTakeover: Bool) {
        self.zlib = zlib
        self.hasContextTakeover = hasContextTakeover
        stream = .allocate(capacity: 1)
        stream.initialize(to: Zlib.Stream())
        room = .allocate(byteCount: Self.roomSize, alignment: 1)
        input = .allocate(byteCount: Self.roomSize, alignment: 1)
        trailerBytes = .allocate(byteCount: Self.trailer.count, alignment: 1)
        trailerBytes.copyBytes(from: Self.trailer)
        let size = CInt(MemoryLayout<Zlib.Stream>.size)
        guard zlib.beginInflating(stream, -CInt(windowBits), "1.2.3", size) == 0 else { return nil }
    }

    deinit {
        // If the initialization has failed, this call only returns an error.
        _ = zlib.endInflating(stream)
        stream.deallocate()
        room.deallocate()
        input.deallocate()
        trailerBytes.deallocate()
    }

    /// The bytes that the receiver appends to the message before it calls ``finish()``.
    var trailer: UnsafeRawBufferPointer {
        isAtStart ? UnsafeRawBufferPointer(start: nil, count: 0) : UnsafeRawBufferPointer(trailerBytes)
    }

    /// Removes masked bytes from the front of `bytes`, and returns them without the mask.
    ///
    /// The returned bytes are valid until the next call.
    ///
    /// - Returns: `nil` if there are no bytes.
    func unmasked(
        _ bytes: inout UnsafeRawBufferPointer, _ maskingKey: MaskingKey, at offset: Int
    ) -> UnsafeRawBufferPointer? {
        guard !bytes.isEmpty else { return nil }
        let masked = bytes.removePrefix(input.count)
        let unmasked = UnsafeMutableRawBufferPointer(rebasing: input[..<masked.count])
        unmasked.copyMemory(from: masked)
        maskingKey.apply(to: unmasked, at: offset)
        return UnsafeRawBufferPointer(unmasked)
    }

    /// Removes compressed bytes from the front of `bytes`, and returns the next decompressed bytes.
    ///
    /// The returned bytes are valid until the next call. Further blocks, whose window is empty, can
    /// follow a block with the bit BFINAL (section 7.2.3.4).
    ///
    /// - Returns: `nil` if the compressed bytes are exhausted.
    func next(_ bytes: inout UnsafeRawBufferPointer) throws(WebSocketViolation) -> UnsafeRawBufferPointer? {
        repeat {
            let piece = bytes.prefix(1 << 30)
            stream.pointee.input = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.inputCount = UInt32(piece.count)
            stream.pointee.output = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.outputCount = UInt32(Self.roomSize)
            let result = zlib.inflate(stream, Self.synchronize)
            stream.pointee.input = nil
            let consumed = bytes.removePrefix(piece.count - Int(stream.pointee.inputCount))
            if !consumed.isEmpty { isAtStart = false }
            if result == Self.streamEnd {
                guard zlib.resetInflating(stream) == 0 else { throw .invalidCompression }
                isAtStart = true
            }
            let count = Self.roomSize - Int(stream.pointee.outputCount)
            // After an error, the next call returns the same error.
            if count > 0 { return UnsafeRawBufferPointer(rebasing: room[..<count]) }
            switch result {
            case 0, Self.streamEnd: break
            case Self.bufferError where bytes.isEmpty: return nil
            case Self.memoryError: throw .outOfMemory
            default: throw .invalidCompression
            }
        } while !bytes.isEmpty
        return nil
    }

    /// Ends the message, whose last bytes are those of ``trailer``.
    func finish() throws(WebSocketViolation) {
        guard isAtStart || stream.pointee.dataType & Self.blockEnd != 0 else { throw .invalidCompression }
        guard hasContextTakeover || zlib.resetInflating(stream) == 0 else { throw .invalidCompression }
        isAtStart = true
    }
}
