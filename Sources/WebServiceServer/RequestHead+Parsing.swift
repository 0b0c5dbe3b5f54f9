import WebServiceCore
import WebServiceMocking

/// The parts of the parser (RFC 9112, sections 3 and 5).
extension RequestHead {
    /// The reason why bytes are not a request: the status of the response and a description.
    package struct Violation: Error, Hashable {
        let status: Int
        let reason: String
    }

    /// The framing of the body (RFC 9112, section 6.3).
    enum Framing: Hashable {
        case length(Int)
        case chunked
    }

    /// Parses `method SP request-target SP HTTP-version`.
    mutating func readRequestLine(_ line: ArraySlice<UInt8>) throws(Violation) {
        let parts = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw Violation(
                status: 400,
                reason: "the request line is not a method, a target and a version, separated by single spaces")
        }
        guard ASCII.isToken(parts[0]) else { throw Violation(status: 400, reason: "the method is not a token") }
        method = Request.Method(rawValue: String(decoding: parts[0], as: UTF8.self))
        target = String(decoding: parts[1], as: UTF8.self)
        guard ASCII.isVisible(parts[1]),
            target.hasPrefix("/") || target == "*" || target.contains("://") || method.rawValue == "CONNECT"
        else { throw Violation(status: 400, reason: "the request target is malformed") }
        version = String(decoding: parts[2], as: UTF8.self)
        let digits = version.utf8.dropFirst(5)
        guard version.hasPrefix("HTTP/"), digits.count == 3, digits.dropFirst().first == UInt8(ascii: "."),
            let major = ASCII.number(digits.prefix(1)),
            ASCII.number(digits.suffix(1)) != nil
        else { throw Violation(status: 400, reason: "the HTTP version is malformed") }
        guard major == 1 else { throw Violation(status: 505, reason: "only HTTP/1.0 and HTTP/1.1 are supported") }
    }

    /// Parses `field-name ":" OWS field-value OWS`.
    mutating func readField(_ line: ArraySlice<UInt8>) throws(Violation) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), ASCII.isToken(line[..<colon]) else {
            throw Violation(status: 400, reason: "a header line does not begin with a field name and a colon")
        }
        let name = String(decoding: line[..<colon], as: UTF8.self)
        let value = ASCII.trimmed(line[(colon + 1)...])
        guard ASCII.isFieldValue(value) else {
            throw Violation(status: 400, reason: "the value of the header field \(name) contains a control character")
        }
        headers.add(String(decoding: value, as: UTF8.self), for: Headers.Name(name))
    }

    /// Returns the framing of the body. Call this method after all fields have been read.
    ///
    /// - Throws: A ``Violation`` if fields are missing, repeated, invalid, contradictory or
    ///   unsupported.
    func framing() throws(Violation) -> Framing {
        let hosts = headers.values(for: "Host").count
        guard hosts == 1 || hosts == 0 && isHTTP10 else {
            throw Violation(
                status: 400, reason: "the request does not have exactly one Host field (RFC 9112, section 3.2)")
        }
        let codings = headers.values(for: "Transfer-Encoding")
        let lengths = headers.values(for: .contentLength)
        if !codings.isEmpty {
            guard lengths.isEmpty, !isHTTP10 else {
                throw Violation(
                    status: 400,
                    reason:
                        "Transfer-Encoding is not allowed with Content-Length or in HTTP/1.0 (RFC 9112, section 6.1)")
            }
            guard codings.count == 1, codings[0].equalsIgnoringASCIICase("chunked") else {
                throw Violation(status: 501, reason: "chunked is the only supported transfer coding")
            }
            return .chunked
        }
        guard let text = lengths.first else { return .length(0) }
        guard lengths.count == 1, let length = ASCII.number(text.utf8) else {
            throw Violation(status: 400, reason: "Content-Length is not a single number")
        }
        return .length(length)
    }
}
