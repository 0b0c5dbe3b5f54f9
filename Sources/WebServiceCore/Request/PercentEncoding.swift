import Foundation

/// A set of bytes that stand for themselves; every other byte is written as `%` and two upper-case hexadecimal digits.
struct ByteSet: Sendable {
    private var low: UInt64
    private var high: UInt64

    init(_ bytes: some Sequence<UInt8>) {
        low = 0
        high = 0
        for byte in bytes where byte < 128 { insert(byte) }
    }

    private mutating func insert(_ byte: UInt8) {
        if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 64) }
    }

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        byte < 128 && (byte < 64 ? low : high) & (1 << UInt64(byte & 63)) != 0
    }

    func union(_ bytes: some Sequence<UInt8>) -> ByteSet {
        var result = self
        for byte in bytes where byte < 128 { result.insert(byte) }
        return result
    }

    private static let alphanumerics = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    /// RFC 3986, section 2.3. Used for the names and values of a query, so that every server reads the same bytes back.
    static let unreserved = ByteSet(alphanumerics + Array("-._~".utf8))

    /// WHATWG URL, section 5.2: what the urlencoded serializer leaves as it is.
    static let form = ByteSet(alphanumerics + Array("*-._".utf8))

    /// RFC 3986, section 3.3: what may stand in a path, and the slash.
    static let path = unreserved.union("!$&'()*+,;=:@/".utf8)

    /// RFC 3986, section 3.4: what may stand in a query.
    static let query = path.union("?".utf8)
}

/// Bytes that grow; what query, form and path are written into.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    init(reserving capacity: Int) {
        bytes.reserveCapacity(capacity)
    }

    /// Writes bytes as they are.
    mutating func write(_ text: some StringProtocol) {
        bytes.append(contentsOf: text.utf8)
    }

    /// Writes one byte as it is.
    mutating func write(byte: UInt8) {
        bytes.append(byte)
    }

    /// Writes text with every byte outside `allowed` percent-encoded; a space becomes `+` where `spaceAsPlus` asks for it.
    mutating func encode(_ text: String, allowed: ByteSet, spaceAsPlus: Bool = false) {
        var text = text
        text.withUTF8 { utf8 in
            bytes.reserveCapacity(bytes.count + utf8.count)
            for byte in utf8 {
                if allowed.contains(byte) {
                    bytes.append(byte)
                } else if spaceAsPlus, byte == UInt8(ascii: " ") {
                    bytes.append(UInt8(ascii: "+"))
                } else {
                    appendEscaped(byte)
                }
            }
        }
    }

    /// Writes text that may hold percent-encoded bytes already: valid triplets stay, so that nothing is encoded twice;
    /// a `%` that begins none and every byte outside `allowed` are encoded.
    mutating func encodeKeepingTriplets(_ text: some Collection<UInt8>, allowed: ByteSet) {
        var index = text.startIndex
        while index != text.endIndex {
            let byte = text[index]
            index = text.index(after: index)
            if byte == UInt8(ascii: "%"), index != text.endIndex, ASCII.hexValue(text[index]) != nil {
                let second = text.index(after: index)
                if second != text.endIndex, ASCII.hexValue(text[second]) != nil {
                    bytes.append(byte)
                    continue
                }
            }
            if allowed.contains(byte) { bytes.append(byte) } else { appendEscaped(byte) }
        }
    }

    private mutating func appendEscaped(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "%"))
        bytes.append(Self.digit(byte >> 4))
        bytes.append(Self.digit(byte & 15))
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    var text: String {
        String(decoding: bytes, as: UTF8.self)
    }
}

extension ByteWriter {
    /// Writes pairs as `name=value&…`, with `first` before the first of them.
    mutating func writePairs(
        _ parameters: Parameters,
        strategy: ParameterStrategy,
        allowed: ByteSet,
        spaceAsPlus: Bool,
        first: String = ""
    ) throws(WebServiceError) {
        var separator = first
        try strategy.forEachPair(in: parameters) { name, value in
            write(separator)
            separator = "&"
            encode(name, allowed: allowed, spaceAsPlus: spaceAsPlus)
            guard let value else { return }
            write(byte: UInt8(ascii: "="))
            encode(value, allowed: allowed, spaceAsPlus: spaceAsPlus)
        }
    }
}

/// Decodes percent-encoded bytes; a `%` that begins no triplet stands for itself.
func percentDecoded(_ text: some Collection<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    var index = text.startIndex
    while index != text.endIndex {
        let byte = text[index]
        index = text.index(after: index)
        if byte == UInt8(ascii: "%"), index != text.endIndex, let first = ASCII.hexValue(text[index]) {
            let next = text.index(after: index)
            if next != text.endIndex, let second = ASCII.hexValue(text[next]) {
                result.append(first << 4 | second)
                index = text.index(after: next)
                continue
            }
        }
        result.append(byte)
    }
    return result
}
