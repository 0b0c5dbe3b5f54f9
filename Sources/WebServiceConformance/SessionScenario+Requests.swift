import Foundation
import WebServiceCore
import WebServiceMocking

/// Requests: methods, targets, header fields and bodies.
extension SessionScenario {
    static let requests: [SessionScenario] =
        bodiless + withBody + echoes + [
            SessionScenario("request header fields with spaces, without a value and in UTF-8 are sent unchanged") {
                stage in
                let fields: Headers =
                    ["X-Blanks": "a b  c", "X-Tab": "a\tb", "X-Utf8": "Söhne ☕", "X-Comma": "a,b", "X-Empty": ""]
                var request = stage.request()
                for field in fields { request.headers.add(field.value, for: Headers.Name(field.name)) }
                try stage.expect(.response(200, ""), await stage.send(request))
                let arrived = try stage.arrived(1).headers
                for field in fields {
                    try stage.expect(field.name, arrived.values(for: Headers.Name(field.name)), is: [field.value])
                }
            },
            SessionScenario("repeated request header fields are sent completely and in order") { stage in
                var request = stage.request()
                for value in ["a", "b", "c"] { request.headers.add(value, for: "X-Repeated") }
                try stage.expect(.response(200, ""), await stage.send(request))
                try stage.expect("X-Repeated", stage.arrived(1).headers["X-Repeated"], is: "a, b, c")
            },
            SessionScenario(
                "Accept, User-Agent and Content-Type of the request are sent once and replace those of the session"
            ) { stage in
                var request = stage.request("/", .POST)
                request.body = Data("{}".utf8)
                let fields: Headers =
                    ["Accept": "a/b", "User-Agent": "scenario/1", "Content-Type": "c/d", "Accept-Language": "tlh"]
                for field in fields { request.headers[field.name] = field.value }
                try stage.expect(.response(200, ""), await stage.send(request))
                let arrived = try stage.arrived(1).headers
                for field in fields {
                    try stage.expect(field.name, arrived.values(for: Headers.Name(field.name)), is: [field.value])
                }
            },
        ]

    private static let bodiless =
        (["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "QUERY", "OPTIONS", "PURGE"] as [Request.Method]).map {
            method in
            SessionScenario("\(method) without a body is sent with its target") { stage in
                try stage.expect(.response(200, ""), await stage.send(stage.request("/a/b%2Fc?d=e%20f&g", method)))
                try stage.expect("requests", stage.requests.count, is: 1)
                let arrived = try stage.arrived(1)
                try stage.expect("method", arrived.method, is: method.rawValue)
                try stage.expect("target", arrived.target, is: "/a/b%2Fc?d=e%20f&g")
                try stage.expect("body", arrived.body, is: Data())
                guard stage.server != nil else { return }
                let lengths = arrived.headers.values(for: .contentLength)
                switch method {
                case .POST, .PUT, .PATCH: try stage.expect("Content-Length (RFC 9110, section 8.6)", lengths, is: ["0"])
                case .GET, .HEAD: try stage.expect("Content-Length (RFC 9110, section 8.6)", lengths, is: [])
                default:
                    try stage.expect(
                        lengths.isEmpty || lengths == ["0"], "no Content-Length or 0", "Content-Length: \(lengths)")
                }
            }
        }

    private static let withBody = (["POST", "PUT", "PATCH", "DELETE", "QUERY", "OPTIONS", "PURGE"] as [Request.Method])
        .map {
            method in
            SessionScenario("\(method) with a body is sent with the body and its Content-Length") { stage in
                var request = stage.request("/a?b", method)
                request.body = Data("hello".utf8)
                try stage.expect(.response(200, ""), await stage.send(request))
                let arrived = try stage.arrived(1)
                try stage.expect("method", arrived.method, is: method.rawValue)
                try stage.expect("target", arrived.target, is: "/a?b")
                try stage.expect("body", arrived.body, is: Data("hello".utf8))
                try stage.expect(
                    "Content-Type", arrived.headers.values(for: .contentType), is: [ContentType.octetStream])
                guard stage.server != nil else { return }
                try stage.expect("Content-Length", arrived.headers.values(for: .contentLength), is: ["5"])
            }
        }

    private static let echoes = [0, 1, 70_000, 3_000_000].map { size in
        SessionScenario("a body of \(size) bytes is sent and returned unchanged") { stage in
            let body = bytes(size)
            stage.serve { ScenarioReply(MockResponse(statusCode: 200, data: $0.body)) }
            var request = stage.request("/", .PUT)
            request.body = body
            let outcome = try await stage.send(request)
            let arrived = try stage.arrived(1).body
            try stage.expect(arrived == body, "the body", ScenarioOutcome.describe(arrived))
            try stage.expect(.response(200, body), outcome)
        }
    }

    /// Returns bytes of all values. The pattern repeats with a period that is not a power of two.
    static func bytes(_ count: Int) -> Data {
        let block = (0..<257).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var data = Data(capacity: count + block.count)
        while data.count < count { data.append(contentsOf: block) }
        return data.prefix(count)
    }
}
