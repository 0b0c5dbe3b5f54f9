import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceStorage

@testable import WebServiceCore
@testable import WebServicePagination

/// Verifies the predefined kinds of paginators with a session that the test controls.
@Suite("Kinds of paginators", .permit)
struct PaginatorKindTests {
    private let asked = Collected<URLRequest>()

    /// Returns a service that responds according to the URL and records each request.
    private func service(
        _ asked: Collected<URLRequest> = Collected(),
        _ answer: @escaping @Sendable (URL) -> (text: String, headers: [String: String])
    ) -> WebService {
        .make(
            HandSession { exchange in
                // On an encoding error, the test waits until its time limit.
                guard let request = try? exchange.request.urlRequest(), let url = request.url else { return }
                asked.add(request)
                let (text, headers) = answer(url)
                let response = HTTPURLResponse(
                    url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: headers)
                exchange.completion(Data(text.utf8), response, nil)
            })
    }

    /// Returns a service with a list of numbers from 0, which is requested by offset and limit.
    private func numbers(_ count: Int, atMost: Int = .max, _ asked: Collected<URLRequest>) -> WebService {
        service(asked) { url in
            let query = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
            let numbers = query.compactMap { $0.value.flatMap { Int($0) } }
            guard numbers.count == 2 else { return ("null", [:]) }
            let all = Array(0..<count)
            return ("\(all.dropFirst(numbers[0]).prefix(min(numbers[1], atMost)))", [:])
        }
    }

    private func offsets(_ service: WebService, end: Paginator<Int, Int>.End = .emptyPage, total: Int? = nil)
        -> Paginator<Int, Int>
    {
        .offset(itemsPerPage: 4, end: end) { offset, limit in
            service.GET("/n").setQueryParameters(["offset": offset, "limit": limit]).decode([Int].self).map {
                Page($0, total: total)
            }
        }
    }

    private func code(_ body: () async throws -> Void) async -> WebServiceError.Code? {
        do { try await body() } catch { return (error as? WebServiceError)?.code }
        return nil
    }

    private func all<Item: Sendable, Position>(_ paginator: Paginator<Item, Position>) async throws -> [Item] {
        var items: [Item] = []
        for try await item in paginator.items() { items.append(item) }
        return items
    }

    @Test(
        "An offset paginator ends at an empty page, a short page or the total",
        arguments: [
            (8, Paginator<Int, Int>.End.emptyPage, nil, 3), (8, .shortPage, nil, 3), (9, .emptyPage, nil, 4),
            (9, .shortPage, nil, 3),
            (9, .emptyPage, 9, 3),
            (8, .emptyPage, 8, 2), (0, .emptyPage, nil, 1),
        ]
            as [(Int, Paginator<Int, Int>.End, Int?, Int)])
    func offsetEnds(count: Int, end: Paginator<Int, Int>.End, total: Int?, requests: Int) async throws {
        let paginator = offsets(numbers(count, asked), end: end, total: total)
        #expect(try await all(paginator) == Array(0..<count))
        #expect(asked.values.count == requests)
        #expect(paginator.state.itemsPerPage == 4)
        #expect(paginator.state.total == total)
        #expect(paginator.state.itemCount == count)
    }

    @Test("Pages shorter than the limit lose no items, and a total ends the list from any start offset")
    func cappedPages() async throws {
        #expect(try await all(offsets(numbers(10, atMost: 3, asked))) == Array(0..<10))
        #expect(asked.values.compactMap(\.url?.query).first == "offset=0&limit=4")
        let paginator = offsets(numbers(10, asked), total: 10).reset(to: 6)
        #expect(try await all(paginator) == [6, 7, 8, 9])
        #expect(asked.values.last?.url?.query == "offset=6&limit=4")
    }

    @Test("Page numbers start at the specified number, and a restored state retains the number of items per page")
    func pageNumbers() async throws {
        let service = service(asked) { url in (url.query?.hasPrefix("page=3") == true ? "[]" : "[1,2]", [:]) }
        func paginator(_ itemsPerPage: Int) -> Paginator<Int, Int> {
            .pageNumber(itemsPerPage: itemsPerPage) { number, count in
                service.GET("/n").setQueryParameters(["page": number, "count": count]).decode([Int].self)
            }
        }
        let first = paginator(2)
        let page = try #require(try await first.moveNext())
        #expect(page.items == [1, 2])
        #expect(page.next == 2)
        #expect(page.response?.status == 200)
        #expect(try await all(paginator(50).reset(to: first.state)) == [1, 2])
        #expect(asked.values.map(\.url?.query) == ["page=1&count=2", "page=2&count=2", "page=3&count=2"])
        let short = Paginator.pageNumber(from: 0, itemsPerPage: 3, end: .shortPage) { number, _ in
            service.GET("/n").setQueryParameters(["page": number]).decode([Int].self)
        }
        #expect(try await all(short) == [1, 2])
    }

    @Test(
        "A valid total ends a list of page numbers, and an invalid one is ignored",
        arguments: [(3, 3), (2, 2), (0, 1), (-1, 4), (Int.max, 4)])
    func totalOfNumbers(_ said: Int, count: Int) async throws {
        let service = service { url in (url.query == "page=5" ? "[]" : "[1]", [:]) }
        let paginator = Paginator.pageNumber(itemsPerPage: 1) { number, _ in
            service.GET("/n").setQueryParameters(["page": number]).decode([Int].self).map { Page($0, total: said) }
        }
        #expect(try await all(paginator).count == count)
    }

    @Test("A position that overflows Int is an error, and the paginator stays at its position")
    func overflow() async throws {
        let service = service { _ in ("[1,2]", [:]) }
        let offset = offsets(service).reset(to: Int.max - 1)
        #expect(await code { _ = try await offset.moveNext() } == .pageOutOfRange)
        #expect(offset.canMoveNext)
        #expect(offset.state.position == Int.max - 1)
        #expect(try await offset.reset(to: Int.max - 2).moveNext()?.next == .max)
        let number = Paginator.pageNumber(itemsPerPage: 1) { _, _ in service.GET("/n").decode([Int].self) }
        #expect(await code { _ = try await number.reset(to: .max).moveNext() } == .pageOutOfRange)
        let total = Paginator.offset(from: .max, itemsPerPage: 1) { _, _ in
            service.GET("/n").decode([Int].self).map { Page($0.dropLast(2), total: .max) }
        }
        #expect(try await total.moveNext()?.items == [])
    }

    @Test(
        "A cursor paginator ends at a missing or an empty cursor",
        arguments: [#"{"items": [2]}"#, #"{"items": [2], "next": null}"#, #"{"items": [2], "next": ""}"#])
    func cursors(last: String) async throws {
        struct Answer: Decodable {
            var items: [Int]
            var next: String?
        }
        let service = service(asked) { url in
            switch url.query {
            case nil: (#"{"items": [1], "next": "a&b"}"#, [:])
            case "cursor=a%26b": (#"{"items": [], "next": "c"}"#, [:])
            case "cursor=c": (last, [:])
            default: ("null", [:])
            }
        }
        let paginator = Paginator.cursor { cursor in
            service.GET("/n").setQueryParameters(cursor.map { ["cursor": $0] } ?? [:]).decode(Answer.self).map {
                Page($0.items, next: $0.next)
            }
        }
        #expect(try await all(paginator) == [1, 2])
        #expect(asked.values.count == 3)
    }

    // MARK: Links

    private func links(
        _ request: Request, to targets: [String: String], origins: Set<Origin> = [],
        asked: Collected<URLRequest> = Collected()
    ) -> Paginator<String, URL> {
        let service = service(asked) { url in
            let link = targets[url.absoluteString].map { ["Link": "<\($0)>; rel=\"next\""] } ?? [:]
            return ("[\"\(url.absoluteString)\"]", link)
        }
        return .links(from: request, origins: origins) { request in
            service.sessionTask(request: request).decode([String].self)
        }
    }

    @Test("A link replaces the URL and its parameters and retains the header fields")
    func linkRequests() async throws {
        var request = Request(url: "https://h/n")
        request.queryParameters = ["limit": 2]
        request.parameters = ["sort": "name"]
        request.headers["X-Key"] = "canary"
        let targets = [
            "https://h/n?limit=2&sort=name": "?page=2{", "https://h/n?page=2%7B": "HTTPS://H:443/a/../n?page=3#f",
        ]
        let paginator = links(request, to: targets, asked: asked)
        #expect(
            try await all(paginator) == [
                "https://h/n?limit=2&sort=name", "https://h/n?page=2%7B", "https://h:443/n?page=3",
            ])
        #expect(asked.values.map { $0.value(forHTTPHeaderField: "X-Key") } == ["canary", "canary", "canary"])
    }

    @Test(
        "A link to another origin is an error of the next page, and nothing is sent to that origin",
        arguments: [
            "https://other/n", "http://h/n", "https://h:444/n", "//other/n", "https://a:b@h/n", "file:///n",
            "javascript:x", "https://h.other/",
            "https://",
        ])
    func otherOrigins(target: String) async throws {
        let paginator = links(Request(url: "https://h/n"), to: ["https://h/n": target], asked: asked)
        #expect(try await paginator.moveNext()?.items == ["https://h/n"])
        for _ in 0..<2 { #expect(await code { _ = try await paginator.moveNext() } == .linkRefused) }
        #expect(paginator.canMoveNext)
        #expect(asked.values.count == 1)
    }

    @Test("Links to an allowed origin and back are followed")
    func allowedOrigins() async throws {
        let origins = Set([Origin("https://other:8443")].compactMap(\.self))
        let targets = ["https://h/n": "https://other:8443/2", "https://other:8443/2": "https://h/3"]
        #expect(try await all(links(Request(url: "https://h/n"), to: targets, origins: origins)).count == 3)
    }

    @Test("A link back to the first page is detected before that page is requested again")
    func linkLoop() async throws {
        let paginator = links(Request(url: "https://h/1"), to: ["https://h/1": "2", "https://h/2": "1"], asked: asked)
        #expect(await code { for try await _ in paginator.items() {} } == .repeatedCursor)
        #expect(asked.values.count == 2)
    }

    @Test("A response without HTTP header fields is an error and not the last page")
    func noHeaders() async throws {
        let service = WebService.make(HandSession { $0.completion(Data("[1]".utf8), nil, nil) })
        let paginator = Paginator.links(from: Request(url: "https://h/n")) { request in
            service.sessionTask(request: request).decode([Int].self).validateNothing()
        }
        #expect(await code { _ = try await paginator.moveNext() } == .linkRefused)
    }

    // MARK: Typed requests

    struct Words: PagedRequest, RawStorableRequest, Hashable {
        var offset = 0
        typealias Output = String
        var storageIdentifier: String? { "words \(offset)" }
        func at(_ position: Int) -> Words { Words(offset: position) }
        func page(of output: String, response: Response) throws -> Page<String, Int> {
            if output == "bad" { throw TestError(name: "bad") }
            return Page([output], next: output == "end" ? nil : offset + 1)
        }
    }

    @Test("A paged request is performed for each page, and again after an error")
    func pagedRequest() async throws {
        let endpoint = HandEndpoint()
        let service = WebService(endpoints: [endpoint])
        let paginator = service.pages(of: Words(offset: 5))
        for (count, text) in ["a", "bad", "b", "end"].enumerated() {
            let move = Task { try await paginator.moveNext() }
            await endpoint.fetches.wait(for: count + 1).last?.respond(text)
            if text == "bad" {
                await #expect(throws: TestError(name: "bad")) { try await move.value }
            } else {
                #expect(try await move.value?.items == [text])
            }
        }
        #expect(endpoint.fetches.values.compactMap { ($0.request as? Words)?.offset } == [5, 6, 6, 7])
        #expect(!paginator.canMoveNext)
    }

    private struct Linked: HTTPServiceRequest, PagedRequest {
        var url: URL?
        var origins: Set<Origin> = []
        typealias Output = [Int]
        func request(for service: WebService) -> Request {
            url.map { Request(url: $0) } ?? service.request(.GET, path: "/n")
        }
        func at(_ url: URL) -> Linked { Linked(url: url, origins: origins) }
        func page(of numbers: [Int], response: Response) throws -> Page<Int, URL> {
            Page(numbers, next: try response.pageLink(origins: origins))
        }
    }

    private func linking(_ links: [String: String]) -> WebService {
        .make(
            HandSession { exchange in
                let url = exchange.request.urlRequestValue.url ?? URL(fileURLWithPath: "/")
                let fields = links[url.absoluteString].map { ["Link": "<\($0)>; rel=next"] }
                let head = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)
                exchange.completion(Data("[\(url.query ?? "0")]".utf8), head, nil)
            })
    }

    @Test("A paged request can page by the links of its responses")
    func pagedLinks() async throws {
        let service = linking(["https://h/v1/n": "/v1/n?1", "https://h/v1/n?1": "https://h/v1/n?2"])
        #expect(try await all(service.pages(of: Linked())) == [0, 1, 2])
        let endless = linking(["https://h/v1/n": "/v1/n?1", "https://h/v1/n?1": "/v1/n?1"])
        #expect(await code { _ = try await self.all(endless.pages(of: Linked())) } == .repeatedCursor)
    }

    @Test("A link of a paged request leads only to the origin of the request and to allowed ones")
    func pagedLinkOrigins() async throws {
        let service = linking(["https://h/v1/n": "https://other/n?1"])
        #expect(await code { _ = try await self.all(service.pages(of: Linked())) } == .linkRefused)
        let allowed: Set<Origin> = [try #require(Origin("https://other"))]
        #expect(try await all(service.pages(of: Linked(origins: allowed))) == [0, 1])
    }

    @Test("A response without header fields has no page link")
    func storedPageLink() async {
        let response = Response(body: Data(), source: .storage, attempts: 0)
        #expect(await code { _ = try response.pageLink() } == .linkRefused)
    }

    @Test("Pages are read from a storage if the cache policy specifies it")
    func storedPages() async throws {
        let endpoint = HandEndpoint()
        let service = WebService(endpoints: [endpoint], storages: [MemoryStorage()])
        let first = Task { try await self.all(service.pages(of: Words())) }
        await endpoint.fetches.wait(for: 1).last?.respond("a")
        await endpoint.fetches.wait(for: 2).last?.respond("end")
        #expect(try await first.value == ["a", "end"])
        let stored = service.pages(of: Words()) { service.perform($0, fetchPolicy: .cacheOnly) }
        #expect(try await all(stored) == ["a", "end"])
        #expect(endpoint.fetches.values.count == 2)
        #expect(await code { _ = try await stored.reset(to: 7).moveNext() } == .noStoredData)
    }
}
