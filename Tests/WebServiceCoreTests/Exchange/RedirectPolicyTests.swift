import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The decision of a redirect policy, with its URL as a string.
enum RedirectOutcome: Equatable {
    case deliver
    case follow(String, droppedCredentials: Bool)
    case fail(WebServiceError.Code)
}

extension RedirectPolicy {
    /// Decides with the encoded URL of the request.
    func decide(
        _ request: Request, _ status: Int = 302, _ locations: String..., followed: Int = 0
    ) throws -> Decision {
        decision(for: request, at: try request.encode().url, status: status, locations: locations, followed: followed)
    }

    func outcome(_ location: String, from url: String = "https://a/dir/x?q=1", status: Int = 302, followed: Int = 0)
        throws -> RedirectOutcome
    {
        switch try decide(Request(url: url), status, location, followed: followed) {
        case .deliver: return .deliver
        case .follow(let next, let dropped): return .follow(try next.encode().url, droppedCredentials: dropped)
        case .fail(let error): return .fail(error.code)
        }
    }
}

extension RedirectPolicy.Decision {
    var next: Request? {
        guard case .follow(let request, _) = self else { return nil }
        return request
    }

    var error: WebServiceError? {
        guard case .fail(let error) = self else { return nil }
        return error
    }

    var isDelivery: Bool {
        guard case .deliver = self else { return false }
        return true
    }
}

@Suite(.permit) struct RedirectPolicyTests {
    static let allMethods: [Request.Method] = [.GET, .HEAD, .POST, .PUT, .PATCH, .DELETE, .QUERY, .OPTIONS]

    // MARK: Status and method

    @Test(
        "The status and the method determine the method and the body of the next request",
        arguments: [300, 301, 302, 303, 307, 308],
        allMethods)
    func methods(status: Int, method: Request.Method) throws {
        let takesBody = method != .GET && method != .HEAD
        let request = Request.make(method, "https://a/x") {
            if takesBody { $0.body = Data("body".utf8) }
            $0.headers = [
                "Accept": "a/b", "X-Own": "1", "Content-Type": "t/x", "content-language": "en", "CONTENT-MD5": "0",
                "Digest": "1",
                "Last-Modified": "2",
            ]
        }
        let decision = try RedirectPolicy.follow.decide(request, status, "/y")
        guard status != 300 else {
            #expect(decision.isDelivery)
            return
        }
        let next = try #require(decision.next).encode()
        let becomesGET = status == 303 && method != .HEAD || status < 303 && method == .POST
        #expect(next.method == (becomesGET ? .GET : method))
        #expect(next.url == "https://a/y")
        #expect(next.body == (takesBody && !becomesGET ? Data("body".utf8) : nil))
        #expect(
            next.headers.map(\.name) == ["Accept", "X-Own"]
                + (becomesGET ? [] : ["Content-Type", "content-language", "CONTENT-MD5", "Digest", "Last-Modified"]))
        #expect(next.contentType == nil)
    }

    @Test("Responses with other statuses and all responses under the manual policy are delivered")
    func otherStatuses() throws {
        for status in [
            Int.min, -301, 0, 100, 200, 201, 202, 299, 300, 304, 305, 306, 309, 399, 400, 404, 500, 3010, Int.max,
        ] {
            #expect(try RedirectPolicy(maximum: 0).decide(.make(), status, "/y").isDelivery)
        }
        for status in [301, 302, 303, 307, 308] {
            for location in ["/y", "http://evil/", "file:///etc/passwd", ""] {
                #expect(try RedirectPolicy.manual.decide(.make(), status, location, followed: 99).isDelivery)
            }
        }
    }

    @Test("A custom method changes to GET only for status 303")
    func ownMethod() throws {
        for (status, method) in [(301, "PURGE"), (302, "PURGE"), (303, "GET"), (307, "PURGE"), (308, "PURGE")] {
            #expect(try RedirectPolicy.follow.decide(.make("PURGE"), status, "/y").next?.method.rawValue == method)
        }
    }

    @Test("Parameters in the body are sent again, and those in the URL are replaced by the target")
    func parameters() throws {
        func next(_ method: Request.Method, _ status: Int, _ location: String = "?t=2") throws -> EncodedRequest {
            let request = Request.make(method, "https://a/x?own=1") {
                $0.parameters = ["p": "ä"]
                $0.queryParameters = ["q": 1]
                $0.queryParameterEncoder = { url, _ in url?.appendingPathComponent("encoder") }
            }
            #expect(try request.encode().url.contains("encoder"))
            return try #require(try RedirectPolicy.follow.decide(request, status, location).next).encode()
        }
        for status in [307, 308] {
            let post = try next(.POST, status)
            #expect(post.url == "https://a/x/encoder?t=2")
            #expect(post.body == Data("p=%C3%A4".utf8))
            #expect(post.contentType == ContentType.formEncoded)
        }
        for (method, status) in [
            (Request.Method.POST, 301), (.POST, 302), (.POST, 303), (.PUT, 303), (.GET, 307), (.DELETE, 308),
            (.HEAD, 303),
        ] {
            let other = try next(method, status, "/y")
            #expect(other.url == "https://a/y")
            #expect(other.body == nil)
            #expect(other.contentType == nil)
        }
        let json = Request.make(.PATCH, "https://a/") {
            $0.parameters = ["p": 1]
            $0.parameterEncoding = .json
        }
        #expect(try RedirectPolicy.follow.decide(json, 302, "/y").next?.encodedBody() == #"{"p":1}"#)
    }

    @Test("Forms, body providers and the options of a request are preserved by a redirect")
    func rest() throws {
        var request = Request.make(.PUT, "https://a/x") { $0.formParameters = ["a": "b c"] }
        request.options.timeout = .seconds(7)
        request.options.deadline = .seconds(9)
        request.options.shouldHandleCookies = false
        request.options.cachePolicy = .reloadIgnoringLocalCacheData
        request.formParametersAllowedCharacters = CharacterSet(charactersIn: "ab ")
        let next = try #require(try RedirectPolicy.follow.decide(request, 307, "/y").next)
        #expect(try next.encode().body == request.encode().body)
        #expect(next.options.timeout == .seconds(7))
        #expect(next.options.deadline == .seconds(9))
        #expect(!next.options.shouldHandleCookies)
        #expect(next.options.cachePolicy == .reloadIgnoringLocalCacheData)

        request.setBodyProvider(contentType: "t/x") { Data() }
        let provided = try #require(try RedirectPolicy.follow.decide(request, 308, "/y").next).encode(
            provided: Data("again".utf8))
        #expect(provided.body == Data("again".utf8))
        #expect(provided.contentType == "t/x")
    }

    // MARK: Limits

    @Test(
        "Exceeding the maximum number of redirects is an error",
        arguments: [(20, 20), (3, 3), (1, 1), (0, 0), (-1, 0), (Int.min, 0), (Int.max, Int.max)])
    func maximum(given: Int, meant: Int) throws {
        var policy = RedirectPolicy(maximum: given)
        #expect(policy.maximum == meant)
        policy.maximum = 7
        policy.maximum = given
        #expect(policy.maximum == meant)
        if meant > 0 {
            #expect(try policy.outcome("/y", followed: meant - 1) == .follow("https://a/y", droppedCredentials: false))
        }
        #expect(try policy.outcome("/y", followed: meant) == .fail(.tooManyRedirects))
        #expect(try policy.outcome("/y", followed: .max) == .fail(.tooManyRedirects))
        #expect(try policy.outcome("https://:0", followed: meant) == .deliver)
        #expect(RedirectPolicy().maximum == 20)
    }

    /// Follows redirects until the chain ends.
    private func walk(_ policy: RedirectPolicy, _ location: (Int) -> String) throws -> (
        followed: Int, url: String, end: RedirectPolicy.Decision
    ) {
        var request = Request(url: "https://a/x")
        for followed in 0..<200 {
            let decision = try policy.decide(request, 302, location(followed), followed: followed)
            guard let next = decision.next else { return (followed, try request.encode().url, decision) }
            request = next
        }
        return (200, try request.encode().url, .deliver)
    }

    @Test("Redirect loops, alternating origins and growing URLs terminate")
    func loops() throws {
        for location in ["", "/x", "#f", "https://a/x", "x/"] {
            let walk = try walk(.follow) { _ in location }
            #expect(walk.followed == 20)
            #expect(walk.end.error?.code == .tooManyRedirects)
            #expect(walk.end.error?.message.contains("20") == true)
        }
        #expect(try walk(.follow) { $0.isMultiple(of: 2) ? "https://b/" : "https://a/" }.followed == 20)
        let long = String(repeating: "a", count: 4000) + "/"
        let growing = try walk(RedirectPolicy(maximum: .max)) { _ in long }
        #expect(growing.followed == 16)
        #expect(growing.url.utf8.count == 10 + 16 * 4001)
        #expect(growing.end.isDelivery)
    }
}
