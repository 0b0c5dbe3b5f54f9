package import WebServiceCore

/// The request line and header section of a request (RFC 9112, sections 3 and 5).
package struct RequestHead: Sendable, Hashable {
    package var method = Request.Method.GET
    package var target = ""
    package var version = ""
    package var headers = Headers()

    /// Creates a head that is filled by the parser.
    package init() {}

    /// Creates the head of an HTTP/1.1 request.
    package init(method: Request.Method, target: String, headers: Headers = Headers()) {
        (self.method, self.target, self.headers) = (method, target, headers)
        version = "HTTP/1.1"
    }

    package var isHTTP10: Bool { version == "HTTP/1.0" }

    /// Whether the client waits for a response with status 100 before it sends the body (RFC 9110,
    /// section 10.1.1).
    package var expectsContinue: Bool {
        !isHTTP10 && headers["Expect"]?.equalsIgnoringASCIICase("100-continue") == true
    }

    /// Whether the connection remains open for another request (RFC 9112, section 9.3).
    ///
    /// HTTP/1.0 connections are always closed.
    package var keepsAlive: Bool { !isHTTP10 && !headers.requestsClosing }
}

extension Headers {
    /// Whether `Connection` contains the option `close`.
    package var requestsClosing: Bool {
        (self["Connection"] ?? "").utf8.split(separator: UInt8(ascii: ",")).contains { option in
            ASCII.areEqualIgnoringCase(ASCII.trimmed(option), "close".utf8)
        }
    }
}
