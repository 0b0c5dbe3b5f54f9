import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@Suite("Matchers of hosts and URLs", .permit) struct RequestURLMatcherTests {
    private func received(_ url: String) async throws -> ReceivedRequest {
        let session = MockSession()
        session.on(.any, 200)
        _ = await session.response(to: Request(.GET, url: url))
        return try #require(session.receivedRequests.first)
    }

    @Test(
        "A host is compared without a port and without regard to case",
        arguments: [
            ("api.example.com", "https://api.example.com/a", true),
            ("API.Example.com", "https://api.example.com", true),
            ("api.example.com", "http://api.example.com:8080/", true),
            ("api.example.com", "https://example.com/", false),
            ("example.com", "https://api.example.com/", false), ("[::1]", "http://[::1]:8080/", true),
        ])
    func hosts(host: String, url: String, matches: Bool) async throws {
        #expect(RequestMatcher.host(host).matches(try await received(url)) == matches)
    }

    @Test(
        "A URL has the same origin, a path with the pattern, and at least the items of the query",
        arguments: [
            ("https://a.test/users/{id}", "https://a.test/users/7", true),
            ("https://a.test:443/users", "https://A.test/users", true), ("https://a.test", "https://a.test/", true),
            ("https://a.test/users?page=2", "https://a.test/users?size=1&page=2", true),
            ("https://a.test/users?page=2", "https://a.test/users?page=3", false),
            ("https://a.test/users", "http://a.test/users", false),
            ("https://a.test/users", "https://b.test/users", false),
            ("https://a.test/users", "https://a.test:8443/users", false), ("/users", "https://a.test/users", false),
        ])
    func urls(expected: String, url: String, matches: Bool) async throws {
        #expect(RequestMatcher.url(expected).matches(try await received(url)) == matches)
    }

    @Test("A mismatch names the part of the URL")
    func explanations() async throws {
        let request = try await received("http://a.test:8080/users?page=2&token=canary")
        #expect(RequestMatcher.host("b.test").mismatches(in: request) == ["host: expected b.test, received a.test"])
        #expect(
            RequestMatcher.url("https://b.test/pubs?page=1&token=x").mismatches(in: request) == [
                "origin: expected https://b.test, received http://a.test:8080",
                "path: expected /pubs, received /users", "query item page: expected 1, received 2",
                "query item token: expected [redacted], received [redacted]",
            ])
        #expect(
            RequestMatcher.url("/users").mismatches(in: request)
                == ["URL: the expected URL, whose path is /users, is not an absolute http or https URL"])
        #expect("\(RequestMatcher.url("https://b.test/pubs/{id}"))" == "https://b.test/pubs/{id}")
    }

    @Test("A server is matched by its own URL, and a placeholder has a value")
    func server() async throws {
        let server = try MockServer.forTest()
        server.on(.url(server.baseURLString + "/users/{id}") && .host("127.0.0.1")) { request in
            .text(request.pathParameters["id"] ?? "")
        }
        let service = WebService(server.baseURLString, session: FoundationSession.shared)
        #expect(try await service.GET("/users/7").string().value == "7")
    }
}
