/// An incremental validator of UTF-8 (RFC 3629), which detects the first invalid byte.
struct UTF8Validator: Sendable {
    /// The number of missing bytes of the current character.
    private var missing = 0
    /// The valid range of the next byte of the current character.
    private var lower: UInt8 = 0x80
    private var upper: UInt8 = 0xBF

    /// Whether the bytes so far are complete characters.
    var isComplete: Bool { missing == 0 }

    /// Validates the next bytes.
    ///
    /// - Returns: `false` if no continuation of the bytes is valid.
    mutating func accepts(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if missing > 0 {
                guard byte >= lower, byte <= upper else { return false }
                (missing, lower, upper) = (missing - 1, 0x80, 0xBF)
            } else if byte < 0x80 {
                index = Self.endOfASCII(bytes, from: index + 1)
                continue
            } else {
                guard start(byte) else { return false }
            }
            index += 1
        }
        return true
    }

    /// Processes the first byte of a character (RFC 3629, section 4).
    private mutating func start(_ byte: UInt8) -> Bool {
        switch byte {
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, lower) = (2, 0xA0)
        case 0xE1...0xEC, 0xEE, 0xEF: missing = 2
        case 0xED: (missing, upper) = (2, 0x9F)  // no surrogates
        case 0xF0: (missing, lower) = (3, 0x90)
        case 0xF1...0xF3: missing = 3
        case 0xF4: (missing, upper) = (3, 0x8F)
        default: return false
        }
        return true
    }

    /// Returns an index before which all bytes are ASCII. Words of 8 bytes are examined at once.
    private static func endOfASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index + 8 <= bytes.count,
            bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
        {
            index += 8
        }
        return index
    }
}
