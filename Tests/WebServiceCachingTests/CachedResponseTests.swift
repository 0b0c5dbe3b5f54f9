import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("Freshness", .permit)
struct CachedResponseTests {
    /// 2027-01-15T08:00:00Z.
    static let start = Date(timeIntervalSince1970: 1_800_000_000)

    static func text(_ seconds: TimeInterval) -> String { HTTPDate.text(start.addingTimeInterval(seconds)) ?? "" }

    static func stored(
        _ headers: Headers, status: Int = 200, requested: TimeInterval = 0, received: TimeInterval = 0,
        request: Request = Request(url: "https://h/"),
        account: String? = nil, body: String = "body"
    ) throws -> CachedResponse {
        let bytes = Array("HTTP/1.1 \(status)\r\n".utf8) + headers.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
        let head = try #require(ResponseHead(bytes: bytes, url: "https://h/"))
        return try CachedResponse(
            Response(data: Data(body.utf8), head: head), to: request, account: account,
            requestTime: start.addingTimeInterval(requested),
            responseTime: start.addingTimeInterval(received))
    }

    @Test(
        "The age includes Date, Age, the response delay and the resident time (RFC 9111, section 4.2.3)")
    func age() throws {
        func age(_ headers: Headers, requested: TimeInterval = 0, received: TimeInterval = 0, at now: TimeInterval)
            throws -> TimeInterval?
        {
            try Self.stored(headers, requested: requested, received: received).age(
                at: Self.start.addingTimeInterval(now))
        }
        #expect(try age([:], at: 7) == 7)
        #expect(try age(["Date": Self.text(0)], requested: 0, received: 4, at: 10) == 10)
        #expect(try age(["Date": Self.text(-100)], at: 5) == 105)
        #expect(try age(["Date": Self.text(-100), "Age": "200"], at: 5) == 205)
        #expect(try age(["Date": Self.text(0), "Age": "30"], requested: -2, at: 5) == 37)
        #expect(try age(["Age": "30, 50"], at: 0) == 30)
        for bad in ["abc", "-5", "7200.0", ""] { #expect(try age(["Age": bad], at: 1) == 1, "\(bad)") }
        #expect(try age(["Age": "30,\u{301} 50"], at: 0) == 30)
        for bad in ["\u{a0}30", "3\u{301}0"] { #expect(try age(["Age": bad], at: 1) == 1, "\(bad)") }
        #expect(try age(["Age": "999999999999"], at: 0) == CacheControl.maximum)
        #expect(try age(["Date": Self.text(1_000)], at: 5) == 5)  // the clock of the server is fast
    }

    @Test(
        "Expires counts from Date in every format, and an invalid date is stale",
        arguments: [
            ("Fri, 15 Jan 2027 09:00:00 GMT", 3_600.0), ("Friday, 15-Jan-27 09:00:00 GMT", 3_600),
            ("Fri Jan 15 09:00:00 2027", 3_600),
            ("Fri, 15 Jan 2027 08:00:60 GMT", 60), ("Fri, 15 Jan 2027 07:00:00 GMT", 0), ("0", 0), ("-1", 0), ("", 0),
            ("tomorrow", 0),
            ("Fri, 15 Jan 2027 09:00:00 UTC", 0), ("Fri, 31 Dec 9999 23:59:59 GMT", CacheControl.maximum),
            ("Fri, 15 Jan 2027 09:00:00 GMT, Fri, 15 Jan 2027 10:00:00 GMT", 0),
        ])
    func expires(value: String, lifetime: TimeInterval) throws {
        #expect(try Self.stored(["Date": Self.text(0), "Expires": value]).lifetime(usesHeuristics: true) == lifetime)
        #expect(try Self.stored(["Expires": value]).lifetime(usesHeuristics: true) == lifetime)
        let isWithinRange = lifetime > 0 && lifetime < CacheControl.maximum
        // The Date is 100 seconds before the response time, and these seconds count as well.
        #expect(
            try Self.stored(["Date": Self.text(-100), "Expires": value]).lifetime(usesHeuristics: true) == lifetime
                + (isWithinRange ? 100 : 0))
        #expect(try Self.stored(["Expires": value, "Cache-Control": "max-age=5"]).lifetime(usesHeuristics: true) == 5)
    }

    @Test("S-maxage does not apply to a private cache, and only max-age overrides Expires")
    func sharedDirectives() throws {
        #expect(try Self.stored(["Cache-Control": "s-maxage=60"]).lifetime(usesHeuristics: false) == 0)
        #expect(try Self.stored(["Cache-Control": "s-maxage=60, max-age=1"]).lifetime(usesHeuristics: false) == 1)
        #expect(
            try Self.stored(["Cache-Control": "private", "Expires": Self.text(9)]).lifetime(usesHeuristics: false) == 9)
    }

    @Test(
        "Opt-in heuristic freshness is a tenth of the time since Last-Modified, up to a week, for some statuses"
    )
    func heuristics() throws {
        let headers: Headers = ["Date": Self.text(0), "Last-Modified": Self.text(-1_000)]
        #expect(try Self.stored(headers).lifetime(usesHeuristics: true) == 100)
        #expect(try Self.stored(headers).lifetime(usesHeuristics: false) == 0)
        for status in [203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
            #expect(try Self.stored(headers, status: status).lifetime(usesHeuristics: true) == 100)
        }
        #expect(
            try Self.stored(["Cache-Control": "public", "Last-Modified": Self.text(-50)], status: 499).lifetime(
                usesHeuristics: true) == 5)
        #expect(
            try Self.stored(["Cache-Control": "private", "Last-Modified": Self.text(-50)], status: 402).lifetime(
                usesHeuristics: true) == 0)
        #expect(
            try Self.stored(["Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT"]).lifetime(usesHeuristics: true) == 7
                * 86_400)
        #expect(try Self.stored(["Last-Modified": Self.text(1_000)]).lifetime(usesHeuristics: true) == 0)
    }

    @Test(
        "No clock and no date makes a response fresh forever",
        arguments: ["max-age=60", "max-age=99999999999999999999"])
    func clocks(directive: String) throws {
        let stored = try Self.stored(
            ["Cache-Control": directive, "Date": "Fri, 31 Dec 9999 23:59:59 GMT"], requested: 1_000_000,
            received: 1_000_000)
        func use(at seconds: TimeInterval) -> CacheDemands.Use {
            CacheDemands(Request(url: "https://h/")).use(
                of: stored, at: Self.start.addingTimeInterval(seconds), usesHeuristics: true)
        }
        #expect(use(at: 1_000_000) == .use)
        #expect(use(at: 1_000_059) == .use)
        #expect(use(at: 999_999) == .validate)  // the clock was set back
        #expect(use(at: -1e9) == .validate)
        #expect(use(at: 1_000_000 + CacheControl.maximum) == .validate)
        #expect(stored.age(at: Self.start) == nil)
        #expect(!CacheDemands(Request(url: "https://h/")).outlastsError(stored, at: Self.start, usesHeuristics: true))
        for now in [
            Date.distantPast, .distantFuture, Date(timeIntervalSince1970: .infinity), Date(timeIntervalSince1970: .nan),
        ] {
            #expect(stored.response(url: "https://h/", at: now)?.header("Age").flatMap { Int($0) } != nil)
        }
    }

    @Test(
        "All fields, even repeated ones, are stored except connection, cookie and no-cache fields")
    func fields() throws {
        let stored = try Self.stored([
            "Date": Self.text(0), "Connection": "X-Hop, close", "x-hop": "1", "Keep-Alive": "1", "TE": "1",
            "Upgrade": "1", "Trailer": "1",
            "Transfer-Encoding": "chunked", "Proxy-Authenticate": "1", "Set-Cookie": "sid=1", "Link": "a", "link": "b",
            "X-Secret": "1",
            "X-Open": "1",
            "Cache-Control": "no-cache=\"x-secret\", max-age=5",
        ])
        #expect(stored.headers.map(\.name) == ["Date", "Link", "link", "X-Open", "Cache-Control"])
        #expect(stored.headers["LINK"] == "a, b")
        #expect(try Self.stored([:], received: 5).headers["Date"] == Self.text(5))
    }

    @Test("A response is stored only if its status, directives and Vary field allow it")
    func notStored() throws {
        func isStored(_ headers: Headers, status: Int = 200, redirects: [URL] = [], handlesCookies: Bool = true) throws
            -> Bool
        {
            let head = try #require(
                ResponseHead(
                    bytes: Array("HTTP/1.1 \(status)\r\n".utf8)
                        + headers.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }, url: "https://h/"))
            var response = Response(data: Data(), head: head)
            response.redirects = redirects
            var request = Request(url: "https://h/")
            request.options.shouldHandleCookies = handlesCookies
            do {
                _ = try CachedResponse(
                    response, to: request, account: "a", requestTime: Self.start, responseTime: Self.start)
                return true
            } catch {
                return false
            }
        }
        #expect(try isStored([:]))
        #expect(try !isStored(["Cache-Control": "max-age=5, No-Store"]))
        #expect(try !isStored(["Cache-Control": "max-age=5"], status: 206))
        #expect(try !isStored(["Cache-Control": "max-age=5"], status: 304))
        #expect(try !isStored([:], status: 201))
        #expect(try isStored(["Cache-Control": "max-age=5"], status: 201))
        #expect(try !isStored([:], status: 500))
        #expect(try isStored(["Expires": "0"], status: 400))
        #expect(try isStored(["Cache-Control": "private"], status: 451))
        #expect(try isStored(["Cache-Control": "public"], status: 499))
        for status in [401, 403, 407, 408, 421, 425, 428, 429, 431, 500, 502, 503, 504, 511] {
            #expect(try !isStored(["Cache-Control": "max-age=60"], status: status), "\(status)")
        }
        #expect(try isStored(["Cache-Control": "max-age=60"], status: 501))
        #expect(try isStored(["Cache-Control": "max-age=60"], status: 599))
        #expect(try isStored(["Cache-Control": "no-store, must-understand, max-age=5"]))
        #expect(try !isStored(["Cache-Control": "no-store, must-understand, max-age=5"], status: 499))
        #expect(try !isStored([:], redirects: [URL(fileURLWithPath: "/")]))
        #expect(try !isStored(["Vary": "Accept, *"]))
        // The cookies of the cookie jar are among the fields of the request.
        #expect(try isStored(["Vary": "Cookie"]))
        #expect(try isStored(["Vary": "Cookie"], handlesCookies: false))
        #expect(try isStored(["Vary": "Authorization"]))
        #expect(try !isStored(["Vary": "Accept Foo"]))
    }

    @Test("Entity tags are compared by bytes, and combining characters do not hide a delimiter")
    func entityTags() throws {
        let (composed, decomposed) = ("\"\u{e9}\"", "\"e\u{301}\"")
        #expect(!EntityTag.describes(composed, decomposed))
        #expect(EntityTag.describes(composed, composed))
        #expect(!EntityTag.matchesWeakly("W/\(composed)", decomposed))
        #expect(EntityTag.matchesWeakly("W/\(composed)", composed))
        #expect(!EntityTag.isListed(composed, in: "\"a\", \(decomposed)"))
        #expect(EntityTag.isListed(composed, in: "\"a\",\t\(composed) "))
        #expect(!EntityTag.isListed("\"a\"", in: "\u{a0}\"a\""))
        #expect(!EntityTag.isListed("\"a\"", in: "\u{a0}*"))
        let marked = "\"\u{301}a\""
        #expect(EntityTag.isValid(marked))
        #expect(EntityTag.isValid("W/\(marked)"))
        #expect(!EntityTag.isValid("W/\u{301}\"a\""))
        #expect(EntityTag.isListed(marked, in: "\"b\", W/\(marked)"))
        #expect(!EntityTag.isListed(marked, in: "\"a\""))
    }

    @Test(
        "A 304 replaces the fields, age and date of a stored response, except fields that describe the body")
    func freshened() throws {
        let stored = try Self.stored([
            "Date": Self.text(-500), "Age": "400", "ETag": "\"a\"", "Content-Length": "4", "Content-Encoding": "gzip",
            "Content-Type": "text/plain",
            "X-Old": "1", "Link": "a", "link": "b", "Cache-Control": "max-age=1",
        ])
        let news: Headers = [
            "ETag": "\"a\"", "Content-Length": "0", "Content-Encoding": "br", "Content-Type": "text/html", "LINK": "c",
            "Set-Cookie": "sid=2",
            "Connection": "x-hop", "X-Hop": "1", "Cache-Control": "max-age=9",
        ]
        let head = try #require(
            ResponseHead(
                bytes: Array("HTTP/1.1 304\r\n".utf8) + news.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) },
                url: "https://h/"))
        let later = Self.start.addingTimeInterval(1_000)
        let updated = try #require(
            stored.freshened(by: Response(data: Data(), head: head), requestTime: later, responseTime: later))
        #expect(updated.status == 200)
        #expect(updated.body.data == Data("body".utf8))
        #expect(updated.headers["Content-Length"] == "4")
        #expect(updated.headers["Content-Encoding"] == "gzip")
        #expect(updated.headers["Content-Type"] == "text/html")
        #expect(updated.headers["X-Old"] == "1")
        #expect(updated.headers["Link"] == "c")
        #expect(updated.headers["Age"] == nil)
        #expect(updated.headers["Set-Cookie"] == nil)
        #expect(updated.headers["X-Hop"] == nil)
        #expect(updated.headers["Connection"] == nil)
        #expect(updated.age(at: later) == 0)
        #expect(updated.lifetime(usesHeuristics: false) == 9)
    }

    @Test(
        "If-None-Match matches a tag by weak comparison, in a list or with *",
        arguments: [
            ("\"a\"", true), ("W/\"a\"", true), ("\"b\", \"a\"", true), ("*", true), ("\"b\"", false),
            ("\"b,\"a\"", false), ("a", false),
            ("", false),
        ])
    func tags(list: String, isListed: Bool) {
        #expect(EntityTag.isListed("\"a\"", in: list) == isListed)
        #expect(EntityTag.isListed("W/\"a\"", in: list) == isListed)
        #expect(!EntityTag.isListed(nil, in: list) || list == "*")
        #expect(EntityTag.isListed("\"a,b\"", in: "\"x\", \"a,b\""))
    }
}
