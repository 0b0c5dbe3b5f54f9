import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore

/// Digest authentication, over the sockets of a mock server.
@Suite("Digest authentication", .permit)
struct DigestTests {
    @Test("The hash MD5 has the values of RFC 1321")
    func md5() {
        for (text, hash) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"), ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (String(repeating: "1234567890", count: 8), "57edf4a22be3c955ac49da2e2107b67a"),
        ] {
            #expect(ASCII.hexadecimal(MD5.hash(Array(text.utf8))) == hash)
        }
        for count in 50..<70 { #expect(MD5.hash([UInt8](repeating: 1, count: count)).count == 16) }
    }

    @Test("Credentials are those of RFC 7616, section 3.9.1")
    func vectors() throws {
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let field =
                #"Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\#(algorithm), "#
                + #"nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#
            let challenge = try #require(DigestChallenge.strongest(in: [field]))
            let value = challenge.credentials(
                ("Mufasa", "Circle of Life"), ("GET", "/dir/index.html"), count: 1,
                clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
            #expect(value.contains("response=\"\(response)\""), "\(value)")
            #expect(value.contains("algorithm=\(algorithm)"))
            #expect(value.contains(#"opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#))
            #expect(value.contains("qop=auth, nc=00000001, cnonce="))
        }
    }

    @Test("The strongest supported challenge is selected from any list")
    func selection() {
        func algorithm(_ fields: String...) -> DigestChallenge.Algorithm? {
            DigestChallenge.strongest(in: fields)?.algorithm
        }
        #expect(algorithm(#"Digest realm="a", nonce="b""#) == .md5)
        #expect(algorithm(#"Basic realm="x", Digest realm="a, b", nonce="b", algorithm=md5, qop=auth"#) == .md5)
        let both = #"Digest realm="a", nonce="b", algorithm=MD5, Digest realm="a", nonce="b", algorithm=SHA-256"#
        #expect(algorithm(both) == .sha256)
        #expect(algorithm(#"Negotiate abc=="#, #"dIgEsT realm = "a" , nonce = c ,qop="auth""#) == .md5)
        #expect(algorithm(#"Digest realm="a", nonce="b", algorithm=SHA-512-256"#) == nil)
        #expect(algorithm(#"Digest realm="a", nonce="b", qop="auth-int""#) == nil)
        #expect(algorithm(#"Digest realm="a""#) == nil)
        #expect(algorithm(#"Digest realm="a", nonce="b", qop=auth,auth-int, algorithm=SHA-256"#) == .sha256)
        #expect(algorithm(#"Digest qop=auth-int , auth,realm="a", nonce="b", Basic realm="x""#) == .md5)
        #expect(algorithm(#"Digest realm="a", nonce="b", qop=auth-int, Negotiate, Basic realm="x""#) == nil)
        #expect(algorithm(#"Digest realm="a", nonce="b", qop="auth-int", auth"#) == nil)
        #expect(algorithm("Digest", "", ",,,", "=", "Digest realm=\"a", "Bearer x") == nil)
        #expect(algorithm(String(repeating: "=,\"", count: 100_000)) == nil)
    }

    /// A server that accepts the user "u" with the password "secret".
    private func server(
        algorithm: String = "SHA-256", _ stale: @escaping @Sendable (Int) -> Bool = { _ in false },
        isNonce: @escaping @Sendable (_ count: Int) -> Bool = { _ in true }
    ) throws -> MockServer {
        let nonces = Mutex((count: 0, seen: Set<String>()))
        return try MockServer.forTest { request in
            func challenge(isStale: Bool) -> MockResponse {
                let nonce = nonces.withLock { state in
                    state.count += 1
                    return "n\(state.count)"
                }
                var response = MockResponse(statusCode: 401)
                response.headers["WWW-Authenticate"] =
                    #"Digest realm="brewery \"ale\"", nonce="\#(nonce)", qop="auth", algorithm=\#(algorithm), stale=\#(isStale)"#
                return response
            }
            guard let field = request.headers["Authorization"] else { return challenge(isStale: false) }
            var values: [String: String] = [:]
            for part in field.dropFirst(7).components(separatedBy: ", ") {
                let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
                values[pair[0]] = pair[1].hasPrefix("\"") ? String(pair[1].dropFirst().dropLast()) : pair[1]
            }
            func hash(_ text: String) -> String {
                ASCII.hexadecimal(
                    algorithm == "MD5" ? MD5.hash(Array(text.utf8)) : SHA2.sha256.hash(Data(text.utf8)))
            }
            let nonce = values["nonce"] ?? ""
            let count = values["nc"] ?? ""
            let isNew = nonces.withLock { $0.seen.insert("\(nonce) \(count)").inserted }
            let secret = hash(#"u:brewery "ale":secret"#)
            let target = hash("\(request.method):\(request.target)")
            let expected = hash("\(secret):\(nonce):\(count):\(values["cnonce"] ?? ""):auth:\(target)")
            guard isNew, isNonce(Int(count, radix: 16) ?? 0), values["uri"] == request.target,
                values["response"] == expected
            else {
                return challenge(isStale: false)
            }
            if stale(Int(count, radix: 16) ?? 0) { return challenge(isStale: true) }
            if request.path == "/redirect" {
                var response = MockResponse(statusCode: 307)
                response.headers["Location"] = request.target == "/redirect" ? "/target?x=1" : "http://localhost:1/"
                return response
            }
            return MockResponse(statusCode: 200, data: request.body + Data(request.target.utf8))
        }
    }

    private func failure(_ result: Result<String, any Error>) -> WebServiceError? {
        if case .failure(let error) = result { error as? WebServiceError } else { nil }
    }

    private func service(_ server: MockServer, password: String = "secret") -> WebService {
        let service = WebService(baseURLString: server.baseURLString)
        service.interceptors = [.digest(user: "u", password: password)]
        return service
    }

    @Test(
        "A request is sent again with credentials, and later ones with a counter",
        arguments: ["SHA-256", "MD5"])
    func requests(algorithm: String) async throws {
        let server = try server(algorithm: algorithm)
        let service = service(server)
        let task = service.POST("/brew?a=%20b").setBody(Data("ale ".utf8)).string()
        #expect(try await task.value == "ale /brew?a=%20b")
        #expect(try await task.response.attempts == 2)
        #expect(task.timeline.events.contains { $0.kind == .retry && $0.detail == "with Digest credentials" })
        #expect(server.receivedRequests.map { $0.headers["Authorization"] == nil } == [true, false])
        #expect(server.receivedRequests.allSatisfy { $0.body == Data("ale ".utf8) })
        for _ in 0..<3 { #expect(try await service.GET("/x").string().value == "/x") }
        #expect(server.receivedRequests.count == 5)
        #expect(server.receivedRequests.last?.headers["Authorization"]?.contains("nc=00000004") == true)
        let texts = server.receivedRequests.compactMap { $0.headers["Authorization"] }
        #expect(texts.allSatisfy { !$0.contains("secret") })
        #expect(!"\(task.timeline) \(task.request)".contains("Digest username"))
    }

    @Test("A bearer token after Digest is not sent, even before the challenge")
    func bearerAfterDigest() async throws {
        let server = try server()
        let service = service(server)
        service.interceptors = [.digest(user: "u", password: "secret"), .bearer("t")]
        #expect(try await service.GET("/x").string().value == "/x")
        #expect(server.receivedRequests.map { $0.headers["Authorization"]?.prefix(7) } == [nil, "Digest "])
    }

    @Test("A wrong password is a 401 after two requests, and a stale nonce is replaced")
    func refusals() async throws {
        let refusing = try server()
        let wrong = service(refusing, password: "other")
        #expect(await failure(wrong.GET("/").string().result)?.status == 401)
        #expect(refusing.receivedRequests.count == 2)
        #expect(await failure(wrong.GET("/").string().result)?.status == 401)
        // The rejected challenge is not used again, so the wrong password is sent only once.
        #expect(refusing.receivedRequests.map { $0.headers["Authorization"] == nil } == [true, false, true, false])
        let renewing = try server { $0 > 2 }
        let service = service(renewing)
        for _ in 0..<6 { #expect(try await service.GET("/x").string().value == "/x") }
        // 1 challenge, then 2 requests for each nonce and a rejected one.
        #expect(renewing.receivedRequests.count == 9)
        let endless = try server { _ in true }
        #expect(await failure(self.service(endless).GET("/").string().result)?.status == 401)
        #expect(endless.receivedRequests.count == 3)
    }

    @Test("The credentials of a redirect are those of its URL, and another origin receives none")
    func redirects() async throws {
        let server = try server()
        let service = service(server)
        #expect(try await service.POST("/redirect").setBody(Data("ale ".utf8)).string().value == "ale /target?x=1")
        let other = try MockServer.forTest { request in
            MockResponse(statusCode: request.headers["Authorization"] == nil ? 200 : 500)
        }
        let redirecting = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 302)
            response.headers["Location"] = other.baseURLString + "/"
            return response
        }
        let crossing = self.service(server)
        _ = try await crossing.GET("/x").string().value
        let sent = crossing.GET(redirecting.baseURLString + "/").data()
        #expect(try await sent.response.status == 200)
        #expect(other.receivedRequests.count == 1)
        #expect(redirecting.receivedRequests.allSatisfy { $0.headers["Authorization"] == nil })
        let moved = self.service(redirecting)
        #expect(try await moved.GET("/").data().response.status == 200)
        #expect(other.receivedRequests.allSatisfy { $0.headers["Authorization"] == nil })
    }

    @Test("A body that can be read only once fails after the challenge, and is accepted with known credentials")
    func streams() async throws {
        let server = try server()
        let service = service(server)
        func stream() -> AsyncStream<Data> {
            AsyncStream { continuation in
                continuation.yield(Data("ale ".utf8))
                continuation.finish()
            }
        }
        let refused = await service.POST("/x").setBody(.stream(stream())).string().result
        #expect(failure(refused)?.code == .bodyNotReplayable, "\(refused)")
        _ = try await service.GET("/x").string().value
        #expect(try await service.POST("/x").setBody(.stream(stream())).string().value == "ale /x")
    }

    @Test("A user with a colon and control characters are errors")
    func characters() async throws {
        let server = try server()
        for (user, password) in [("a:b", "c"), ("a\n", "c"), ("a", "c\0")] {
            let service = WebService(baseURLString: server.baseURLString)
            service.interceptors = [.digest(user: user, password: password)]
            #expect(await failure(service.GET("/").string().result)?.code == .encoding)
        }
        #expect(server.receivedRequests.isEmpty)
    }

    @Test(
        "A nonce of an earlier exchange is replaced once, also if the server does not call it stale")
    func nonces() async throws {
        let oneTime = try server(isNonce: { $0 == 1 })
        let service = service(oneTime)
        for _ in 0..<3 { #expect(try await service.POST("/x").setBody(Data("ale ".utf8)).string().value == "ale /x") }
        #expect(oneTime.receivedRequests.count == 6)
        let accepts = Mutex(true)
        let refusing = try server(isNonce: { _ in accepts.withLock { $0 } })
        let known = self.service(refusing)
        #expect(try await known.GET("/x").string().value == "/x")
        accepts.withLock { $0 = false }
        let refused = known.GET("/x").string()
        #expect(await failure(refused.result)?.status == 401)
        #expect(refused.timeline.events.filter { $0.kind == .retry }.count == 1)
        #expect(refusing.receivedRequests.count == 4)
        accepts.withLock { $0 = true }
        #expect(try await known.GET("/x").string().value == "/x")
    }

    @Test("Concurrent requests succeed although the server accepts each nonce only once")
    func concurrent() async throws {
        let server = try server(isNonce: { $0 == 1 })
        let service = service(server)
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<20 { group.addTask { try await service.GET("/x").string().value } }
            return try await group.reduce(into: [String]()) { $0.append($1) }
        }
        #expect(texts == Array(repeating: "/x", count: 20))
        #expect(server.receivedRequests.count == 40)
    }

    @Test("A request that is sent again has its own challenge and a count that no other request has")
    func ownChallenge() throws {
        let account = DigestAccount(user: "u", password: "secret")
        let url = "https://example.com/x"
        let origin = try #require(Origin(url))
        func adopt(_ nonce: String) throws -> Request.Signature {
            let field = #"Digest realm="a", nonce="\#(nonce)", qop="auth""#
            return account.adopt(try #require(DigestChallenge.strongest(in: [field])), for: origin)
        }
        let (first, same, other) = (try adopt("n1"), try adopt("n1"), try adopt("n2"))
        let sent = try [account.signature, other, same, first, first].map { try $0.value(.GET, url, [:]) ?? "" }
        let expected = [("n2", 2), ("n2", 1), ("n1", 2), ("n1", 1), ("n1", 3)]
        for (value, (nonce, count)) in zip(sent, expected) {
            #expect(value.contains(" nonce=\"\(nonce)\""))
            #expect(value.contains("nc=0000000\(count)"))
        }
        #expect(try first.value(.GET, "https://example.org/", [:]) == nil)
    }
}
