import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServicePagination
import WebServiceServer
import WebServiceStorage

/// Long lists over real sockets.
@Suite("Pagination over sockets", .permit)
struct PaginationTests {
    /// A server of the numbers from 0 to 639, as four lists: `/offset`, `/number`, `/cursor` and
    /// `/link`.
    private final class Numbers: Sendable {
        let server: MockServer
        let service: WebService
        let count = 640

        /// Returns the response to send instead of a page, by the number of the request, starting
        /// at 1.
        typealias Faults = @Sendable (_ number: Int, _ request: ReceivedRequest) -> MockResponse?

        init(_ faults: @escaping Faults = { _, _ in nil }) throws {
            let number = Mutex(0)
            server = try MockServer { [count] request in
                let number = number.withLock { number in
                    number += 1
                    return number
                }
                if let fault = faults(number, request) { return fault }
                let query = Dictionary(request.queryItems.map { ($0.name, $0.value) }) { first, _ in first }
                let size = query["limit"].flatMap { Int($0) } ?? 40
                let start: Int
                switch request.path {
                case "/number": start = ((query["page"].flatMap { Int($0) } ?? 1) - 1) * size
                default: start = query["at"].flatMap { Int($0) } ?? 0
                }
                let items = Array(start..<max(start, min(start + size, count)))
                let next = start + size < count ? start + size : nil
                var response = MockResponse(statusCode: 200, json: items)
                if request.path == "/cursor" {
                    response = MockResponse(
                        statusCode: 200, json: ["items": items, "next": next.map { "\($0)" } ?? ""])
                }
                if request.path == "/link" {
                    response.headers.add("<link?at=0>; rel=\"first\"; title=\"a, b; rel=next\"", for: "Link")
                    if let next {
                        response.headers.add("</link?at=\(next)>; rel=\"Next last\", <?x>; rel=x", for: "Link")
                    }
                }
                return response
            }
            service = WebService(baseURL: server.baseURL)
        }

        deinit { server.stop() }

        /// The position at which each requested page starts.
        var starts: [String] {
            server.receivedRequests.map { request in
                request.queryItems.first { ["at", "page"].contains($0.name) }?.value ?? "-"
            }
        }

        var offset: Paginator<Int, Int> {
            .offset(itemsPerPage: 40) { [service] offset, limit in
                service.GET("/offset").setQueryParameters(["at": offset, "limit": limit]).decode([Int].self)
            }
        }

        var number: Paginator<Int, Int> {
            .pageNumber(itemsPerPage: 40, end: .shortPage) { [service, count] number, limit in
                service.GET("/number").setQueryParameters(["page": number, "limit": limit]).decode([Int].self).map {
                    Page($0, total: count)
                }
            }
        }

        var cursor: Paginator<Int, String> {
            .cursor { [service] cursor in
                service.GET("/cursor").setQueryParameters(cursor.map { ["at": $0] } ?? [:]).decode(Cursored.self).map {
                    Page($0.items, next: $0.next)
                }
            }
        }

        var link: Paginator<Int, URL> {
            .links(from: service.request(.GET, path: "/link")) { [service] request in
                service.sessionTask(request: request).decode([Int].self)
            }
        }
    }

    private struct Cursored: Decodable {
        var items: [Int]
        var next: String?
    }

    enum Kind: CaseIterable, Sendable { case offset, number, cursor, link }

    /// A type-erased paginator.
    private struct Walker: Sendable {
        let moveNext: @Sendable () async throws -> [Int]?
        let items: @Sendable (_ prefetch: Bool, _ body: @escaping @Sendable (Int) async -> Bool) async throws -> Void
        let canMoveNext: @Sendable () -> Bool
        let reset: @Sendable () -> Void
        let save: @Sendable () throws -> Data
        let restore: @Sendable (Data) throws -> Void

        init<Position>(_ paginator: Paginator<Int, Position>) {
            moveNext = { try await paginator.moveNext()?.items }
            items = { prefetch, body in
                for try await item in paginator.items(prefetch: prefetch) where !(await body(item)) { break }
            }
            canMoveNext = { paginator.canMoveNext }
            reset = { paginator.reset() }
            save = { try JSONEncoder().encode(paginator.state) }
            restore = { paginator.reset(to: try JSONDecoder().decode(Paginator<Int, Position>.State.self, from: $0)) }
        }

        init(_ kind: Kind, _ list: Numbers) {
            switch kind {
            case .offset: self.init(list.offset)
            case .number: self.init(list.number)
            case .cursor: self.init(list.cursor)
            case .link: self.init(list.link)
            }
        }

        /// Returns the items up to the end. Errors are passed to `errors`, and the page is
        /// requested again.
        func rest(errors: (any Error) -> Void = { Issue.record($0) }) async -> [Int] {
            var found: [Int] = []
            while canMoveNext() {
                do { found += try await moveNext() ?? [] } catch { errors(error) }
                if found.count > 2000 || Task.isCancelled { return found }
            }
            return found
        }
    }

    /// Returns whether these are all items, each once, and in order unless `inOrder` is `false`.
    private func isWhole(_ items: [Int], inOrder: Bool = true) -> Bool {
        (inOrder ? items : items.sorted()) == Array(0..<640)
    }

    @Test(
        "All items are delivered once and in order, with and without prefetching", arguments: Kind.allCases,
        [false, true])
    func all(kind: Kind, prefetch: Bool) async throws {
        let list = try Numbers()
        let found = Mutex<[Int]>([])
        try await Walker(kind, list).items(prefetch) { item in
            found.withLock { $0.append(item) }
            return true
        }
        #expect(isWhole(found.withLock { $0 }))
        #expect(list.starts.count == (kind == .offset ? 17 : 16))
        #expect(Set(list.starts).count == list.starts.count)
    }

    @Test("A failed status, body or connection does not skip a page", arguments: Kind.allCases)
    func errors(kind: Kind) async throws {
        let list = try Numbers { number, _ in
            switch number {
            case 4: return MockResponse(statusCode: 500)
            case 9: return MockResponse(statusCode: 200, data: Data("[1,".utf8))
            case 12, 13:
                var response = MockResponse(statusCode: 200, data: Data(repeating: UInt8(ascii: " "), count: 5000))
                response.wire = .cut(after: 2000)
                return response
            default: return nil
            }
        }
        var codes: [String] = []
        let found = await Walker(kind, list).rest {
            codes.append(($0 as? WebServiceError)?.code.description ?? "\(type(of: $0))")
        }
        #expect(isWhole(found))
        #expect(codes == ["unacceptableStatus", "decoding", "URLError", "URLError"])
        let starts = list.starts
        let repeated = zip(starts, starts.dropFirst()).enumerated().filter { $0.element.0 == $0.element.1 }.map(
            \.offset)
        #expect(repeated == [3, 8, 11, 12])
        #expect(Set(starts).count == starts.count - 4)
    }

    @Test(
        "A credential that is refused in the middle is renewed, and the same page is requested again",
        arguments: Kind.allCases, [false, true])
    func refresh(kind: Kind, prefetch: Bool) async throws {
        let list = try Numbers { number, request in
            let wanted = number < 8 ? "Bearer old" : "Bearer new"
            return request.headers[.authorization] == wanted ? nil : MockResponse(statusCode: 401)
        }
        let refreshes = Mutex(0)
        list.service.interceptors = [
            Authentication(
                TokenSource({ .bearer("old") }) { _ in
                    refreshes.withLock { $0 += 1 }
                    return .bearer("new")
                })
        ]
        let found = Mutex<[Int]>([])
        try await Walker(kind, list).items(prefetch) { item in
            found.withLock { $0.append(item) }
            return true
        }
        #expect(isWhole(found.withLock { $0 }))
        #expect(refreshes.withLock { $0 } == 1)
        #expect(list.starts.dropFirst(7).first == list.starts.dropFirst(8).first)
        #expect(Set(list.starts).count == list.starts.count - 1)
    }

    @Test("A reset starts from the first page, both in the middle and at the end", arguments: Kind.allCases)
    func reset(kind: Kind) async throws {
        let list = try Numbers()
        let walker = Walker(kind, list)
        for start in [0, 40, 80] { #expect(try await walker.moveNext() == Array(start..<start + 40)) }
        walker.reset()
        for _ in 0..<2 {
            #expect(isWhole(await walker.rest()))
            #expect(!walker.canMoveNext())
            #expect(try await walker.moveNext() == nil)
            walker.reset()
        }
    }

    @Test("With prefetching, exactly one page is in flight while the previous one is used", arguments: Kind.allCases)
    func prefetch(kind: Kind) async throws {
        let (arrivals, arrived) = AsyncStream.makeStream(of: Int.self)
        let list = try Numbers { number, _ in
            arrived.yield(number)
            return nil
        }
        switch kind {
        case .offset: try await checkAhead(list.offset, list, arrivals, requests: 17)
        case .number: try await checkAhead(list.number, list, arrivals, requests: 16)
        case .cursor: try await checkAhead(list.cursor, list, arrivals, requests: 16)
        case .link: try await checkAhead(list.link, list, arrivals, requests: 16)
        }
    }

    private func checkAhead<Position>(
        _ paginator: Paginator<Int, Position>, _ list: Numbers, _ arrivals: AsyncStream<Int>, requests: Int
    ) async throws {
        var arrivals = arrivals.makeAsyncIterator()
        var (used, last) = (0, 0)
        for try await _ in paginator.pages(prefetch: true) {
            used += 1
            let ahead = min(used + 1, requests)
            while last < ahead { last = await arrivals.next() ?? .max }
            #expect(list.starts.count == ahead)
        }
        #expect(used == requests)
        #expect(list.starts.count == requests)
    }

    @Test(
        "A cancellation ends the request in flight, and the same page is delivered later", arguments: Kind.allCases)
    func cancel(kind: Kind) async throws {
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
        let list = try Numbers { number, _ in
            guard number == 3 else { return nil }
            arrived.yield()
            var silence = MockResponse(statusCode: 200)
            silence.wire = .noResponse
            return silence
        }
        let walker = Walker(kind, list)
        for _ in 0..<2 { _ = try await walker.moveNext() }
        let move = Task { try await walker.moveNext() }
        for await _ in arrivals { break }
        move.cancel()
        await #expect(throws: URLError(.cancelled)) { try await move.value }
        #expect(walker.canMoveNext())
        #expect(isWhole(Array(0..<80) + (await walker.rest())))
        #expect(list.starts.dropFirst(2).first == list.starts.dropFirst(3).first)
    }

    @Test("Another paginator continues from a state that was saved as JSON", arguments: Kind.allCases)
    func save(kind: Kind) async throws {
        let list = try Numbers()
        var saved: Data?
        var found: [Int] = []
        while true {
            let walker = Walker(kind, list)
            if let saved { try walker.restore(saved) }
            guard let items = try await walker.moveNext() else { break }
            found += items
            saved = try walker.save()
        }
        #expect(isWhole(found))
        #expect(Set(list.starts).count == list.starts.count)
    }

    // MARK: Invalid sequences of pages

    private func start(_ request: ReceivedRequest) -> Int {
        request.queryItems.first { $0.name == "at" }.flatMap { Int($0.value) } ?? 0
    }

    @Test("A repeated cursor or link ends with an error and not in a loop", arguments: [Kind.cursor, .link])
    func repeated(kind: Kind) async throws {
        let list = try Numbers { _, request in
            guard start(request) == 120 else { return nil }
            let items = Array(120..<160)
            if request.path == "/cursor" { return MockResponse(statusCode: 200, json: ["items": items, "next": "40"]) }
            var response = MockResponse(statusCode: 200, json: items)
            response.headers["Link"] = "<?at=40>; rel=next"
            return response
        }
        let walker = Walker(kind, list)
        for first in [0, 40, 80, 120] { #expect(try await walker.moveNext() == Array(first..<first + 40)) }
        for _ in 0..<2 {
            let error = await #expect(throws: WebServiceError.self) { try await walker.moveNext() }
            #expect(error?.code == .repeatedCursor)
        }
        #expect(list.starts.count == 4)
        #expect(walker.canMoveNext())
        walker.reset()
        #expect(try await walker.moveNext() == Array(0..<40))
    }

    @Test("Ten consecutive empty pages are skipped, and eleven are an error", arguments: [10, 11])
    func emptyPages(count: Int) async throws {
        let list = try Numbers { _, request in
            let start = start(request)
            guard (80..<80 + count).contains(start) else { return nil }
            return MockResponse(statusCode: 200, json: ["items": [Int](), "next": "\(start + 1)"])
        }
        let walker = Walker(list.cursor)
        guard count > 10 else {
            #expect(isWhole(await walker.rest() + Array(80..<90), inOrder: false))
            return
        }
        for _ in 0..<12 { _ = try await walker.moveNext() }
        let error = await #expect(throws: WebServiceError.self) { try await walker.moveNext() }
        #expect(error?.code == .tooManyEmptyPages)
        #expect(list.starts.last == "90")
    }

    @Test(
        "A page from another origin cannot continue the list, and a link to another origin is not followed")
    func otherOrigin() async throws {
        let other = try Numbers()
        let list = try Numbers { number, request in
            switch number {
            case 1, 3:
                var response = MockResponse(statusCode: 200, json: [1])
                response.headers["Link"] = "<\(other.server.baseURLString)/link>; rel=next"
                return response
            case 2:
                var response = MockResponse(statusCode: 302)
                response.headers[.location] = "\(other.server.baseURLString)/link"
                return response
            default: return nil
            }
        }
        func code(_ paginator: Paginator<Int, URL>) async -> WebServiceError.Code? {
            do { _ = try await paginator.moveNext() } catch { return (error as? WebServiceError)?.code }
            return nil
        }
        let paginator = list.link
        #expect(await code(paginator) == nil)
        #expect(await code(paginator) == .linkRefused)
        #expect(other.starts.isEmpty)
        #expect(await code(list.link) == .linkRefused)
        #expect(other.starts.count == 1)
        let origin = try #require(Origin(other.server.baseURL))
        let request = list.service.request(.GET, path: "/link")
        let allowed = Paginator.links(from: request, origins: [origin]) { [service = list.service] request in
            service.sessionTask(request: request).decode([Int].self)
        }
        #expect(try await allowed.moveNext()?.items == [1])
        #expect(isWhole(await Walker(allowed).rest()))
    }

    // MARK: Typed requests

    struct NumbersRequest: HTTPServiceRequest, PagedRequest, RawStorableRequest {
        var offset = 0
        typealias Output = [Int]
        var storageIdentifier: String? { "numbers \(offset)" }

        func request(for service: WebService) -> Request {
            var request = service.request(.GET, path: "/offset")
            request.queryParameters = ["at": offset]
            return request
        }

        func at(_ offset: Int) -> NumbersRequest { NumbersRequest(offset: offset) }
        func page(of numbers: [Int], response: Response) -> Page<Int, Int> {
            Page(numbers, next: numbers.isEmpty ? nil : offset + numbers.count)
        }
    }

    @Test("Pages of a typed request come from the storage when the server is unavailable")
    func typedRequest() async throws {
        let list = try Numbers()
        list.service.storages = [MemoryStorage()]
        let paginator = list.service.pages(of: NumbersRequest())
        #expect(isWhole(await Walker(paginator).rest()))
        await list.service.finishStoring()
        list.server.stop()
        let stored = list.service.pages(of: NumbersRequest()) { [service = list.service] in
            service.perform($0, fetchPolicy: .serverElseCache)
        }
        #expect(isWhole(await Walker(stored).rest()))
        await #expect(throws: URLError.self) { try await paginator.reset().moveNext() }
    }
}
