// libcurl's header also declares socket constants.
import CCurl
import Foundation

/// The framing of a response body, as specified by the header fields (RFC 9112, section 6.3).
///
/// libcurl accepts several lengths and uses the last one, and it ignores invalid characters after
/// the digits. This type rejects a response that can be interpreted in two ways.
struct Framing {
    /// The length of the body as sent, before decompression, in bytes.
    private(set) var contentLength: Int64?
    /// The names of the content codings, in the order in which they were applied, without
    /// `identity` and `none`, which some servers send in place of `identity`.
    private(set) var codings: [String] = []
    /// The reason to reject the response.
    private(set) var violation: String?
    private(set) var isChunked = false
    private var isHTTP10 = false
    /// Whether the field in the last line frames the body; `nil` before the first field.
    private var lastFramesBody: Bool?

    /// Whether the body ends with the connection or the stream.
    var isOpenEnded: Bool { contentLength == nil && !isChunked }

    /// Processes the status line.
    ///
    /// - Parameter mayBeHTTP2: Whether the response may be an HTTP/2 or HTTP/3 response, for which
    ///   libcurl generates the status line.
    mutating func observe(statusLine line: UnsafeRawBufferPointer, mayBeHTTP2: Bool) {
        isHTTP10 = line.starts(with: "HTTP/1.0 ".utf8)
        if !mayBeHTTP2, !line.starts(with: "HTTP/1.".utf8) { violation = "the version is not HTTP/1.x" }
        observeLineBreaks(line)
    }

    /// Processes one line of the header section.
    mutating func observe(_ line: UnsafeRawBufferPointer) {
        guard let first = line.first else { return }
        observeLineBreaks(line)
        if first == 0x20 || first == 0x09 {
            // The line continues the previous value (RFC 9112, section 5.2). libcurl uses only the
            // first line of a framing field.
            if lastFramesBody != false {
                violation = "a folded line continues a framing field or follows no field"
            }
            return
        }
        let length = line.prefix(while: Self.isTokenByte).count
        var rest = line[length...]
        while let byte = rest.first, byte == 0x20 || byte == 0x09 { rest.removeFirst() }
        guard length > 0, rest.first == UInt8(ascii: ":") else {
            violation = "a field name is not a token"
            return
        }
        lastFramesBody = Self.framingFields.contains { Self.equals(line[..<length], $0) }
        guard lastFramesBody == true else { return }
        // libcurl does not recognize these fields with white space before the colon.
        if line[length] != UInt8(ascii: ":") { violation = "a framing field has white space before its colon" }
        switch first | 0x20 {
        case UInt8(ascii: "c"):
            if let value = Self.value(of: "content-length", in: line) { observeLength(value) }
            if let value = Self.value(of: "content-encoding", in: line) { observeCodings(value) }
        case UInt8(ascii: "t"):
            if let value = Self.value(of: "transfer-encoding", in: line) { observeTransferEncoding(value) }
        default: break
        }
    }

    /// Returns the reason to reject a line of a trailer section (RFC 9112, section 7.1.2).
    ///
    /// The rules of header fields apply. A framing field is not allowed (RFC 9110, section 6.5.1).
    static func violation(ofTrailer line: UnsafeRawBufferPointer, isFirst: Bool) -> String? {
        var fields = Framing()
        if !isFirst { fields.lastFramesBody = false }
        fields.observe(line)
        if fields.lastFramesBody == true { return "a framing field is not allowed in a trailer" }
        return line.contains(0) ? "a line contains NUL" : fields.violation
    }

    /// Completes the checks after the last line.
    mutating func finish() {
        if isChunked, isHTTP10 { violation = "HTTP/1.0 does not define Transfer-Encoding" }
        if isChunked, contentLength != nil, violation == nil {
            violation = "both Content-Length and Transfer-Encoding are present"
        }
    }

    private mutating func observeLength(_ value: Slice<UnsafeRawBufferPointer>) {
        // A list of equal lengths, which an intermediary may create, counts as one length.
        var rest = value
        while true {
            let part = rest.prefix { $0 != UInt8(ascii: ",") }
            guard let length = Self.number(Self.trimmed(part)) else {
                violation = "the Content-Length is not a valid number"
                return
            }
            if let contentLength, contentLength != length { violation = "two Content-Length values differ" }
            contentLength = length
            guard part.endIndex < rest.endIndex else { return }
            rest = rest[(part.endIndex + 1)...]
        }
    }

    private mutating func observeTransferEncoding(_ value: Slice<UnsafeRawBufferPointer>) {
        if isChunked || !Self.equals(value, "chunked") { violation = "the Transfer-Encoding is not 'chunked'" }
        isChunked = true
    }

    private mutating func observeCodings(_ value: Slice<UnsafeRawBufferPointer>) {
        for part in value.split(separator: UInt8(ascii: ",")) {
            let name = Self.trimmed(part)
            guard !name.isEmpty, !Self.equals(name, "identity"), !Self.equals(name, "none") else { continue }
            codings.append(String(decoding: name, as: UTF8.self))
        }
    }

    private static let framingFields: [StaticString] = ["content-length", "transfer-encoding", "content-encoding"]

    /// Rejects a CR within the line, which some recipients interpret as a line break and others as
    /// a space, and NUL, which libcurl 7.80 accepts.
    private mutating func observeLineBreaks(_ line: UnsafeRawBufferPointer) {
        guard let start = line.baseAddress else { return }
        if memchr(start, 0, line.count) != nil { violation = "a line contains NUL" }
        guard let found = memchr(start, 0x0D, line.count) else { return }
        if start.distance(to: UnsafeRawPointer(found)) != line.count - 2 || line.last != 0x0A {
            violation = "a line contains a CR before its end"
        }
    }

    /// Returns whether a byte is allowed in a token (RFC 9110, section 5.6.2).
    ///
    /// The table has one bit for each byte below 128.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        let bits: UInt64 = byte < 64 ? 0x3FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return byte < 128 && bits >> UInt64(byte & 63) & 1 == 1
    }

    private static func value(
        of name: StaticString, in line: UnsafeRawBufferPointer
    ) -> Slice<UnsafeRawBufferPointer>? {
        let length = name.utf8CodeUnitCount
        guard line.count > length else { return nil }
        for index in 0..<length where line[index] | 0x20 != name.utf8Start[index] | 0x20 { return nil }
        let rest = trimmed(line[length...])
        return rest.first == UInt8(ascii: ":") ? trimmed(rest.dropFirst()) : nil
    }

    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
        var bytes = bytes.drop(while: isSpace)
        while let last = bytes.last, isSpace(last) { bytes.removeLast() }
        return bytes
    }

    private static func equals(_ value: Slice<UnsafeRawBufferPointer>, _ word: StaticString) -> Bool {
        value.count == word.utf8CodeUnitCount
            && zip(value, 0..<value.count).allSatisfy { $0 | 0x20 == word.utf8Start[$1] }
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
