import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceInspector

@Suite("The server of an inspector", .permit)
struct InspectorRoutesTests {
    private let token = SecretToken()
    private let inspected = InspectedService()
    private var routes: InspectorRoutes { InspectorRoutes(port: 4711, token: token, store: inspected.store) }

    private func response(
        _ path: String, _ method: Request.Method = .GET, _ headers: [(String, String)] = [("Host", "127.0.0.1:4711")]
    ) -> LocalServer.Response {
        routes.response(to: LocalServer.Request(method: method, target: path, headers: Headers(headers)))
    }

    private var paths: [String] { ["", "archive", "events", "exchanges/1"].map { "/\(token.text)/\($0)" } }

    @Test("The page and its data are available with the token")
    func resources() async throws {
        try await inspected.send("/x")
        #expect(paths.map { response($0).statusCode } == [200, 200, 200, 200])
        #expect(response(paths[0]).headers[.contentType] == "text/html; charset=utf-8")
        #expect(response(paths[1]).headers["Content-Disposition"] == "attachment; filename=\"inspector.har\"")
        #expect(response(paths[2]).headers[.contentType] == "text/event-stream; charset=utf-8")
        #expect(response(paths[3]).headers[.contentType] == "application/json")
        #expect(response("/\(token.text)").headers[.location] == "/\(token.text)/")
        for path in ["exchanges/2", "exchanges/x", "exchanges/", "exchanges/1/", "x", "archive/x", "events/x", "/"] {
            #expect(response("/\(token.text)/\(path)").statusCode == 404)
        }
    }

    @Test("Another token is refused")
    func tokens() {
        for other in ["", String(token.text.dropLast()), token.text + "0", token.text.uppercased(), SecretToken().text]
        {
            #expect(
                ["/\(other)/", "/\(other)/archive", "/\(other)/events"].allSatisfy { response($0).statusCode == 404 })
        }
        #expect(response("/").statusCode == 404)
        #expect(response("*").statusCode == 404)
        for (index, digit) in token.text.enumerated() {
            let other = token.text.prefix(index) + (digit == "0" ? "1" : "0") + token.text.dropFirst(index + 1)
            #expect(!token.isEqual(to: other), "digit \(index)")
        }
        #expect(token.isEqual(to: token.text))
        #expect(!token.isEqual(to: SecretToken().text))
        #expect(token.text.utf8.count == 64)
        #expect(Set((0..<100).map { _ in SecretToken().text }).count == 100)
    }

    @Test(
        "Another host is refused",
        arguments: [
            [], ["evil.example"], ["evil.example:4711"], ["127.0.0.1"], ["127.0.0.1:4712"],
            ["127.0.0.1:4711", "evil.example"],
            ["127.0.0.1:4711.evil.example"], ["localhost"], [""],
        ])
    func hosts(hosts: [String]) {
        for path in paths { #expect(response(path, .GET, hosts.map { ("Host", $0) }).statusCode == 403) }
        #expect(response(paths[0], .GET, [("host", "localhost:4711")]).statusCode == 200)
    }

    @Test(
        "Another origin and other sites are refused",
        arguments: [
            [("Origin", "http://evil.example")], [("Origin", "null")], [("Origin", "https://127.0.0.1:4711")],
            [("Origin", "http://127.0.0.1:4712")], [("Origin", "http://localhost:4711")],
            [("Origin", "http://127.0.0.1:4711"), ("Origin", "http://evil.example")],
            [("Sec-Fetch-Site", "cross-site")],
            [("Sec-Fetch-Site", "same-site")],
            [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")],
            [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "document")],
        ])
    func origins(fields: [(String, String)]) {
        for path in paths {
            #expect(response(path, .GET, [("Host", "127.0.0.1:4711")] + fields).statusCode == 403)
        }
    }

    @Test("The own origin and a link in another page are accepted")
    func ownOrigin() {
        let host = [("Host", "127.0.0.1:4711")]
        #expect(response(paths[1], .GET, host + [("Origin", "http://127.0.0.1:4711")]).statusCode == 200)
        #expect(response(paths[1], .GET, host + [("Sec-Fetch-Site", "same-origin")]).statusCode == 200)
        let link = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
        #expect(response(paths[0], .GET, host + link).statusCode == 200)
    }

    @Test("Methods other than GET are refused")
    func methods() {
        for method in [Request.Method.POST, .PUT, .DELETE, .HEAD, "OPTIONS"] {
            #expect(response(paths[0], method).statusCode == 405)
        }
    }

    @Test("Every response forbids storing, sniffing, framing and foreign code")
    func protection() throws {
        let responses =
            paths.map { response($0) } + [response("/"), response(paths[0], .POST), response(paths[0], .GET, [])]
        for response in responses {
            #expect(response.headers["Cache-Control"] == "no-store")
            #expect(response.headers["X-Content-Type-Options"] == "nosniff")
            #expect(response.headers["Cross-Origin-Resource-Policy"] == "same-origin")
            let policy = try #require(response.headers["Content-Security-Policy"])
            #expect(policy.hasPrefix("default-src 'none'; "))
            #expect(policy.hasSuffix("frame-ancestors 'none'"))
            #expect(!policy.contains("unsafe"))
            #expect(!policy.contains("*"))
            #expect(!policy.contains("http"))
        }
        let (first, second) = (response(paths[0]), response(paths[0]))
        let nonce = try #require(
            first.headers["Content-Security-Policy"]?.split(separator: "'nonce-").dropFirst().first?.prefix(32))
        #expect(String(decoding: first.data, as: UTF8.self).contains("<script nonce=\"\(nonce)\">"))
        #expect(!String(decoding: second.data, as: UTF8.self).contains(nonce))
    }

    @Test("An inspector serves the exchanges of a service over a socket until it is stopped")
    func wholeInspector() async throws {
        let service = WebService(baseURLString: "https://h.example.com")
        let session = MockSession()
        session.on(.GET, "/x", .text("body"))
        service.session = session
        let inspector = try Inspector(observing: service)
        #expect(inspector.url.absoluteString.hasPrefix("http://127.0.0.1:"))
        _ = await service.GET("/x").data().result
        let browser = WebService(baseURL: inspector.url)
        let page = try await browser.GET("").string().value
        #expect(page.hasPrefix("<!doctype html>"))
        #expect(page.contains("EventSource"))
        let archive = try await browser.GET("archive").string().value
        #expect(archive.contains("https://h.example.com/x"))
        var events = try await browser.GET("events").stream().value.body.makeAsyncIterator()
        let first = try #require(try await events.next())
        #expect(String(decoding: first, as: UTF8.self).contains("data: {"))
        inspector.stop()
        inspector.stop()
        // Foundation reports the end of an unfinished response as an error or as its end.
        do { while try await events.next() != nil {} } catch {}
        await #expect(throws: (any Error).self) { try await browser.GET("").string().value }
        #expect(try await service.GET("/x").string().value == "body")
    }
}
