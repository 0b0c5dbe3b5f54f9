import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceInspector

@Suite("What the list shows of a request")
struct SentSecretsTests {
    private let inspected = InspectedService()

    private func secrets(_ content: Request.Body) async throws -> [String]? {
        inspected.session.on(.any, .text("ok"))
        var request = Request(.POST, url: "https://h.example.com/x")
        request.content = content
        return ListedExchange(try await inspected.send(request), .standard).secrets
    }

    @Test(
        "Secrets in bodies are named",
        arguments: [
            (#"{"user": "ann", "password": "canary"}"#, "application/json", ["password in the body"]),
            (
                #"{"a": {"access_token": "canary-1"}, "pin": "canary-2"}"#, "application/json",
                ["access_token in the body", "pin in the body"]
            ),
            (
                "grant_type=password&password=canary&user%5Bpin%5D=canary", "application/x-www-form-urlencoded",
                ["password in the body", "user[pin] in the body"]
            ),
            ("<login><password>canary</password></login>", "application/xml", ["password in the body"]),
            ("name=ann&note=[redacted]", "application/x-www-form-urlencoded", nil),
            (#"{"name": "Ale"}"#, "application/json", nil),
            ("name=Ale", "application/x-www-form-urlencoded", nil),
        ] as [(String, String, [String]?)])
    func bodies(_ body: String, _ type: String, _ expected: [String]?) async throws {
        #expect(try await secrets(.data(Data(body.utf8), contentType: type)) == expected)
    }

    @Test("A secret of a body without a name is counted")
    func unnamed() async throws {
        let token = "ghp_" + String(repeating: "a1B2", count: 9)
        let found = try await secrets(.data(Data(#"["\#(token)"]"#.utf8), contentType: "application/json"))
        #expect(found == ["body"])
    }

    @Test("The reason of a retry is shown with its attempt")
    func reason() async throws {
        inspected.session.on(.GET, "/x", [.status(503).header("Retry-After", "0"), .text("beer")])
        var request = Request(url: "https://h.example.com/x")
        request.options.interceptors = [RetryPolicy(baseDelay: .milliseconds(1))]
        let row = ListedExchange(try await inspected.send(request), .standard)
        #expect(row.tries?.map(\.kind) == [nil, "retry"])
        #expect(row.tries?.last?.reason?.hasPrefix("status 503") == true)
    }

    @Test("A typed request has the method and the URL of the request that is sent for it")
    func typed() async throws {
        inspected.session.on(.GET, "/typed", .json(["name": 7]))
        _ = try? await inspected.service.perform(Typed()).value  // the response cannot be decoded
        await eventually {
            inspected.store.exchanges().count == 2 && inspected.store.exchanges().allSatisfy { $0.phase == .ended }
        }
        let exchanges = inspected.store.exchanges()
        let rows = exchanges.map { ListedExchange($0, .standard) }
        #expect(rows.first?.method == "GET")
        #expect(rows.first?.url == "https://h.example.com/typed")
        #expect(rows.first?.error?.hasPrefix("decoding") == true)
        #expect(rows.last?.parent == rows.first?.number)
    }

    private struct Typed: HTTPServiceRequest {
        typealias Output = [String]

        func request(for service: WebService) -> Request { service.request(.GET, path: "/typed") }
    }
}
