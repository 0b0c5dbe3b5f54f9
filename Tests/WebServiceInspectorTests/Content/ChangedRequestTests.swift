import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics

import WebServiceMocking
import WebServiceServer

@testable import WebServiceInspector

@Suite("The requests that the page of an inspector changes", .permit)
struct ChangedRequestTests {
    private let token = SecretToken()
    private let inspected = InspectedService()
    private static let url = "https://h.example.com/x?token=canary-1&a=1"

    /// Sends a request with secrets.
    private func send() async throws -> RecordedAttempt {
        inspected.session.on(.path("/x"), .text("body"))
        inspected.session.on(.path("/y"), .text("other"))
        var request = Request(.POST, url: Self.url)
        request.headers = ["Authorization": "Bearer canary-2", "X-A": "1"]
        request.content = .data(Data(#"{"pin":"canary-3"}"#.utf8), contentType: "application/json")
        return try #require(try await inspected.send(request).attempts.last)
    }

    private func changed(
        url: String = "https://h.example.com/x?token=[redacted]&a=1", headers: [[String]] = [], body: String? = nil
    ) -> ChangedRequest {
        ChangedRequest(method: "PUT", url: url, headers: headers, body: body)
    }

    @Test("Placeholders in unchanged values are replaced by the secrets")
    func secrets() async throws {
        let sent = try await send()
        let fields = Redaction.standard.pairs(of: sent.requestHeaders)
        #expect(!fields.joined().joined().contains("canary"))
        let request = try changed(headers: fields).request(from: sent, .standard)
        let encoded = try EncodedRequest.encoding(request)
        #expect(encoded.method == .PUT)
        #expect(encoded.url == Self.url)
        #expect(encoded.headers["Authorization"] == "Bearer canary-2")
        #expect(encoded.headers["X-A"] == "1")
        #expect(encoded.body == Data(#"{"pin":"canary-3"}"#.utf8))
    }

    @Test("Secrets are not sent to another origin")
    func otherOrigin() async throws {
        let sent = try await send()
        for url in [
            "https://evil.example.com/x", "http://h.example.com/x", "https://h.example.com:444/x",
            "https://h.example.com@evil.example.com/", "https://h.example.com.evil.example.com/", "file:///x", "",
        ] {
            let changed = changed(url: url, headers: [["Authorization", "Bearer [redacted]"]], body: "")
            #expect(throws: WebServiceError.self) { try changed.request(from: sent, .standard) }
        }
    }

    @Test("A changed value with a placeholder is refused")
    func placeholders() async throws {
        let sent = try await send()
        for changed in [
            changed(url: "https://h.example.com/y?token=[redacted]"), changed(headers: [["X-A", "[redacted]"]]),
            changed(headers: [["Authorization", "Basic [redacted]"]]), changed(body: #"{"pin":"[redacted]","a":1}"#),
            changed(headers: [["X-A"]]), changed(url: "https://h.example.com/y?u=%2F%3Ftoken%3D%5Bredacted%5D"),
            changed(headers: [["X-A", "/?u=%2F%3Fu%3D%252F%253Ftoken%253D%255Bredacted%255D"]]),
        ] {
            #expect(throws: WebServiceError.self) { try changed.request(from: sent, .standard) }
        }
    }

    private func post(_ body: String, _ headers: [(String, String)] = [], token other: String? = nil)
        -> LocalServer.Response
    {
        let routes = InspectorRoutes(port: 4711, token: token, store: inspected.store)
        let fields = [("Host", "127.0.0.1:4711"), ("Content-Type", "application/json")] + headers
        return routes.response(
            to: LocalServer.Request(
                method: .POST, target: "/\(other ?? token.text)/exchanges/1/send", headers: Headers(fields),
                body: Data(body.utf8)))
    }

    @Test("Only the page sends requests")
    func requestsOfThePage() async throws {
        _ = try await send()
        let origin = [("Origin", "http://127.0.0.1:4711")]
        let body = #"{"method":"GET","url":"https://h.example.com/y","headers":[],"body":""}"#
        #expect(post(body).statusCode == 403)
        #expect(post(body, [("Origin", "http://evil.example")]).statusCode == 403)
        #expect(post(body, origin + [("Sec-Fetch-Site", "cross-site")]).statusCode == 403)
        #expect(post(body, origin, token: SecretToken().text).statusCode == 405)
        #expect(post("{", origin).statusCode == 400)
        #expect(post(#"{"method":"GET","url":"x","headers":[]}"#, origin).statusCode == 422)
        #expect(inspected.store.exchanges().count == 1)
        #expect(post(body, origin).statusCode == 202)
        let store = inspected.store
        await eventually { store.exchanges().last?.phase == .ended && store.exchanges().count == 2 }
        #expect(store.exchanges().last?.attempts.last?.url == "https://h.example.com/y")
    }

    @Test("An inspector without a service sends nothing")
    func withoutService() {
        let store = ExchangeStore(maximumExchanges: 1, bodyLimit: 1, memoryLimit: 1, redaction: .standard)
        let request = LocalServer.Request(
            method: .POST, target: "/\(token.text)/exchanges/1/send",
            headers: [
                "Host": "127.0.0.1:4711", "Content-Type": "application/json", "Origin": "http://127.0.0.1:4711",
            ], body: Data("{}".utf8))
        let routes = InspectorRoutes(port: 4711, token: token, store: store)
        #expect(routes.response(to: request).statusCode == 409)
    }
}
