import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore
@testable import WebServicePagination

/// Response heads of about 128 KB that RFC 9112 allows, each with an excess of one element.
enum HostileHead: String, CaseIterable, Sendable {
    case longValue, pairs, blanks, slashes, names, repeatedName, links, anchoredLinks, cookies, folds, directives, vary

    static let size = 128 * 1024

    /// A URL of 64 KB, the base against which every link is resolved.
    static let url = "https://h/" + String(repeating: "a", count: 65_000)

    var head: ResponseHead? { ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\n\(fields)\r\n".utf8), url: Self.url) }

    private var fields: String {
        switch self {
        case .longValue: "X-Long: \(Self.repeating("a"))\r\n"
        case .pairs: "X-Pairs: \(Self.repeating("a=@//"))\r\n"
        case .blanks: "X-Blanks: a\(Self.repeating(" "))\r\n"
        case .slashes: "Location: \(Self.repeating("//"))@\r\n"
        case .names: (0..<20_000).map { "\(String($0 + 1_296, radix: 36)):\r\n" }.joined()
        case .repeatedName: Self.repeating("a:b\r\n")
        case .links: "Link: \(String(repeating: "<>,", count: 43_000))\r\n"
        case .anchoredLinks: "Link: \(Self.repeating("<>;rel=next;anchor=a,"))\r\n"
        case .cookies: (0..<8_000).map { "Set-Cookie:\(String($0, radix: 36))=\r\n" }.joined()
        case .folds: "X-Folds: a\r\n" + String(repeating: " b\r\n", count: 30_000)
        case .directives: "Cache-Control: max-age=60,\(Self.repeating("a,"))\r\n"
        case .vary: "Cache-Control: max-age=60\r\nVary: \(Self.repeating("a,"))\r\n"
        }
    }

    private static func repeating(_ text: String) -> String {
        String(repeating: text, count: (size - 100) / text.utf8.count)
    }
}

@Suite("Response heads of 128 KB, valid but hostile", .permit)
struct HostileHeadTests {
    private let jar = CookieJar()

    /// The limit in seconds of processor time in a debug build. A linear algorithm takes a tenth of
    /// it, a quadratic one takes ten times as long.
    private static let limit = 3.0

    private func head(_ kind: HostileHead) throws -> ResponseHead { try #require(kind.head) }

    @Test(
        "Header fields, single values and the HTTPURLResponse are created in linear time",
        arguments: HostileHead.allCases
    )
    func fields(kind: HostileHead) throws {
        let head = try head(kind)
        var size = 0
        let time = processorTime {
            for field in head.headers { size += field.name.utf8.count + field.value.utf8.count }
        }
        #expect(time < Self.limit)
        #expect(size <= HostileHead.size)
        for name: Headers.Name in ["Link", "Set-Cookie", "a", "X-Folds", "missing"] {
            #expect(processorTime { size = head[name]?.utf8.count ?? 0 } < Self.limit, "\(name.rawValue)")
            #expect(size <= HostileHead.size * 2)
            let headers = head.headers
            #expect(processorTime { size = headers[name]?.utf8.count ?? 0 } < Self.limit, "\(name.rawValue)")
        }
        var response: HTTPURLResponse?
        #expect(processorTime { response = head.urlResponse as? HTTPURLResponse } < Self.limit)
        let fields = try #require(response).allHeaderFields
        switch kind {
        case .names: #expect(fields.count == 20_000)
        case .repeatedName:
            #expect(response?.value(forHTTPHeaderField: "a")?.hasPrefix("b, b, b") == true)
            #expect(fields.count == 1)
        case .folds: #expect((fields["X-Folds"] as? String)?.utf8.count == 60_001)
        case .blanks: #expect(fields["X-Blanks"] as? String == "a")
        default: #expect(!fields.isEmpty)
        }
    }

    @Test(
        "Lines of a folded value are joined with one space, and empty lines are skipped",
        arguments: [
            ("A: b\r\n \r\n", "b"), ("A: b\n \n", "b"), ("A: b\r\n c\r\n", "b c"),
            ("A: b\r\n\t \r\n  c \r\n \r\n", "b c"),
            ("A:\r\n b\r\n", "b"), ("A:\r\n \r\n \r\n", ""),
        ])
    func folded(field: String, value: String) throws {
        let head = try #require(
            ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\n\(field)B: 1\r\n\r\n".utf8), url: "https://h/"))
        #expect(head.values(for: "A") == [value])
        #expect(head.headers.map(\.value) == [value, "1"])
    }

    @Test(
        "The output of the logger and the descriptions of fields and errors are bounded by the size of the head",
        arguments: HostileHead.allCases)
    func logging(kind: HostileHead) throws {
        let head = try head(kind)
        let (response, headers) = (head.urlResponse, head.headers)
        let lines = Collected<String>()
        let logger = ExchangeLogger(level: .trace) { lines.add($0.text) }
        let exchange = ObservedExchange(
            id: 1, parent: nil, request: nil, type: nil, isComposite: false, date: Date(timeIntervalSince1970: 0))
        let received = ExchangeEvent.Kind.attemptEnded(
            number: 1, .success(Response(data: Data(), head: head)), nil)
        let event = ExchangeEvent(exchange: exchange, kind: received, nanoseconds: 0)
        let time = processorTime { logger.observe(event) }
        #expect(time < Self.limit)
        // An escaped control character takes up to eight bytes.
        #expect(lines.values.joined().utf8.count < 12 * HostileHead.size)
        #expect(processorTime { lines.add(headers.description) } < Self.limit)
        let error = WebServiceError(
            .unacceptableStatus, "the status is 200",
            response: Response(data: Data(headers.description.utf8), urlResponse: response))
        var text = ""
        #expect(processorTime { text = printed(error) } < Self.limit)
        #expect(text.utf8.count < 8_192)
        #expect(processorTime { text = error.bodySnippet ?? "" } < Self.limit)
        #expect(text.utf8.count < 8_192)
    }

    @Test("An HTTP archive is created in linear time", arguments: HostileHead.allCases)
    func archive(kind: HostileHead) async throws {
        let task = WebService.make(HeadSession(head: try head(kind)), timekeeper: nil).GET("/x").recordHandlers()
        _ = try await task.data().validateNothing().response
        var archive = Data()
        #expect(processorTime { archive = task.httpArchive() } < Self.limit)
        #expect(archive.count > 100)
        #expect(archive.count < 20 * HostileHead.size)
    }

    @Test(
        "Links are parsed in linear time and resolved only when their target is read",
        arguments: HostileHead.allCases)
    func links(kind: HostileHead) throws {
        let response = Response(data: Data(), head: try head(kind))
        var count = 0
        #expect(processorTime { count = response.links.count } < Self.limit)
        #expect(count == (kind == .links ? 43_000 : kind == .anchoredLinks ? (HostileHead.size - 100) / 21 : 0))
        var next: WebLink?
        #expect(processorTime { next = response.link("next") } < Self.limit)
        #expect(next == nil)
    }

    @Test(
        "Cookies are stored in linear time over http and https, and a site is limited to its share of the jar",
        arguments: HostileHead.allCases)
    func cookies(kind: HostileHead) throws {
        let head = try head(kind)
        for scheme in ["http", "https"] {
            let jar = CookieJar()
            for host in 0..<300 {
                let url = try #require(URL(string: "https://s.h\(host).example/"))
                jar.store((0..<10).map { "\($0)=1; Secure" }, from: url)
            }
            let url = try #require(URL(string: "\(scheme)://h.example/"))
            #expect(processorTime { jar.store(head.values(for: .setCookie), joined: false, from: url) } < Self.limit)
            #expect(
                jar.cookies.filter { $0.domain == "h.example" }.count == (kind == .cookies ? CookieJar.fairCount : 0))
            #expect(jar.cookies.count == 3_000)
            var field: String?
            #expect(processorTime { field = jar.header(for: url) } < Self.limit)
            #expect((field?.utf8.count ?? 0) < 2_000)
            let joined = head.headers[.setCookie] ?? ""
            #expect(processorTime { jar.store([joined], from: url) } < Self.limit)
        }
    }

    @Test("A response is cached or rejected by the cache in linear time", arguments: HostileHead.allCases)
    func caching(kind: HostileHead) throws {
        let response = Response(data: Data(), head: try head(kind))
        let request = Request.make(.GET, HostileHead.url)
        let date = Date(timeIntervalSince1970: 1_700_000_000)
        var cached: CachedResponse?
        let time = processorTime {
            // A response that cannot be cached needs no further checks.
            cached = try? CachedResponse(response, to: request, account: nil, requestTime: date, responseTime: date)
        }
        #expect(time < Self.limit)
        guard let cached else { return }
        #expect(
            processorTime { _ = cached.freshened(by: response, requestTime: date, responseTime: date) } < Self.limit)
        #expect(processorTime { _ = cached.response(url: HostileHead.url, at: date) } < Self.limit)
        var isUsable = false
        #expect(
            processorTime {
                isUsable = cached.lifetime(usesHeuristics: false) >= 0 && cached.selection.matches(request)
            } < Self.limit)
        #expect(isUsable)
        var variants = CachedVariants()
        #expect(processorTime { variants.insert(cached, for: request) } < Self.limit)
        let key = StorageKey(identifier: "x", classification: .default, account: nil)
        var stored = Data()
        #expect(processorTime { stored = variants.data(for: key) } < Self.limit)
        #expect(stored.count < 6 * HostileHead.size)
        var read: CachedVariants?
        #expect(processorTime { read = CachedVariants(stored, for: key) } < Self.limit)
        #expect(read?.responses.count == 1)
    }

    @Test(
        "The curl description of a request with such fields is created in linear time",
        arguments: HostileHead.allCases)
    func curl(kind: HostileHead) throws {
        var request = Request.make(.POST, HostileHead.url)
        request.headers = try head(kind).headers
        var text = ""
        #expect(processorTime { text = request.curlDescription() } < Self.limit)
        #expect(text.utf8.count < 6 * HostileHead.size)
    }

    @Test("3,100 cycles of adding and removing a cookie do not evict the cookies of other sites")
    func cycles() throws {
        let other = try #require(URL(string: "https://keep.example/"))
        jar.store(["keep=1"], from: other)
        let url = try #require(URL(string: "https://h.test/"))
        for cycle in 0..<3_100 { jar.store(["n=\(cycle)", "n=; Max-Age=0"], from: url) }
        #expect(jar.cookies.count == 1)
        #expect(jar.header(for: other) == "keep=1")
    }

    @Test("A site that floods the jar from many hosts evicts only its own cookies")
    func flooding() throws {
        for site in 0..<50 {
            jar.store((0..<5).map { "n\($0)=1" }, from: try #require(URL(string: "https://www.site\(site).example/")))
        }
        for host in 0..<30 {
            let url = try #require(URL(string: "https://h\(host).evil.test/"))
            jar.store((0..<180).map { "n\($0)=1" }, from: url)
        }
        #expect(jar.cookies.count == 3_000)
        #expect(jar.cookies.filter { $0.domain.hasSuffix(".example") }.count == 250)
        for site in 0..<50 {
            #expect(jar.header(for: try #require(URL(string: "https://www.site\(site).example/"))) != nil)
        }
    }

    @Test(
        "A comma in a separate Set-Cookie field does not begin another cookie",
        arguments: [
            "pref=hello, __Host-sid=evil; Secure; Path=/", "pref=hello, sid=evil; Secure; Path=/", "pref=a, b=c, d=e",
        ])
    func separateFields(field: String) async throws {
        let head = try #require(
            ResponseHead(bytes: Array("HTTP/1.1 200\r\nSet-Cookie: \(field)\r\n\r\n".utf8), url: "https://h.example/"))
        let service = WebService("https://h.example/", session: HeadSession(head: head))
        service.cookieJar = jar
        _ = try await service.GET("/").data().response
        #expect(jar.cookies.map(\.name) == ["pref"])
        #expect(jar.cookies.map(\.value) == [String(field.prefix { $0 != ";" }.dropFirst(5))])
    }

    @Test(
        "A comma in fields joined by Foundation begins a cookie unless it has a __Host- or __Secure- prefix"
    )
    func joinedFields() async throws {
        let url = try #require(URL(string: "https://h.example/"))
        for name in ["__Host-sid", "__Secure-sid", "__HOST-sid"] {
            let evil = "\(name)=evil; Secure; Path=/"
            for (field, names) in [
                ("pref=hello, \(evil)", ["pref"]), (evil, [name]), ("\(evil), a=1, \(evil), b=2", [name, "a", "b"]),
            ] {
                let jar = CookieJar()
                let service = WebService(
                    "https://h.example/", session: HandSession(Data(), headers: ["Set-Cookie": field]))
                service.cookieJar = jar
                _ = try await service.GET("/").data().response
                #expect(jar.cookies.map(\.name) == names)
                let direct = CookieJar()
                direct.store([field], from: url)
                #expect(direct.cookies.map(\.name) == names)
            }
            let jar = CookieJar()
            jar.store(["\(name)=real; Secure; Path=/"], from: url)
            jar.store(["pref=x, \(name)=; Secure; Path=/; Max-Age=0"], from: url)
            #expect(jar.cookies.contains { $0.name == name && $0.value == "real" }, "an existing cookie is not removed")
        }
    }
}
