import Foundation

/// A set of ASCII bytes that stand for themselves; every other byte is written as `%` and two upper-case hexadecimal digits.
struct ByteSet: Sendable {
    /// One entry for each of the 256 bytes: in the inner loop a look-up beats every computation.
    private let table: [Bool]

    init(_ bytes: some Sequence<UInt8>) {
        var table = [Bool](repeating: false, count: 256)
        for byte in bytes where byte < 128 { table[Int(byte)] = true }
        self.table = table
    }

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        table[Int(byte)]
    }

    /// The table for a loop over many bytes; it has 256 entries.
    @inline(__always)
    func withTable(_ body: (UnsafePointer<Bool>) -> Void) {
        table.withUnsafeBufferPointer { if let start = $0.baseAddress { body(start) } }
    }

    private static let alphanumerics = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    private static let unreservedBytes = alphanumerics + Array("-._~".utf8)
    private static let pathBytes = unreservedBytes + Array("!$&'()*+,;=:@/".utf8)

    /// RFC 3986, section 2.3. Used for the names and values of a query, so that every server reads the same bytes back.
    static let unreserved = ByteSet(unreservedBytes)

    /// WHATWG URL, section 5.2: what the urlencoded serializer leaves as it is.
    static let form = ByteSet(alphanumerics + Array("*-._".utf8))

    /// RFC 3986, section 3.3: what may stand in a path, and the slash.
    static let path = ByteSet(pathBytes)

    /// ``path`` without the colon, which could end a scheme.
    static let plainPath = ByteSet(pathBytes.filter { $0 != UInt8(ascii: ":") })

    /// RFC 3986, section 3.4: what may stand in a query.
    static let query = ByteSet(pathBytes + Array("?".utf8))
}

/// Bytes that grow: what URL, query and form are written into, once.
///
/// It owns raw memory, because this is the inner loop of every request: an `Array` checks on each byte whether it is shared. All access
/// goes through ``write(byte:)`` and ``reserve(_:)``, which keep `count` within `capacity`.
struct ByteWriter: ~Copyable {
    private var base: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    private(set) var count = 0

    init(reserving capacity: Int) {
        self.capacity = max(capacity, 64)
        base = .allocate(capacity: self.capacity)
    }

    deinit {
        base.deallocate()
    }

    /// What was written, which has to be UTF-8 already.
    var text: String { String(decoding: UnsafeBufferPointer(start: base, count: count), as: UTF8.self) }

    /// What was written.
    var data: Data { Data(bytes: base, count: count) }

    private mutating func reserve(_ additional: Int) {
        guard count + additional > capacity else { return }
        let larger = max(2 * capacity, count + additional)
        let new = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        new.update(from: base, count: count)
        base.deallocate()
        base = new
        capacity = larger
    }

    /// Writes one byte as it is.
    mutating func write(byte: UInt8) {
        reserve(1)
        base[count] = byte
        count += 1
    }

    /// Writes bytes as they are.
    mutating func write(_ text: some StringProtocol) {
        Self.withBytes(of: text) { append($0) }
    }

    /// Writes bytes as they are.
    mutating func write(bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBufferPointer { append($0) }
    }

    private mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let start = bytes.baseAddress else { return }
        reserve(bytes.count)
        (base + count).update(from: start, count: bytes.count)
        count += bytes.count
    }

    /// Writes text with every byte outside `allowed` percent-encoded; a space becomes `+` where `spaceAsPlus` asks for it.
    mutating func encode(_ text: String, allowed: ByteSet, spaceAsPlus: Bool = false) {
        Self.withBytes(of: text) { utf8 in
            reserve(3 * utf8.count)
            var end = base + count
            allowed.withTable { isAllowed in
                for byte in utf8 {
                    if isAllowed[Int(byte)] {
                        end.pointee = byte
                        end += 1
                    } else if spaceAsPlus, byte == UInt8(ascii: " ") {
                        end.pointee = UInt8(ascii: "+")
                        end += 1
                    } else {
                        Self.escape(byte, to: &end)
                    }
                }
            }
            count = end - base
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
                    write(byte: byte)
                    continue
                }
            }
            if allowed.contains(byte) { write(byte: byte) } else { writeEscaped(byte) }
        }
    }

    /// The bytes of a text, without a copy wherever they lie together, which native Swift strings guarantee.
    @inline(__always)
    private static func withBytes(of text: some StringProtocol, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        if text.utf8.withContiguousStorageIfAvailable(body) == nil {
            Array(text.utf8).withUnsafeBufferPointer(body)
        }
    }

    private mutating func writeEscaped(_ byte: UInt8) {
        reserve(3)
        var end = base + count
        Self.escape(byte, to: &end)
        count += 3
    }

    /// The caller has reserved three bytes.
    @inline(__always)
    private static func escape(_ byte: UInt8, to end: inout UnsafeMutablePointer<UInt8>) {
        end[0] = UInt8(ascii: "%")
        end[1] = digit(byte >> 4)
        end[2] = digit(byte & 15)
        end += 3
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
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
