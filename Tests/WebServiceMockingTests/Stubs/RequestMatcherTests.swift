import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@Suite(.permit) struct RequestMatcherTests {
    /// Returns a request as a session receives it.
    private func request(
        _ method: Request.Method = .GET, _ target: String, _ headers: Headers = [:], body: String = ""
    ) async throws -> ReceivedRequest {
        let session = MockSession()
        session.on(.any, .status(200))
        var request = Request(method, url: "http://a.test" + target)
        request.headers = headers
        if !body.isEmpty { request.body = Data(body.utf8) }
        _ = await session.response(to: request)
        return try #require(session.receivedRequests.first)
    }

    @Test(
        "A path pattern matches whole segments after percent-decoding",
        arguments: [
            ("/users", "/users", true), ("/users", "/users?page=2", true), ("/users?page=1", "/users", true),
            ("/users", "/users/", false), ("/users", "/user", false), ("/users/*", "/users/7", true),
            ("/users/*", "/users", false), ("/users/*", "/users/", false), ("/users/*", "/users/7/8", false),
            ("/users/**", "/users/7/8", true), ("/users/**", "/users", true), ("/users/**", "/user", false),
            ("/**", "/", true), ("/", "/", true), ("/", "/a", false), ("/**/beers", "/7/beers", true),
            ("/**/beers", "/7/8/beers", false), ("/long trail", "/long%20trail", true),
            ("/long%20trail", "/long%20trail", true), ("/a%2fb", "/a%2Fb", true), ("/a/b", "/a%2Fb", false),
            ("/{}", "/%7B%7D", true), ("/{}", "/a", false), ("/users/{id}", "/users/", false),
            ("/file.{type}", "/file.txt", false), ("/100%", "/100%25", true), ("", "/", false),
            ("users", "/users", false),
        ])
    func paths(pattern: String, target: String, expected: Bool) async throws {
        #expect(RequestMatcher.path(pattern).matches(try await request(.GET, target)) == expected)
    }

    @Test("Conditions are combined, and each explains a mismatch in one line")
    func explanations() async throws {
        let received = try await request(
            .POST, "/users?page=2&token=canary", ["Accept": "text/html", "Authorization": "Bearer canary"],
            body: #"{"name":"porter","tags":["a","b"],"price":3.5,"password":"canary","nested":{"list":[{"x":1}]}}"#)
        let expectations: [(RequestMatcher, String)] = [
            (.method(.GET), "method: expected GET, received POST"),
            (.path("/pubs/{id}"), "path: expected /pubs/{id}, received /users"),
            (.query("page", "1"), "query item page: expected 1, received 2"),
            (.query("size"), "query item size: expected any value, received none"),
            (.query("token", "x"), "query item token: expected [redacted], received [redacted]"),
            (.header("Accept", "a/b"), "header field Accept: expected a/b, received text/html"),
            (.header("X-Brew"), "header field X-Brew: expected any value, received none"),
            (.header("Authorization", "x"), "header field Authorization: expected [redacted], received [redacted]"),
            (.json(["name": "ale"]), #"JSON body at name: expected "ale", received "porter""#),
            (.json(["missing": 1]), "JSON body at missing: expected 1, received none"),
            (.json(["tags": ["a", "c"]]), #"JSON body at tags[1]: expected "c", received "b""#),
            (.json(["tags": ["a"]]), "JSON body at tags: expected an array of 1, received an array of 2"),
            (.json(["nested": ["list": [["x": 2]]]]), "JSON body at nested.list[0].x: expected 2, received 1"),
            (.json(["password": "x"]), "JSON body at password: expected [redacted], received [redacted]"),
            (
                .json([1]),
                "JSON body: expected an array of 1, received an object with the names name, nested, password, price, tags"
            ),
            (.form(["name": "ale"]), "form field name: expected ale, received none"),
            (.where("a short body") { $0.body.count < 10 }, "condition not met: a short body"),
            (!.method(.POST), "expected a request that does not match: POST"),
            (
                .method(.GET) || .path("/pubs"),
                "method: expected GET, received POST, or path: expected /pubs, received /users"
            ),
        ]
        for (matcher, line) in expectations {
            #expect(!matcher.matches(received), "\(matcher)")
            #expect(matcher.mismatches(in: received) == [line])
        }
        let matching: RequestMatcher =
            .method(.POST) && .path("/users") && .query("page", "2") && .query("page") && .header("accept", "text/html")
            && .json(["price": 3.5, "tags": ["a", "b"], "nested": ["list": [[:]]]]) && !.path("/pubs")
            && (.method(.GET) || .header("Authorization"))
        #expect(matching.matches(received))
        #expect(matching.mismatches(in: received) == [])
        #expect(
            (RequestMatcher.method(.GET) && .path("/a") && .query("page", "2")).mismatches(in: received).count == 2)
        #expect(RequestMatcher.any.matches(received))
    }

    @Test("A body that is not JSON or not the expected one is described by its length and start")
    func bodies() async throws {
        let received = try await request(.POST, "/", [:], body: "name=ale&size=0.5+l")
        #expect(RequestMatcher.form(["name": "ale", "size": "0.5 l"]).matches(received))
        #expect(RequestMatcher.body(Data("name=ale&size=0.5+l".utf8)).matches(received))
        #expect(
            RequestMatcher.json(["a": 1]).mismatches(in: received)
                == [#"JSON body: expected JSON, received 19 bytes that begin with "name=ale&size=0.5+l""#])
        #expect(
            RequestMatcher.body(Data()).mismatches(in: received)
                == [#"body: expected no bytes, received 19 bytes that begin with "name=ale&size=0.5+l""#])
        let long = try await request(.POST, "/", [:], body: String(repeating: "é\n", count: 100_000))
        let line = try #require(RequestMatcher.json(nil).mismatches(in: long).first)
        #expect(line.utf8.count < 400)
        #expect(line.hasPrefix("JSON body: expected JSON, received 300000 bytes"))
        #expect(!line.contains("\n"))
    }

    @Test("JSON integers of 64 bits are compared and shown exactly")
    func longIntegers() async throws {
        let request = try await request(.POST, "/", body: #"{"id":9007199254740993,"max":18446744073709551615}"#)
        #expect(RequestMatcher.json(["id": 9_007_199_254_740_993]).matches(request))
        #expect(RequestMatcher.json(["max": .unsigned(.max)]).matches(request))
        #expect(
            RequestMatcher.json(["id": 9_007_199_254_740_992]).mismatches(in: request)
                == ["JSON body at id: expected 9007199254740992, received 9007199254740993"])
        #expect(
            RequestMatcher.json(["max": .unsigned(.max - 1)]).mismatches(in: request)
                == ["JSON body at max: expected 18446744073709551614, received 18446744073709551615"])
    }

    @Test("An unmatched request fails with the three closest stubs and the differences of each")
    func closest() async throws {
        let session = MockSession()
        session.on(.DELETE, "/pubs", 204)
        session.on(.method(.GET) && .path("/users") && .query("page", "1") && .header("Accept", "a/b"), 200)
        session.on(.method(.PUT) && .path("/beers") && .query("page", "1") && .header("Accept", "a/b"), 200)
        let line = #line + 1
        session.on(.GET, "/users/{id}", 200)
        session.on(.GET, "/users", 200).times(1)
        #expect(await session.response(to: try get("http://a.test/users")).status == 200)
        let error = try #require(
            await session.response(to: try get("http://a.test/users?page=2&token=canary")).error as? WebServiceError)
        #expect(
            error.message == """
                no stub matches GET /users; the closest of 5 stubs:
                  GET /users (RequestMatcherTests.swift:\(line + 1)): it has reached its limit, times(1)
                  GET /users/{id} (RequestMatcherTests.swift:\(line)): path: expected /users/{id}, received /users
                  GET, /users, query item page: 1, header field Accept: a/b (RequestMatcherTests.swift:\(line - 3)): \
                query item page: expected 1, received 2; header field Accept: expected a/b, received none
                """)
        #expect(!"\(error)".contains("canary"))
    }

    @Test("Secrets in the values of the closest stub are redacted, also in encoded URLs")
    func nestedSecrets() async throws {
        let session = MockSession()
        session.on(.method(.POST) && .path("/a") && .query("next", "1") && .body(Data("1".utf8)), 200)
        var request = Request(.POST, url: "http://a.test/a?next=%2Fb%3Fu%3D%252Fc%253Ftoken%253Dcanary")
        request.body = Data("log=1&u=%2Fb%3Ftoken%3Dcanary".utf8)
        let error = try #require(await session.response(to: request).error as? WebServiceError)
        #expect(!error.message.contains("canary"))
        #expect(error.message.contains("/b?u=%2Fc%3Ftoken%3D%5Bredacted%5D"))
        #expect(error.message.contains("log=1&u=%2Fb%3Ftoken%3D%5Bredacted%5D"))
    }

    @Test("The time of a search is proportional to the number of stubs", .exclusive)
    func linear() async throws {
        func searchTime(stubs: Int) async throws -> Double {
            let session = MockSession()
            for number in 0..<stubs { session.on(.GET, "/users/\(number)", 200) }
            let start = processorTime(of: .process)
            for _ in 0..<3 { _ = await session.response(to: try get("http://a.test/users/none")) }
            let elapsed = processorTime(of: .process) - start
            #expect(await session.response(to: try get("http://a.test/users/0")).status == 200)
            return elapsed
        }
        _ = try await searchTime(stubs: 100)
        // A linear search takes 8 times as long, a quadratic one 64 times. Other work of the process
        // counts, so the best of up to three ratios does.
        var ratio = Double.infinity
        for _ in 0..<3 where ratio >= 24 {
            let few = try await searchTime(stubs: 2_000)
            ratio = try await searchTime(stubs: 16_000) / few
        }
        #expect(ratio < 24)
    }
}
