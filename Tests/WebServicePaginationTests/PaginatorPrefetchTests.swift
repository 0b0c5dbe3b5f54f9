import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServicePagination

@Suite("Paginator with prefetching", .permit)
struct PaginatorPrefetchTests {
    private let list = HandList()

    @Test("Exactly one page is prefetched, and the state remains at the position before it")
    func prefetch() async throws {
        let paginator = list.paginator
        let iterator = paginator.pages(prefetch: true).iterator()
        async let first = iterator.next()
        await list.asks.wait().last?.respond([1], next: 2)
        #expect(try await first?.items == [1])
        await list.asks.wait(for: 2).last?.respond([2], next: 3)
        paginator.prefetch()
        #expect(paginator.state.position == 2)
        #expect(paginator.state.itemCount == 1)
        #expect(list.asks.values.map(\.position) == [nil, 2])
        #expect(try await iterator.next()?.items == [2])
        await list.asks.wait(for: 3).last?.respond([3], next: nil)
        #expect(try await iterator.next()?.items == [3])
        #expect(try await iterator.next() == nil)
        #expect(list.asks.values.map(\.position) == [nil, 2, 3])
    }

    @Test("The end of an iteration cancels the prefetched page, which can be requested again")
    func prefetchEnds() async throws {
        let paginator = list.paginator
        let iteration = Task {
            for try await _ in paginator.items(prefetch: true) {
                await list.asks.wait(for: 2)
                break
            }
        }
        await list.asks.wait().last?.respond([1], next: 2)
        try await iteration.value
        #expect(await list.cancels.wait() == [2])
        #expect(paginator.state.position == 2)
        async let second = paginator.moveNext()
        await list.asks.wait(for: 3).last?.respond([2], next: nil)
        #expect(try await second?.items == [2])
    }

    @Test("The error of a prefetched page is thrown when the page is requested, and the page can be requested again")
    func prefetchFails() async throws {
        let paginator = list.paginator
        let iterator = paginator.items(prefetch: true).pages.iterator()
        async let first = iterator.next()
        await list.asks.wait().last?.respond([1], next: 2)
        _ = try await first
        await list.asks.wait(for: 2).last?.fail()
        await #expect(throws: TestError()) { _ = try await iterator.next() }
        async let second = iterator.next()
        await list.asks.wait(for: 3).last?.respond([2], next: nil)
        #expect(try await second?.items == [2])
        #expect(list.asks.values.map(\.position) == [nil, 2, 2])
    }

    @Test(
        "Cancelling the waiting caller cancels a prefetched page; the end of another iteration does not"
    )
    func prefetchCancel() async throws {
        let paginator = list.paginator
        var iterator = Optional(paginator.pages(prefetch: true).iterator())
        let first = Task { [iterator] in try await iterator?.next() }
        await list.asks.wait().last?.respond([1], next: 2)
        _ = try await first.value
        await list.asks.wait(for: 2)
        let waiting = Task { try await paginator.moveNext() }
        await eventually { paginator.isAwaited }
        waiting.cancel()
        await #expect(throws: URLError(.cancelled)) { try await waiting.value }
        let again = Task { try await paginator.moveNext() }
        await list.asks.wait(for: 3)
        iterator = nil
        list.asks.values.last?.respond([2], next: nil)
        #expect(try await again.value?.items == [2])
        #expect(list.asks.values.map(\.isCancelled) == [false, true, false])
    }

    @Test("Deallocating a paginator cancels its prefetched page, which does not retain the paginator")
    func freeing() async throws {
        var paginator: Paginator? = list.paginator
        weak let freed = paginator
        let first = Task { [paginator] in try await paginator?.moveNext() }
        await list.asks.wait().last?.respond([1], next: 2)
        _ = try await first.value
        paginator?.prefetch()
        await list.asks.wait(for: 2)
        paginator = nil
        #expect(await list.cancels.wait() == [2])
        #expect(freed == nil)
    }
}
