import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Descriptions of header fields and parameters", .permit)
struct SecretsTests {
    @Test(
        "A value that may be or contain a secret is not shown",
        arguments: [
            ("Authorization", "canary"), ("X-Api-Key", "canary"), ("DPoP", "canary"), ("X-PIN", "canary"),
            ("X-JFrog-Art-Api", "canary"), ("X-Any", "Bearer canary"), ("X-Any", "a=1; token=canary"),
            ("X-Any", "pass%77ord=canary"), ("Location", "https://user:canary@h/"),
            ("Location", "https://h/?code=canary&state=1"), ("Link", #"{"\u0070in": "canary"}"#),
            ("Location", "https://hooks.slack.com/services/canary"), ("X-Any", "eyJhbGciOiJub25lIn0.canary.c2ln"),
            ("X-Any", "ghp_canaryABCDEF0123456789"),
        ])
    func hidden(name: String, value: String) {
        var headers = Headers()
        headers.add(value, for: Headers.Name(name))
        #expect(headers.description == "\(name): [redacted]")
        let parameters: Parameters = [name: value]
        #expect(parameters.description == "[\(name): [redacted]]")
    }

    @Test(
        "Other values are shown",
        arguments: [
            ("Accept", "application/json, text/html; q=0.8"), ("Content-Type", "text/html; charset=utf-8"),
            ("Cache-Control", "max-age=60, private"), ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("ETag", "\"33a64df5\""),
            ("Location", "https://h/v1/brewers?page=2"), ("X-Request-Id", "7f0c1b36-2f04-4cbb-9d3a-5b8b6f2b7c11"),
            ("User-Agent", "Brewery/1.0 (Linux x86_64)"), ("Retry-After", "120"),
        ])
    func shown(name: String, value: String) {
        var headers = Headers()
        headers.add(value, for: Headers.Name(name))
        #expect(headers.description == "\(name): \(value)")
    }
}
