import WebServiceCore

/// An assembler that joins and decompresses the fragments of a message as they arrive.
struct MessageAssembler: ~Copyable {
    private let role: WebSocketRole
    private let limits: WebSocketLimits
    private let deflate: DeflateParameters?
    private let zlib: Zlib?
    /// The state of the extension, which the first compressed message creates.
    private var inflater: MessageInflater?

    /// The content of the message; `nil` between messages.
    private var content: MessageContent?
    private var isCompressed = false
    private var fragmentCount = 0

    init(role: WebSocketRole, limits: WebSocketLimits, deflate: DeflateParameters?, zlib: Zlib?) {
        self.role = role
        self.limits = limits
        self.deflate = deflate
        self.zlib = zlib
    }

    /// Begins a message, or continues the current one with the next frame.
    mutating func begin(_ header: FrameHeader) throws(WebSocketViolation) {
        if header.opcode == .continuation {
            guard content != nil else { throw .unexpectedContinuation }
        } else {
            guard content == nil else { throw .missingContinuation }
            content = MessageContent(isText: header.opcode == .text, maximumLength: limits.maximumMessageLength)
            isCompressed = header.isCompressed
            fragmentCount = 0
        }
        fragmentCount += 1
        guard fragmentCount <= limits.maximumFragmentCount else { throw .tooManyFragments }
        if isCompressed {
            try createInflater()
        } else {
            try content?.validate(adding: header.length)
        }
    }

    private mutating func createInflater() throws(WebSocketViolation) {
        guard inflater == nil, let deflate else { return }
        inflater = zlib.flatMap {
            MessageInflater(
                $0, windowBits: deflate.windowBits(from: role.peer),
                hasContextTakeover: deflate.hasContextTakeover(from: role.peer))
        }
        if inflater == nil { throw .outOfMemory }
    }

    /// Appends a part of a frame's payload.
    mutating func append(
        _ part: UnsafeRawBufferPointer, _ header: FrameHeader, at offset: Int
    ) throws(WebSocketViolation) {
        guard isCompressed else {
            try content?.append(part, header.maskingKey, at: offset)
            return
        }
        guard let maskingKey = header.maskingKey else {
            try decompress(part)
            return
        }
        var (rest, offset) = (part, offset)
        while let unmasked = inflater?.unmasked(&rest, maskingKey, at: offset) {
            try decompress(unmasked)
            offset += unmasked.count
        }
    }

    private mutating func decompress(_ bytes: UnsafeRawBufferPointer) throws(WebSocketViolation) {
        var rest = bytes
        while let part = try inflater?.next(&rest) {
            try content?.append(part)
        }
    }

    /// Processes the end of a frame.
    ///
    /// - Returns: The message, if the frame is its last one; otherwise `nil`.
    mutating func end(_ header: FrameHeader) throws(WebSocketViolation) -> WebSocketMessage? {
        guard header.isFinal else { return nil }
        if isCompressed, let inflater {
            try decompress(inflater.trailer)
            try inflater.finish()
        }
        return try content.take()?.message()
    }
}
