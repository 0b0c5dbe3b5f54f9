import WebServiceCore

/// The request line and the header section of a request (RFC 9112, sections 3 and 5), read line by line.
struct RequestHead: Sendable, Hashable {
    /// Why bytes are no request: the status that answers them and a text for whoever wrote the client.
    struct Violation: Error, Hashable {
        let status: Int
        let reason: String
    }

    /// How the end of the body is found (RFC 9112, section 6.3).
    enum Framing: Hashable {
        case length(Int)
        case chunked
    }

    private(set) var method = Request.Method.GET
    private(set) var target = ""
    private(set) var version = ""
    private(set) var headers = Headers()

    /// Reads `method SP request-target SP HTTP-version`.
    mutating func readRequestLine(_ line: ArraySlice<UInt8>) throws(Violation) {
        let parts = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw Violation(status: 400, reason: "the request line is not: method, blank, target, blank, version") }
        guard HTTPBytes.isToken(parts[0]) else { throw Violation(status: 400, reason: "the method is not a token") }
        method = Request.Method(rawValue: String(decoding: parts[0], as: UTF8.self))
        target = String(decoding: parts[1], as: UTF8.self)
        guard HTTPBytes.isVisible(parts[1]), target.hasPrefix("/") || target == "*" || target.contains("://") || method.rawValue == "CONNECT"
        else { throw Violation(status: 400, reason: "the request target is malformed") }
        version = String(decoding: parts[2], as: UTF8.self)
        let digits = version.utf8.dropFirst(5)
        guard version.hasPrefix("HTTP/"), digits.count == 3, digits.dropFirst().first == UInt8(ascii: "."),
            let major = HTTPBytes.number(digits.prefix(1), radix: 10), HTTPBytes.number(digits.suffix(1), radix: 10) != nil
        else { throw Violation(status: 400, reason: "the HTTP version is malformed") }
        guard major == 1 else { throw Violation(status: 505, reason: "only HTTP/1.0 and HTTP/1.1 are spoken here") }
    }

    /// Reads `field-name ":" OWS field-value OWS`.
    mutating func readField(_ line: ArraySlice<UInt8>) throws(Violation) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), HTTPBytes.isToken(line[..<colon]) else {
            throw Violation(status: 400, reason: "a header field does not begin with a name and a colon")
        }
        let name = String(decoding: line[..<colon], as: UTF8.self)
        let value = HTTPBytes.trimmed(line[(colon + 1)...])
        guard HTTPBytes.isFieldValue(value) else { throw Violation(status: 400, reason: "the value of \(name) holds a control character") }
        headers.add(String(decoding: value, as: UTF8.self), for: Headers.Name(name))
    }

    /// How the body is framed, once all fields are read; this is where contradictions are found.
    func framing() throws(Violation) -> Framing {
        let hosts = headers.values(for: "Host").count
        guard hosts == 1 || hosts == 0 && isHTTP10 else {
            throw Violation(status: 400, reason: "there has to be one Host field (RFC 9112, section 3.2)")
        }
        let codings = headers.values(for: "Transfer-Encoding")
        let lengths = headers.values(for: .contentLength)
        if !codings.isEmpty {
            guard lengths.isEmpty, !isHTTP10 else {
                throw Violation(status: 400, reason: "Transfer-Encoding cannot stand beside Content-Length or in HTTP/1.0 (RFC 9112, section 6.1)")
            }
            guard codings.count == 1, codings[0].equalsIgnoringASCIICase("chunked") else {
                throw Violation(status: 501, reason: "chunked is the only transfer coding that is understood here")
            }
            return .chunked
        }
        guard let text = lengths.first else { return .length(0) }
        guard lengths.count == 1, let length = HTTPBytes.number(text.utf8, radix: 10) else {
            throw Violation(status: 400, reason: "Content-Length is not one number")
        }
        return .length(length)
    }

    var isHTTP10: Bool { version == "HTTP/1.0" }

    /// Whether the client waits for a 100 before it sends the body (RFC 9110, section 10.1.1).
    var expectsContinue: Bool { !isHTTP10 && headers["Expect"]?.equalsIgnoringASCIICase("100-continue") == true }

    /// Whether the client wants to go on using the connection (RFC 9112, section 9.3); HTTP/1.0 always closes.
    var keepsAlive: Bool { !isHTTP10 && !headers.asksToClose }
}

extension Headers {
    /// Whether `Connection` holds the option `close`.
    var asksToClose: Bool {
        (self["Connection"] ?? "").utf8.split(separator: UInt8(ascii: ",")).contains { option in
            String(decoding: HTTPBytes.trimmed(ArraySlice(option)), as: UTF8.self).equalsIgnoringASCIICase("close")
        }
    }
}
