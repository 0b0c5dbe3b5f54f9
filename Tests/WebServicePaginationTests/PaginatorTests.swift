import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServicePagination

@Suite("Paginator", .permit)
struct PaginatorTests {
    /// Returns a paginator of pages by position, the first of which is at 0.
    ///
    /// `[1: ([10], 2)]` has the item 10 at position 1, and the next page is at position 2.
    private func paginator(_ pages: [Int: ([Int], Int?)], asked: Collected<Int?> = Collected(), empty: Int = 10)
        -> Paginator<Int, Int>
    {
        Paginator(maximumEmptyPages: empty) { position in
            asked.add(position)
            guard let (items, next) = pages[position ?? 0] else { throw TestError(name: "no page \(position ?? 0)") }
            return Page(items, next: next)
        }
    }

    private func code(_ body: () async throws -> Void) async -> WebServiceError.Code? {
        do { try await body() } catch { return (error as? WebServiceError)?.code }
        return nil
    }

    @Test("No page is requested before the first call or after the end")
    func laziness() async throws {
        let asked = Collected<Int?>()
        let paginator = paginator([0: ([1, 2], 7), 7: ([3], nil)], asked: asked)
        #expect(asked.values.isEmpty)
        #expect(paginator.canMoveNext)
        #expect(try await paginator.moveNext()?.items == [1, 2])
        #expect(asked.values == [nil])
        #expect(paginator.state.position == 7)
        #expect(try await paginator.moveNext()?.items == [3])
        #expect(!paginator.canMoveNext)
        #expect(paginator.state.itemCount == 3)
        #expect(try await paginator.moveNext() == nil)
        #expect(asked.values == [nil, 7])
    }

    @Test("Pages and items are asynchronous sequences, with and without prefetching", arguments: [false, true])
    func sequences(prefetch: Bool) async throws {
        let pages = [0: ([1, 2], 7), 7: ([], 8), 8: ([3], Optional<Int>.none)]
        let paginator = paginator(pages)
        var found: [[Int]] = []
        for try await page in paginator.pages(prefetch: prefetch) { found.append(page.items) }
        #expect(found == [[1, 2], [], [3]])
        var items: [Int] = []
        for try await item in paginator.items(prefetch: prefetch) { items.append(item) }
        #expect(items.isEmpty)
        for try await item in paginator.reset().items(prefetch: prefetch) { items.append(item) }
        #expect(items == [1, 2, 3])
    }

    @Test("An error retains the position, and the same page is requested again")
    func errors() async throws {
        let list = HandList()
        let paginator = list.paginator
        async let first = paginator.moveNext()
        await list.asks.wait().last?.respond([1], next: 5)
        #expect(try await first?.items == [1])
        for count in 2...3 {
            let failing = Task { try await paginator.moveNext() }
            await list.asks.wait(for: count).last?.fail(TestError(name: "\(count)"))
            await #expect(throws: TestError(name: "\(count)")) { try await failing.value }
            #expect(paginator.canMoveNext)
            #expect(paginator.state.position == 5)
            #expect(paginator.state.itemCount == 1)
        }
        async let second = paginator.moveNext()
        await list.asks.wait(for: 4).last?.respond([2], next: nil)
        #expect(try await second?.items == [2])
        #expect(list.asks.values.map(\.position) == [nil, 5, 5, 5])
    }

    @Test("Concurrent calls receive different pages, one request runs at a time, and no page is skipped")
    func concurrency() async throws {
        let running = Mutex((now: 0, most: 0))
        let paginator = Paginator<Int, Int> { position in
            running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            await Task.yield()
            running.withLock { $0.now -= 1 }
            let position = position ?? 0
            return Page([position], next: position < 199 ? position + 1 : nil)
        }
        let items = try await withThrowingTaskGroup(of: [Int].self) { group in
            for _ in 0..<250 { group.addTask { try await paginator.moveNext()?.items ?? [] } }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(items.sorted() == Array(0..<200))
        #expect(running.withLock { $0.most } == 1)
        #expect(!paginator.canMoveNext)
    }

    @Test("Completion handlers receive the pages and the end in the order of the calls on the main actor")
    @MainActor
    func closures() async throws {
        let paginator = paginator([0: ([1], 1), 1: ([2], 2), 2: ([3], nil)])
        let results = Collected<[Int]?>()
        // An error becomes `nil` and fails the test.
        for _ in 0..<4 { paginator.moveNext { results.add((try? $0.get())?.items) } }
        #expect(await results.wait(for: 4) == [[1], [2], [3], nil])
        let error = Collected<Bool>()
        paginator.reset(to: 9).moveNext { result in error.add(result.isFailure) }
        #expect(await error.wait() == [true])
    }

    @Test("Cancelling a call ends only its own request and retains the position")
    func cancel() async throws {
        let list = HandList()
        let paginator = list.paginator
        let first = Task { try await paginator.moveNext() }
        await list.asks.wait()
        let called = Collected<Void>()
        let waiting = Task { @MainActor in
            called.add(())
            return try await paginator.moveNext()
        }
        await called.wait()
        waiting.cancel()
        await #expect(throws: URLError(.cancelled)) { try await waiting.value }
        #expect(list.asks.values.count == 1)
        #expect(list.asks.values.first?.isCancelled == false)
        first.cancel()
        await #expect(throws: URLError(.cancelled)) { try await first.value }
        #expect(list.asks.values.first?.isCancelled == true)
        #expect(paginator.state.position == nil)
        #expect(paginator.canMoveNext)
        async let again = paginator.moveNext()
        await list.asks.wait(for: 2).last?.respond([1], next: nil)
        #expect(try await again?.items == [1])
        #expect(list.asks.values.map(\.position) == [nil, nil])
    }

    @Test("A cancelled Swift task requests no page")
    func cancelledBefore() async throws {
        let asked = Collected<Int?>()
        let paginator = paginator([0: ([1], nil)], asked: asked)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await paginator.moveNext()
        }
        await #expect(throws: URLError(.cancelled)) { try await task.value }
        #expect(asked.values.isEmpty)
        #expect(try await paginator.moveNext()?.items == [1])
    }

    @Test(
        "A reset ends the request in progress, even one that ignores cancellation, and discards its late page",
        arguments: [true, false])
    func reset(heedsCancel: Bool) async throws {
        let list = HandList(heedsCancel: heedsCancel)
        let paginator = list.paginator
        let old = Task { try await paginator.moveNext() }
        await list.asks.wait()
        paginator.reset(to: 40)
        await list.cancels.wait()
        list.asks.values.first?.respond([1], next: 2)
        await #expect(throws: URLError(.cancelled)) { try await old.value }
        #expect(paginator.state.position == 40)
        #expect(paginator.state.itemCount == 0)
        #expect(paginator.canMoveNext)
        async let new = paginator.moveNext()
        await list.asks.wait(for: 2).last?.respond([40], next: nil)
        #expect(try await new?.items == [40])
        #expect(paginator.reset().canMoveNext)
        #expect(paginator.state.position == nil)
    }

    @Test(
        "A repeated cursor is an error for loops of any length, and each page before it is returned once",
        arguments: [1, 2, 7])
    func loops(length: Int) async throws {
        let asked = Collected<Int?>()
        var pages = [0: ([0], Optional(1))]
        for place in 1...length { pages[place] = ([place], place == length ? 1 : place + 1) }
        let paginator = paginator(pages, asked: asked)
        var items: [Int] = []
        let found = await code { for try await item in paginator.items(prefetch: true) { items.append(item) } }
        #expect(found == .repeatedCursor)
        #expect(items == Array(0...length))
        #expect(asked.values.count == length + 1)
        #expect(await code { _ = try await paginator.moveNext() } == .repeatedCursor)
        #expect(paginator.canMoveNext)
        #expect(asked.values.count == length + 1)
        #expect(try await paginator.reset(to: 1).moveNext()?.items == [1])
    }

    @Test("A loop is detected across saved states")
    func loopAcrossSaves() async throws {
        let pages = [0: ([0], Optional(1)), 1: ([1], 2), 2: ([2], 1)]
        var saved = try JSONEncoder().encode(paginator(pages).state)
        var items: [Int] = []
        let found = await code {
            for _ in 0..<10 {
                let paginator = paginator(pages).reset(
                    to: try JSONDecoder().decode(Paginator<Int, Int>.State.self, from: saved))
                items += try await paginator.moveNext()?.items ?? []
                saved = try JSONEncoder().encode(paginator.state)
            }
        }
        #expect(found == .repeatedCursor)
        #expect(items == [0, 1, 2])
    }

    @Test("A state has the same size after any number of pages, and a long loop ends")
    func longList() async throws {
        let cursor = String(repeating: "c", count: 30)
        func paginator(_ next: @escaping @Sendable (Int) -> Int?) -> Paginator<Int, String> {
            Paginator<Int, String> { position in
                let number = position.flatMap { Int($0.dropFirst(30)) } ?? 0
                return Page([number], next: next(number).map { "\(cursor)\($0)" })
            }
        }
        let endless = paginator { $0 + 1 }
        for _ in 0..<3_000 { _ = try await endless.moveNext() }
        #expect(try JSONEncoder().encode(endless.state).count < 4_000)

        // A list that begins again after its last page returns no page twice.
        let first = paginator { $0 == 699 ? 1 : $0 + 1 }
        var count = 0
        #expect(await code { for try await _ in first.items() { count += 1 } } == .repeatedCursor)
        #expect(count == 700)
        // Neither does a list that returns to one of its last pages.
        let short = paginator { $0 == 6 ? 5 : $0 + 1 }
        count = 0
        #expect(await code { for try await _ in short.items() { count += 1 } } == .repeatedCursor)
        #expect(count == 7)
        // A long loop to another page is found later.
        let middle = paginator { $0 == 999 ? 300 : $0 + 1 }
        count = 0
        #expect(await code { for try await _ in middle.items() { count += 1 } } == .repeatedCursor)
        #expect(count > 1_000)
        #expect(count <= 2_000)
    }

    @Test("Consecutive empty pages are skipped up to a limit, and a page with items resets their count")
    func emptyPages() async throws {
        let pages: [Int: ([Int], Int?)] = [
            0: ([], 1), 1: ([], 2), 2: ([5], 3), 3: ([], 4), 4: ([], 5), 5: ([], 6), 6: ([6], nil),
        ]
        let paginator = paginator(pages, empty: 2)
        var items: [Int] = []
        let found = await code { for try await item in paginator.items() { items.append(item) } }
        #expect(found == .tooManyEmptyPages)
        #expect(items == [5])
        #expect(paginator.state.position == 5)
        #expect(paginator.canMoveNext)
        #expect(try await paginator.reset(to: 6).moveNext()?.items == [6])
        #expect(await code { _ = try await self.paginator([0: ([], 1)], empty: -1).moveNext() } == .tooManyEmptyPages)
        #expect(try await self.paginator([0: ([], nil)], empty: 0).moveNext()?.items == [])
    }

    @Test(
        "A total does not end a list whose pages specify the next position",
        arguments: [(3, 3), (0, 0), (-1, nil), (Int.max, Int.max)])
    func total(_ said: Int, known: Int?) async throws {
        let paginator = Paginator<Int, Int> { Page([$0 ?? 0], next: $0 == 3 ? nil : ($0 ?? 0) + 1, total: said) }
        var found = 0
        for try await _ in paginator.items() { found += 1 }
        #expect(found == 4)
        #expect(paginator.state.total == known)
    }

    @Test("A saved state with extreme numbers does not trap")
    func hostileState() async throws {
        let text = """
            {"position": 0, "isAtEnd": false, "itemCount": \(Int.max), "itemsPerPage": \(Int.min),
             "total": \(Int.min), "emptyPages": \(Int.max), "visited": []}
            """
        let state = try JSONDecoder().decode(Paginator<Int, Int>.State.self, from: Data(text.utf8))
        let full = paginator([0: ([1], 1), 1: ([], 2)]).reset(to: state)
        #expect(try await full.moveNext()?.items == [1])
        #expect(full.state.itemCount == .max)
        #expect(
            await code { _ = try await self.paginator([0: ([], 1)]).reset(to: state).moveNext() } == .tooManyEmptyPages)
    }

    @Test("Descriptions of pages and states contain no positions")
    func descriptions() async throws {
        let page = Page(["a"], next: "canary")
        let paginator = Paginator<String, String> { _ in page }
        _ = try await paginator.moveNext()
        var dumped = ""
        dump(page, to: &dumped)
        dump(paginator.state, to: &dumped)
        #expect(
            !"\(page) \(String(reflecting: page)) \(paginator.state) \(String(reflecting: paginator.state)) \(dumped)"
                .contains("canary"))
        #expect("\(page), \(paginator.state)" == "1 items, more follow, 1 items, more follow")
    }
}

extension Result {
    fileprivate var isFailure: Bool { if case .failure = self { true } else { false } }
}
