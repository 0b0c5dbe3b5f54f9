import Foundation
import WebServiceCore

/// Heads that a correct server never sends. An ambiguous head is an error (RFC 9112, section 6.3).
extension SessionScenario {
    static let hostileHeads: [SessionScenario] = [
        length("two different Content-Length values are an error", "Content-Length: 3\r\nContent-Length: 2"),
        length("a Content-Length followed by letters is an error", "Content-Length: 3abc"),
        length("a Content-Length without digits is an error", "Content-Length: abc"),
        length("a negative Content-Length is an error", "Content-Length: -3"),
        length("a Content-Length of 23 digits is an error", "Content-Length: 99999999999999999999999"),
        length(
            "a Content-Length of 2^63 - 1 with a short body is an error and does not end the process",
            "Content-Length: 9223372036854775807"),
        length(
            "a Content-Length of 2^63 is an error and does not end the process", "Content-Length: 9223372036854775808"),
        raw(
            "a Content-Length of a chunked body is ignored or an error",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n0\r\n\r\n",
            gives: .either(.response(200, "ale"), .broken)),
        raw("garbage instead of a status line is an error", "garbage\r\nContent-Length: 3\r\n\r\nale", gives: .broken),
        raw("a response without a head is an error", "<html>ale</html>", gives: .broken),
        raw(
            "a status that is not a number is an error", "HTTP/1.1 abc OK\r\nContent-Length: 3\r\n\r\nale",
            gives: .broken),
        raw(
            "a NUL in a header field is an error", "HTTP/1.1 200 OK\r\nX-Brew: a\0le\r\nContent-Length: 3\r\n\r\nale",
            gives: .broken),
        raw(
            "a header section of 200 KB is delivered completely or is an error",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
                + "\(largeHeaders.map { "\($0.name): \($0.value)\r\n" }.joined())\r\nale",
            headers: largeHeaders, gives: .either(.response(200, "ale"), .either(.broken, .tooLarge))),
    ]

    private static let largeHeaders = Headers(
        (0..<200).map { ("X-Large-\($0)", String(repeating: "ale ", count: 250) + "\($0)") })

    private static func length(_ name: String, _ fields: String) -> SessionScenario {
        raw(name, "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nale", gives: .either(.broken, .tooLarge))
    }
}
