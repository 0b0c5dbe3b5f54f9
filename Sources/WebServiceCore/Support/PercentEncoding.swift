import Foundation

/// A set of ASCII bytes that percent-encoding leaves unchanged.
///
/// Every other byte is written as `%` and two upper-case hexadecimal digits; a space is written as
/// `+` if the set specifies it.
struct ByteSet: Sendable {
    /// The output for each of the 256 bytes.
    ///
    /// An entry contains up to three bytes in its low bytes and their number in the highest byte.
    /// The inner loop therefore only looks up and stores entries, without branches.
    private let table: [UInt32]

    /// - Parameter spaceAsPlus: Whether a space is written as `+` unless the set contains it.
    init(_ bytes: some Sequence<UInt8>, spaceAsPlus: Bool = false) {
        var table = (UInt8.min...UInt8.max).map { byte in
            3 << 24 | UInt32(Self.digit(byte & 15)) << 16 | UInt32(Self.digit(byte >> 4)) << 8
                | UInt32(UInt8(ascii: "%"))
        }
        if spaceAsPlus { table[0x20] = 1 << 24 | UInt32(UInt8(ascii: "+")) }
        for byte in bytes where byte < 128 { table[Int(byte)] = 1 << 24 | UInt32(byte) }
        self.table = table
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        table[Int(byte)] == 1 << 24 | UInt32(byte)
    }

    /// Calls a closure with the table of 256 entries, for a loop over many bytes.
    @inline(__always)
    func withTable(_ body: (UnsafePointer<UInt32>) -> Void) {
        table.withUnsafeBufferPointer { if let start = $0.baseAddress { body(start) } }
    }

    private static let alphanumerics = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    private static let unreservedBytes = alphanumerics + Array("-._~".utf8)
    private static let pathBytes = unreservedBytes + Array("!$&'()*+,;=:@/".utf8)

    /// The unreserved characters (RFC 3986, section 2.3), for the names and values of a query.
    ///
    /// Names and values that are encoded with this set are decoded to the same bytes by every
    /// server.
    static let unreserved = ByteSet(unreservedBytes)

    /// The bytes that the urlencoded serializer leaves unchanged (WHATWG URL, section 5.2).
    static let form = ByteSet(alphanumerics + Array("*-._".utf8), spaceAsPlus: true)

    /// The bytes that are legal in a path (RFC 3986, section 3.3), including the slash.
    static let path = ByteSet(pathBytes)

    /// ``path`` without the colon, which could end a scheme.
    static let plainPath = ByteSet(pathBytes.filter { $0 != UInt8(ascii: ":") })

    /// The bytes that are legal in a query (RFC 3986, section 3.4).
    static let query = ByteSet(pathBytes + Array("?".utf8))
}

/// A growing buffer into which a URL, a query or a form is written once.
///
/// The writer owns raw memory, because it is used in the inner loop of every request: an `Array`
/// checks for unique ownership on each byte. Every access follows a call of ``reserve(_:)``, which
/// keeps `count` within `capacity`.
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

    /// The written bytes as a string. They must be valid UTF-8.
    var text: String { String(decoding: UnsafeBufferPointer(start: base, count: count), as: UTF8.self) }

    /// The written bytes.
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

    /// Writes one byte unchanged.
    mutating func write(byte: UInt8) {
        reserve(1)
        base[count] = byte
        count += 1
    }

    /// Writes the UTF-8 bytes of a string unchanged.
    mutating func write(_ text: some StringProtocol) {
        Self.withBytes(of: text) { append($0) }
    }

    /// Writes bytes unchanged.
    mutating func write(bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBufferPointer { append($0) }
    }

    private mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let start = bytes.baseAddress else { return }
        reserve(bytes.count)
        (base + count).update(from: start, count: bytes.count)
        count += bytes.count
    }

    /// Writes a string with every byte outside `allowed` percent-encoded.
    mutating func encode(_ text: String, allowed: ByteSet) {
        Self.withBytes(of: text) { utf8 in
            reserve(3 * utf8.count + 4)  // the last store writes four bytes, of which at most three count
            var end = UnsafeMutableRawPointer(base + count)
            allowed.withTable { table in
                for byte in utf8 {
                    let entry = table[Int(byte)]
                    end.storeBytes(of: entry.littleEndian, as: UInt32.self)
                    end += Int(entry >> 24)
                }
            }
            count = end - UnsafeMutableRawPointer(base)
        }
    }

    /// Writes bytes, some of which may already be percent-encoded.
    ///
    /// Valid triplets are preserved, so that nothing is encoded twice. A `%` that does not begin a
    /// triplet and every byte outside `allowed` are encoded.
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
            allowed.withTable { writeEntry($0[Int(byte)]) }
        }
    }

    /// Calls a closure with the UTF-8 bytes of a string.
    ///
    /// The bytes are not copied if they are contiguous, which native Swift strings guarantee.
    @inline(__always)
    private static func withBytes(of text: some StringProtocol, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        if text.utf8.withContiguousStorageIfAvailable(body) == nil {
            Array(text.utf8).withUnsafeBufferPointer(body)
        }
    }

    private mutating func writeEntry(_ entry: UInt32) {
        reserve(4)
        UnsafeMutableRawPointer(base + count).storeBytes(of: entry.littleEndian, as: UInt32.self)
        count += Int(entry >> 24)
    }
}

/// Returns bytes after percent-decoding. A `%` that does not begin a triplet is preserved.
package func percentDecoded(_ text: some Collection<UInt8>) -> [UInt8] {
    guard text.contains(UInt8(ascii: "%")) else { return Array(text) }
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
