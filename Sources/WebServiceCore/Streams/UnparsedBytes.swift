import Foundation

/// The bytes of a body that a parser has received but not yet consumed.
///
/// Appending and consuming take amortized constant time per byte.
struct UnparsedBytes: Sendable {
    /// The capacity that is retained when all bytes are consumed. It is low, because there may be
    /// many idle streams.
    private static let maximumIdleCapacity = 4 << 10
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private var storage: [UInt8] = []
    /// The index of the first byte in `storage` that has not been consumed.
    private var start = 0

    /// The number of bytes.
    var count: Int { storage.count - start }

    mutating func append(_ bytes: some ContiguousBytes) {
        if start > count {
            storage.removeSubrange(..<start)
            start = 0
        }
        bytes.withUnsafeBytes { storage.append(contentsOf: $0) }
    }

    /// Removes bytes from the front, at most ``count``.
    @inline(__always)
    mutating func consume(_ number: Int) {
        start += number
        if start >= storage.count { removeAll() }
    }

    private mutating func removeAll() {
        start = 0
        storage.removeAll(keepingCapacity: storage.capacity <= Self.maximumIdleCapacity)
    }

    @inline(__always)
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        storage.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
    }

    /// Removes a byte order mark from the front, which must be the start of the body.
    ///
    /// - Returns: `false` if the bytes are only a part of a mark, so more bytes are needed.
    mutating func removeByteOrderMark() -> Bool {
        guard let isMark = withBytes({ $0.contains(Self.byteOrderMark, at: 0) }) else { return false }
        if isMark { consume(Self.byteOrderMark.count) }
        return true
    }
}

extension UnsafeRawBufferPointer {
    /// Returns the index of the first occurrence of a byte at or after an index.
    @inline(__always)
    func firstIndex(of byte: UInt8, from index: Int) -> Int? {
        guard let base = baseAddress, index < count, let found = memchr(base + index, Int32(byte), count - index)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }

    /// Returns whether a sequence of bytes is at an index; `nil` if the bytes end within it.
    func contains(_ sequence: [UInt8], at index: Int) -> Bool? {
        let length = Swift.min(sequence.count, count - index)
        guard let base = baseAddress, length > 0 else { return sequence.isEmpty ? true : nil }
        guard memcmp(base + index, sequence, length) == 0 else { return false }
        return length == sequence.count ? true : nil
    }

    /// Returns whether the bytes equal those of a string.
    @inline(__always)
    func equals(_ text: StaticString) -> Bool {
        guard let baseAddress, count == text.utf8CodeUnitCount else { return false }
        return memcmp(baseAddress, text.utf8Start, count) == 0
    }

    /// Returns the bytes of a range of indices.
    @inline(__always)
    func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[range])
    }
}

extension UInt8 {
    static let lineFeed = UInt8(ascii: "\n")
    static let carriageReturn = UInt8(ascii: "\r")
}
