/// What the header fields of an answer say about where its body ends, and whether that can be believed (RFC 9112, section 6.3). libcurl takes the last of
/// several lengths and the digits in front of garbage; an answer that can be read in two ways is refused instead.
struct Framing {
    /// The length of the body in bytes, as it is on the wire.
    private(set) var contentLength: Int64?
    /// Whether the body is compressed, so that its length is not that of what is received.
    private(set) var isEncoded = false
    /// Whether it is compressed in the one way that is asked for.
    private(set) var isGzip = false
    /// Why the answer cannot be believed.
    private(set) var violation: String?
    private var isChunked = false

    /// Looks at one line of the header section.
    mutating func observe(_ line: UnsafeRawBufferPointer) {
        guard line.count > 15, let first = line.first else { return }
        switch first | 0x20 {
        case UInt8(ascii: "c"):
            if let value = Self.value(of: "content-length", in: line) { observeLength(value) }
            if let value = Self.value(of: "content-encoding", in: line), !value.isEmpty, !Self.equals(value, "identity") {
                isGzip = !isEncoded && (Self.equals(value, "gzip") || Self.equals(value, "x-gzip"))
                isEncoded = true
            }
        case UInt8(ascii: "t"):
            if let value = Self.value(of: "transfer-encoding", in: line) { observeTransferEncoding(value) }
        default: break
        }
    }

    /// All lines were seen.
    mutating func finish() {
        if isChunked, contentLength != nil, violation == nil { violation = "it has both a Content-Length and a Transfer-Encoding" }
    }

    private mutating func observeLength(_ value: Slice<UnsafeRawBufferPointer>) {
        // A list of equal lengths is one length that a proxy has joined.
        for part in value.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            guard let length = Self.number(Self.trimmed(part)) else {
                violation = "its Content-Length is no length"
                return
            }
            if let contentLength, contentLength != length { violation = "it has two different Content-Lengths" }
            contentLength = length
        }
    }

    private mutating func observeTransferEncoding(_ value: Slice<UnsafeRawBufferPointer>) {
        if isChunked || !Self.equals(value, "chunked") { violation = "its Transfer-Encoding is not 'chunked'" }
        isChunked = true
    }

    private static func value(of name: StaticString, in line: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer>? {
        let length = name.utf8CodeUnitCount
        guard line.count > length else { return nil }
        for index in 0..<length where line[index] | 0x20 != name.utf8Start[index] | 0x20 { return nil }
        let rest = trimmed(line[length...])
        return rest.first == UInt8(ascii: ":") ? trimmed(rest.dropFirst()) : nil
    }

    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
        var bytes = bytes.drop(while: isBlank)
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        return bytes
    }

    private static func equals(_ value: Slice<UnsafeRawBufferPointer>, _ word: StaticString) -> Bool {
        value.count == word.utf8CodeUnitCount && zip(value, 0..<value.count).allSatisfy { $0 | 0x20 == word.utf8Start[$1] }
    }

    private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> Int64? {
        guard !digits.isEmpty else { return nil }
        var number: Int64 = 0
        for digit in digits {
            guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
            let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, overflow2) = tens.addingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
            guard !overflow, !overflow2 else { return nil }
            number = sum
        }
        return number
    }
}
