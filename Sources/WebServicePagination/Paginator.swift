import Foundation
import WebServiceCore

/// A paginator that requests a long list one page at a time.
///
/// ```swift
/// let brewers = Paginator.offset(itemsPerPage: 20) { offset, limit in
///     service.GET("/brewers")
///         .setQueryParameters(["offset": offset, "limit": limit])
///         .decode([Brewer].self)
/// }
/// for try await brewer in brewers.items(prefetch: true) { … }  // all items
/// while let page = try await brewers.moveNext() { show(page.items) }  // or page by page
/// ```
/// Create a paginator with ``offset(from:itemsPerPage:end:items:)``,
/// ``pageNumber(from:itemsPerPage:end:items:)``, ``cursor(maximumEmptyPages:page:)``, or
/// ``links(from:relation:origins:maximumEmptyPages:items:)``. For a ``PagedRequest``, use
/// `WebService.pages(of:maximumEmptyPages:performing:)`.
/// - Except for a prefetch, no page is requested before it is needed. Every page is returned once,
///   in order. Concurrent calls of ``moveNext()`` are serialized.
/// - An error or a cancellation leaves the position unchanged, so the next call requests the same
///   page again. A cancellation ends the request in flight.
/// - ``reset(to:)-(Position?)`` makes the paginator usable again in any state.
/// - The list ends with a page without a next position. For offsets and page numbers, it also ends
///   after ``Page/total`` items.
/// - If the next page was already visited, the call fails with
///   `WebServiceError.Code.repeatedCursor`, and the page is not requested again until a reset. For
///   this purpose, the paginator retains hashes of the last 128 cursors or links, and of all those
///   whose number is a power of two. A longer loop is detected after at most twice as many pages as
///   there are different pages.
/// - An empty page with a next position is returned like any other page, but too many consecutive
///   empty pages fail with `WebServiceError.Code.tooManyEmptyPages`.
/// - ``state`` can be saved and restored.
///
/// All members may be used from any thread.
public final class Paginator<Item: Sendable, Position: Hashable & Codable & Sendable>: Sendable {
    typealias Load = @Sendable (_ position: Position?, _ itemsPerPage: Int?) async throws -> Page<Item, Position>

    /// A request for a page in flight.
    private struct Flight {
        let id: UInt64
        let task: Task<Page<Item, Position>, any Error>
        /// Whether a caller waits for the page. If `false`, the page is being prefetched.
        var isAwaited: Bool
    }

    private struct Progress {
        var saved: State
        var flight: Flight?
        var lastID: UInt64 = 0
        /// The turns of the calls of ``moveNext()``.
        var turns = Turns()
    }

    private let shared: Mutex<Progress>
    private let itemsPerPage: Int?
    private let tracks: Bool
    private let maximumEmptyPages: Int
    private let load: Load

    /// Creates a paginator for a list with a custom kind of paging.
    ///
    /// - Parameters:
    ///   - maximumEmptyPages: The maximum number of consecutive empty pages, not counting the last
    ///     page. Defaults to 10.
    ///   - page: Returns the page at a position, which is `nil` for the first page. It is called in
    ///     a Swift task that is cancelled when the page is no longer needed. Apart from cancelled
    ///     calls, it is called for one page at a time. If it throws an error, ``moveNext()`` throws
    ///     the same error, or `URLError.cancelled` for a `CancellationError`.
    public convenience init(
        maximumEmptyPages: Int = 10,
        page: @escaping @Sendable (_ position: Position?) async throws -> Page<Item, Position>
    ) {
        self.init(itemsPerPage: nil, tracks: true, maximumEmptyPages: maximumEmptyPages) { position, _ in
            try await page(position)
        }
    }

    init(itemsPerPage: Int?, tracks: Bool, maximumEmptyPages: Int, load: @escaping Load) {
        self.itemsPerPage = itemsPerPage
        self.tracks = tracks
        self.maximumEmptyPages = maximumEmptyPages
        self.load = load
        shared = Mutex(Progress(saved: State(itemsPerPage: itemsPerPage)))
    }

    deinit {
        shared.withLock { $0.flight }?.task.cancel()
    }

    /// Whether there may be another page. It is `false` only at the end of the list.
    public var canMoveNext: Bool { !state.isAtEnd }

    /// The state after the last page that ``moveNext()`` returned.
    ///
    /// A prefetched page is not included.
    public var state: State { shared.withLock { $0.saved } }

    /// Returns the next page, or `nil` at the end of the list.
    ///
    /// - Throws: The error of the request for the page; `WebServiceError.Code.repeatedCursor`,
    ///   `WebServiceError.Code.tooManyEmptyPages`, `WebServiceError.Code.pageOutOfRange` or
    ///   `WebServiceError.Code.linkRefused`; or `URLError.cancelled` if the Swift task is cancelled
    ///   or the paginator is reset in the meantime.
    public func moveNext() async throws -> Page<Item, Position>? {
        let turn = shared.withLock { $0.turns.enter() }
        defer { leave(turn) }
        return try await move(turn)
    }

    /// Requests the next page immediately.
    ///
    /// The closure is called once, on the main actor, in the order of the calls. It receives the
    /// page, `nil` at the end of the list, or the error of ``moveNext()``. The next call continues
    /// after the closure has returned.
    ///
    /// - Returns: A task that can be used to cancel the call.
    @discardableResult
    public func moveNext(
        completion: @escaping @MainActor @Sendable (_ result: Result<Page<Item, Position>?, any Error>) -> Void
    ) -> Task<Void, Never> {
        let turn = shared.withLock { $0.turns.enter() }
        return Task(executorPreference: WorkCount.current) { [self] in
            defer { leave(turn) }
            let result: Result<Page<Item, Position>?, any Error>
            do { result = .success(try await move(turn)) } catch { result = .failure(error) }
            await completion(result)
        }
    }

    /// Restarts at a position, or at the beginning of the list if the position is `nil`.
    ///
    /// A request in flight is cancelled, and its caller receives `URLError.cancelled`.
    @discardableResult
    public func reset(to position: Position? = nil) -> Self {
        reset(to: State(at: position, itemsPerPage: itemsPerPage))
    }

    /// Continues from a saved state, which may come from another paginator for the same list.
    ///
    /// A request in flight is cancelled, and its caller receives `URLError.cancelled`.
    ///
    /// A state includes the number of items per page, because page numbers depend on it.
    @discardableResult
    public func reset(to state: State) -> Self {
        let flight = shared.withLock { shared in
            shared.saved = state
            return shared.flight.take()
        }
        flight?.task.cancel()
        return self
    }

    // MARK: Pages in flight

    private func move(_ turn: Turns.Turn) async throws -> Page<Item, Position>? {
        try await turn.value(orIfCancelled: .failure(URLError(.cancelled))).get()
        if Task.isCancelled { throw URLError(.cancelled) }
        guard let flight = try flight(isAwaited: true) else { return nil }
        let result = await withTaskCancellationHandler {
            await flight.task.result
        } onCancel: {
            flight.task.cancel()
        }
        return try shared.withLock { shared in
            guard shared.flight?.id == flight.id else { throw URLError(.cancelled) }  // the paginator was reset
            shared.flight = nil
            let page = try result.get()
            try shared.saved.advance(over: page, tracks: tracks, maximumEmptyPages: maximumEmptyPages)
            return page
        }
    }

    private func leave(_ turn: Turns.Turn) {
        shared.withLock { $0.turns.leave(turn) }?.set(.success(()))
    }

    /// Returns the request for the next page and starts it if necessary. Returns `nil` at the end
    /// of the list.
    private func flight(isAwaited: Bool) throws -> Flight? {
        try shared.withLock { shared in
            if shared.saved.isAtEnd { return nil }
            if shared.saved.isRepeated {
                throw WebServiceError(
                    .repeatedCursor,
                    "the last page leads to a page that was already visited; check the cursor or link of the last page")
            }
            if isAwaited { shared.flight?.isAwaited = true }
            if let flight = shared.flight { return flight }
            shared.lastID += 1
            let (position, itemsPerPage) = (shared.saved.position, shared.saved.itemsPerPage)
            let task = Task(executorPreference: WorkCount.current) { [load] in
                do {
                    return try await load(position, itemsPerPage)
                } catch is CancellationError {
                    throw URLError(.cancelled)
                }
            }
            let flight = Flight(id: shared.lastID, task: task, isAwaited: isAwaited)
            shared.flight = flight
            return flight
        }
    }

    /// Whether a caller waits for the page in flight.
    var isAwaited: Bool { shared.withLock { $0.flight?.isAwaited == true } }

    /// Requests the next page in advance, unless it is already in flight.
    func prefetch() {
        _ = try? flight(isAwaited: false)  // the caller of moveNext() receives the error
    }

    /// Cancels the prefetch of a page, unless a caller already waits for the page.
    func cancelPrefetch() {
        let flight = shared.withLock { shared in
            shared.flight?.isAwaited == false ? shared.flight.take() : nil
        }
        flight?.task.cancel()
    }
}
