/// An incremental parser of frames (RFC 6455, section 5.2).
///
/// The parser validates headers as soon as their bytes are received, and does not copy payloads.
struct FrameParser: Sendable {
    /// A part of a frame. Each frame has a header, any number of payload parts, and an end.
    enum Part {
        case header(FrameHeader)
        /// Bytes of the payload as received, beginning at an offset.
        case payload(UnsafeRawBufferPointer, FrameHeader, offset: Int)
        case end(FrameHeader)
    }

    private let role: WebSocketRole
    private let allowsCompression: Bool
    private let maximumLength: Int
    /// The received bytes of an incomplete header.
    private var start: [UInt8] = []
    /// The header of the frame whose payload is being received.
    private var header: FrameHeader?
    /// The number of received bytes of the payload.
    private var offset = 0

    /// - Parameters:
    ///   - role: The role of the receiver.
    ///   - allowsCompression: Whether the bit RSV1 is allowed.
    ///   - maximumLength: The maximum size of a payload, in bytes.
    init(role: WebSocketRole, allowsCompression: Bool, maximumLength: Int) {
        self.role = role
        self.allowsCompression = allowsCompression
        self.maximumLength = maximumLength
        start.reserveCapacity(FrameHeader.maximumSize)
    }

    /// Removes the next part of a frame from the front of the bytes.
    ///
    /// - Returns: `nil` if the bytes are exhausted.
    mutating func next(_ bytes: inout UnsafeRawBufferPointer) throws(WebSocketViolation) -> Part? {
        guard let header else {
            guard let header = try readHeader(&bytes) else { return nil }
            self.header = header
            offset = 0
            return .header(header)
        }
        guard offset < header.length else {
            self.header = nil
            return .end(header)
        }
        let payload = bytes.removePrefix(header.length - offset)
        guard !payload.isEmpty else { return nil }
        defer { offset += payload.count }
        return .payload(payload, header, offset: offset)
    }

    /// Removes bytes until the header is complete.
    private mutating func readHeader(_ bytes: inout UnsafeRawBufferPointer) throws(WebSocketViolation) -> FrameHeader? {
        if start.count < 2 {
            start += bytes.removePrefix(2 - start.count)
        }
        guard start.count >= 2, let first = start.first, let second = start.dropFirst().first else { return nil }
        let opcode = try validatedOpcode(first, second)
        let isMasked = second & FrameHeader.maskBit != 0
        let shortLength = second & FrameHeader.lengthBits
        let lengthSize = shortLength == FrameHeader.length64 ? 8 : shortLength == FrameHeader.length16 ? 2 : 0
        let size = 2 + lengthSize + (isMasked ? 4 : 0)
        start += bytes.removePrefix(size - start.count)
        let extendedLength = start.dropFirst(2).prefix(lengthSize)
        guard extendedLength.count == lengthSize else { return nil }
        let length = try length(shortLength, extendedLength)
        guard start.count == size else { return nil }
        let key = isMasked ? MaskingKey(UInt32(truncatingIfNeeded: Self.number(start.suffix(4)))) : nil
        start.removeAll(keepingCapacity: true)
        return FrameHeader(
            opcode, isFinal: first & FrameHeader.finalBit != 0, isCompressed: first & FrameHeader.compressedBit != 0,
            maskingKey: key, length: length)
    }

    /// Validates the first two bytes of a header, and returns the opcode.
    private func validatedOpcode(_ first: UInt8, _ second: UInt8) throws(WebSocketViolation) -> Opcode {
        guard first & FrameHeader.reservedBits == 0 else { throw .reservedBit }
        guard let opcode = Opcode(rawValue: first & FrameHeader.opcodeBits) else { throw .reservedOpcode }
        if first & FrameHeader.compressedBit != 0 {
            guard allowsCompression, opcode == .text || opcode == .binary else { throw .reservedBit }
        }
        if opcode.isControl {
            guard first & FrameHeader.finalBit != 0 else { throw .fragmentedControlFrame }
            guard second & FrameHeader.lengthBits <= FrameHeader.maximumControlLength else { throw .longControlFrame }
        }
        switch (role, second & FrameHeader.maskBit != 0) {
        case (.client, true): throw .maskedFrame
        case (.server, false): throw .unmaskedFrame
        case (.client, false), (.server, true): return opcode
        }
    }

    /// Returns the length of the payload. Throws an error if it is too large or not encoded in as
    /// few bytes as possible.
    private func length(_ short: UInt8, _ extended: ArraySlice<UInt8>) throws(WebSocketViolation) -> Int {
        guard !extended.isEmpty else { return try limited(UInt64(short)) }
        let number = Self.number(extended)
        guard number >> 63 == 0 else { throw .invalidLength }
        guard number > (extended.count == 2 ? UInt64(FrameHeader.length16) - 1 : UInt64(UInt16.max)) else {
            throw .nonMinimalLength
        }
        return try limited(number)
    }

    private func limited(_ length: UInt64) throws(WebSocketViolation) -> Int {
        guard let length = Int(exactly: length), length <= maximumLength else { throw .frameTooLarge }
        return length
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}

extension UnsafeRawBufferPointer {
    /// Removes up to a number of bytes from the front, and returns them.
    mutating func removePrefix(_ length: Int) -> UnsafeRawBufferPointer {
        let removed = UnsafeRawBufferPointer(rebasing: prefix(length))
        self = UnsafeRawBufferPointer(rebasing: dropFirst(length))
        return removed
    }
}
