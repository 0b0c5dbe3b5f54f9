import Foundation
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Responses: statuses, header fields and bodies.
extension SessionScenario {
    static let responses: [SessionScenario] =
        statuses + [
            SessionScenario(
                "a response to HEAD has no body, whatever its Content-Length, and the next request succeeds"
            ) { stage in
                stage.serve { _ in ScenarioReply(200, "ignored") }
                try stage.expect(.response(200, ""), await stage.send(stage.request("/", .HEAD)))
                try stage.expect(.response(200, "ignored"), await stage.send(stage.request()))
            },
            SessionScenario("the header fields and the URL of a response are delivered") { stage in
                let fields: Headers =
                    [
                        "X-Blanks": "a b  c", "X-Empty": "", "X-Utf8": "Söhne ☕",
                        "Content-Type": "text/plain; charset=utf-8",
                    ]
                stage.serve { _ in
                    var response = MockResponse(statusCode: 200, data: Data("ale".utf8))
                    response.headers = fields
                    return ScenarioReply(response)
                }
                let outcome = try await stage.send(stage.request("/a?b=c"))
                try stage.expect(.response(200, "ale"), outcome)
                for field in fields { try stage.expect(field.name, outcome.header(field.name), is: field.value) }
                try stage.expect("x-blanks", outcome.header("x-blanks"), is: "a b  c")
                try stage.expect("media type", outcome.response?.mimeType, is: "text/plain")
                try stage.expect("URL", outcome.response?.url?.absoluteString, is: stage.base + "/a?b=c")
            },
            SessionScenario("repeated response header fields are delivered completely and in order") { stage in
                try await receive(
                    ["X-Repeated": "a", "X-Other": "c", "X-Repeated": "b"], "X-Repeated", "a, b", on: stage)
            },
            SessionScenario(
                "repeated response header fields whose names differ in case are delivered completely and in order"
            ) { stage in
                try await receive(
                    ["X-Repeated": "a", "X-Other": "c", "x-repeated": "b"], "X-Repeated", "a, b", on: stage)
            },
            SessionScenario("repeated Set-Cookie fields are delivered, and no cookie is sent automatically") { stage in
                try await receive(
                    ["Set-Cookie": "a=1; Path=/", "Set-Cookie": "b=2"], "Set-Cookie", "a=1; Path=/, b=2", on: stage)
                _ = try await stage.send(stage.request())
                try stage.expect("Cookie", stage.arrived(2).headers["Cookie"], is: nil)
            },
            redirect("a redirect is delivered as a response and not followed", 302, to: "/elsewhere"),
            redirect(
                "a redirect to another host is delivered as a response and not followed", 307, to: "http://127.0.0.1:9/"
            ),
            redirect("a redirect without a target is delivered with its body", 301, to: nil),
            challenge("a 401 with a Basic challenge is delivered with its body", "Basic realm=\"x\""),
            challenge("a 401 with a Bearer challenge is delivered with its body", "Bearer"),
            challenge(
                "a 401 with several challenges is delivered with its body",
                "Negotiate, Basic realm=\"x\", Digest realm=\"x\", nonce=\"y\""),
            SessionScenario("completions are not called on the main thread") { stage in
                try stage.expect("on the main thread", await stage.send(stage.request()).wasOnMainThread, is: false)
            },
        ]

    private static let statuses = [200, 201, 204, 205, 304, 404, 500, 599].map { status in
        SessionScenario("a \(status) is delivered as a response, and the next request succeeds") { stage in
            stage.serve { _ in ScenarioReply(status, "ale") }
            let body = [204, 205, 304].contains(status) ? "" : "ale"
            for _ in 0..<2 { try stage.expect(.response(status, body), await stage.send(stage.request())) }
        }
    }

    private static func receive(_ fields: Headers, _ name: String, _ value: String, on stage: ScenarioStage)
        async throws
    {
        stage.serve { _ in
            var response = MockResponse(statusCode: 200)
            response.headers = fields
            return ScenarioReply(response)
        }
        let outcome = try await stage.send(stage.request())
        try stage.expect(.response(200, ""), outcome)
        try stage.expect(name, outcome.header(name), is: value)
    }

    private static func redirect(_ name: String, _ status: Int, to location: String?) -> SessionScenario {
        SessionScenario(name) { stage in
            stage.serve { _ in
                var response = MockResponse(statusCode: status, data: Data("elsewhere".utf8))
                response.headers["Location"] = location
                return ScenarioReply(response)
            }
            let outcome = try await stage.send(stage.request())
            try stage.expect(.response(status, "elsewhere"), outcome)
            try stage.expect("Location", outcome.header("Location"), is: location)
            try stage.expect("requests", stage.requests.count, is: 1)
        }
    }

    private static func challenge(_ name: String, _ challenge: String) -> SessionScenario {
        SessionScenario(name) { stage in
            stage.serve { _ in
                var response = MockResponse(statusCode: 401, data: Data("who are you?".utf8))
                response.headers["WWW-Authenticate"] = challenge
                return ScenarioReply(response)
            }
            let outcome = try await stage.send(stage.request())
            try stage.expect(.response(401, "who are you?"), outcome)
            try stage.expect("WWW-Authenticate", outcome.header("WWW-Authenticate"), is: challenge)
            try stage.expect("requests", stage.requests.count, is: 1)
        }
    }
}
