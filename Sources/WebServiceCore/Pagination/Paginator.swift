import Foundation

/// Asks for a long list page by page.
///
/// ```swift
/// let brewers = Paginator.offset(itemsPerPage: 20) { offset, limit in
///     service.GET("/brewers").setQueryParameters(["offset": offset, "limit": limit]).decode([Brewer].self)
/// }
/// for try await brewer in brewers.items(prefetch: true) { … }      // all of them
/// while let page = try await brewers.moveNext() { show(page.items) } // or by hand
/// ```
/// ``offset(from:itemsPerPage:end:items:)``, ``pageNumber(from:itemsPerPage:end:items:)``, ``cursor(maximumEmptyPages:page:)`` and
/// ``links(from:relation:origins:maximumEmptyPages:items:)`` make one, as does ``WebService/pages(of:maximumEmptyPages:performing:)`` for a
/// ``PagedRequest``.
/// - Nothing is asked for before somebody wants a page. Every page comes once, in order: of several that call ``moveNext()`` one waits for the other.
/// - An error keeps the position: the next call asks for the same page again. So does a cancel, which ends the request under way.
/// - ``reset(to:)-(Position?)`` makes it usable again, whatever came before.
/// - The end is a page without a next one; for offsets and page numbers, which no server names, ``Page/total`` items as well.
/// - A next page that was there already, also longer ago, is ``WebServiceError/Code/repeatedCursor``: not asked for again, by no call, until a reset.
///   For this each cursor or link is remembered until then.
/// - A page that is empty but names a next one is a page like any other, but too many of them in a row are
///   ``WebServiceError/Code/tooManyEmptyPages``.
/// - ``state`` can be saved and gone on from.
///
/// All members may be used from any thread.
public final class Paginator<Item: Sendable, Position: Hashable & Codable & Sendable>: Sendable {
    typealias Load = @Sendable (_ position: Position?, _ itemsPerPage: Int?) async throws -> Page<Item, Position>

    /// One page on its way.
    private struct Flight {
        let id: UInt64
        let task: Task<Page<Item, Position>, any Error>
        /// Whether somebody waits for it; if not, it was begun ahead.
        var isAwaited: Bool
    }

    private struct State {
        var saved: PaginatorState<Position>
        var flight: Flight?
        var lastID: UInt64 = 0
    }

    private let shared: Mutex<State>
    private let turns = Turns()
    private let itemsPerPage: Int?
    private let tracks: Bool
    private let maximumEmptyPages: Int
    private let load: Load

    /// Makes a paginator for a list whose pages are found in a way of your own.
    ///
    /// - Parameters:
    ///   - maximumEmptyPages: How many pages in a row may be empty while others follow.
    ///   - page: Brings the page at a position, `nil` for the first one, in a Swift task that is cancelled when nobody wants the page any more.
    ///     Called for one page at a time, cancelled ones aside. What it throws is thrown by ``moveNext()``.
    public convenience init(
        maximumEmptyPages: Int = 10, page: @escaping @Sendable (_ position: Position?) async throws -> Page<Item, Position>
    ) {
        self.init(itemsPerPage: nil, tracks: true, maximumEmptyPages: maximumEmptyPages) { position, _ in try await page(position) }
    }

    init(itemsPerPage: Int?, tracks: Bool, maximumEmptyPages: Int, load: @escaping Load) {
        self.itemsPerPage = itemsPerPage
        self.tracks = tracks
        self.maximumEmptyPages = maximumEmptyPages
        self.load = load
        shared = Mutex(State(saved: PaginatorState(itemsPerPage: itemsPerPage)))
    }

    deinit {
        shared.withLock { $0.flight }?.task.cancel()
    }

    /// Whether there may be another page: `false` only at the end.
    public var canMoveNext: Bool { !state.isAtEnd }

    /// How far it has come: behind the last page that ``moveNext()`` has returned. A page that was begun ahead does not count.
    public var state: PaginatorState<Position> { shared.withLock { $0.saved } }

    /// The next page; `nil` at the end.
    ///
    /// - Throws: What the request for the page threw; ``WebServiceError/Code/repeatedCursor``, ``WebServiceError/Code/tooManyEmptyPages``,
    ///   ``WebServiceError/Code/pageOutOfRange``, ``WebServiceError/Code/linkRefused``; `URLError.cancelled` when the Swift task is cancelled or
    ///   there was a reset meanwhile.
    public func moveNext() async throws -> Page<Item, Position>? {
        let turn = turns.enter()
        defer { turns.leave(turn) }
        return try await move(turn)
    }

    /// Asks for the next page at once. The closure gets it, `nil` at the end, or the error of ``moveNext()``, once, on the main actor, in the order
    /// of the calls; the call after it goes on when it has returned.
    ///
    /// - Returns: What can be cancelled.
    @discardableResult
    public func moveNext(
        completion: @escaping @MainActor @Sendable (_ result: Result<Page<Item, Position>?, any Error>) -> Void
    ) -> Task<Void, Never> {
        let turn = turns.enter()
        return Task {
            defer { turns.leave(turn) }
            let result: Result<Page<Item, Position>?, any Error>
            do { result = .success(try await move(turn)) } catch { result = .failure(error) }
            await completion(result)
        }
    }

    /// Begins anew at a position, `nil` for the beginning of the list. What is under way is cancelled and ends with `URLError.cancelled`.
    @discardableResult
    public func reset(to position: Position? = nil) -> Self {
        reset(to: PaginatorState(at: position, itemsPerPage: itemsPerPage))
    }

    /// Goes on from a saved state, also that of another paginator for the same list. What is under way is cancelled and ends with
    /// `URLError.cancelled`.
    ///
    /// A state keeps the items per page, because page numbers mean nothing without them.
    @discardableResult
    public func reset(to state: PaginatorState<Position>) -> Self {
        let flight = shared.withLock { shared in
            shared.saved = state
            return shared.flight.take()
        }
        flight?.task.cancel()
        return self
    }

    // MARK: Pages on their way

    private func move(_ turn: UInt64) async throws -> Page<Item, Position>? {
        try await turns.wait(turn)
        if Task.isCancelled { throw URLError(.cancelled) }
        guard let flight = try flight(isAwaited: true) else { return nil }
        let result = await withTaskCancellationHandler {
            await flight.task.result
        } onCancel: {
            flight.task.cancel()
        }
        return try shared.withLock { shared in
            guard shared.flight?.id == flight.id else { throw URLError(.cancelled) }  // there was a reset
            shared.flight = nil
            let page = try result.get()
            try shared.saved.advance(over: page, tracks: tracks, maximumEmptyPages: maximumEmptyPages)
            return page
        }
    }

    /// The next page on its way; `nil` at the end.
    private func flight(isAwaited: Bool) throws -> Flight? {
        try shared.withLock { shared in
            if shared.saved.isAtEnd { return nil }
            if shared.saved.isRepeated { throw WebServiceError(.repeatedCursor, "the next page was there already") }
            if isAwaited { shared.flight?.isAwaited = true }
            if let flight = shared.flight { return flight }
            shared.lastID += 1
            let task = Task { [load, position = shared.saved.position, itemsPerPage = shared.saved.itemsPerPage] in
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

    /// Whether somebody waits for a page that is on its way.
    var isAwaited: Bool { shared.withLock { $0.flight?.isAwaited == true } }

    /// Begins the next page before somebody wants it, unless it is on its way.
    func prefetch() {
        _ = try? flight(isAwaited: false)  // whoever wants the page gets the error
    }

    /// Cancels a page that was begun ahead, unless somebody waits for it by now.
    func cancelPrefetch() {
        let flight = shared.withLock { shared in
            shared.flight?.isAwaited == false ? shared.flight.take() : nil
        }
        flight?.task.cancel()
    }
}
