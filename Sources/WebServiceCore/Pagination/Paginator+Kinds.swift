/// What ends a list whose pages name no next one.
public enum PageEnd: Sendable, Hashable {
    /// A page without items. Costs one more request, and holds for every server.
    case emptyPage
    /// A page with fewer items than were asked for, or none. Ends too early where the server gives fewer than asked at any time.
    case shortPage
}

extension Paginator where Position == Int {
    /// Pages found by how many items stand before them. An offset grows by the items that came, so that none is lost where a server gives fewer than
    /// asked.
    ///
    /// - Parameters:
    ///   - first: The offset of the first item: 0, or 1 with some servers.
    ///   - itemsPerPage: How many items are asked for.
    ///   - end: What ends the list.
    ///   - items: Makes the task for the page; what it throws is thrown by ``moveNext()``.
    public static func offset(
        from first: Int = 0, itemsPerPage: Int, end: PageEnd = .emptyPage,
        items: @escaping @Sendable (_ offset: Int, _ limit: Int) async throws -> TypedTask<[Item]>
    ) -> Paginator {
        offset(from: first, itemsPerPage: itemsPerPage, end: end, page: { offset, limit in try await items(offset, limit).map { Page($0) } })
    }

    /// The same as ``offset(from:itemsPerPage:end:items:)`` for answers that say how long the list is (``Page/total``), so
    /// that no request is needed to find the end.
    public static func offset(
        from first: Int = 0, itemsPerPage: Int, end: PageEnd = .emptyPage,
        page: @escaping @Sendable (_ offset: Int, _ limit: Int) async throws -> TypedTask<Page<Item, Int>>
    ) -> Paginator {
        counting(from: first, itemsPerPage, end, page) { offset, page in
            guard let next = sum(offset, page.items.count) else { throw outOfRange }
            guard let total = page.total, total >= 0, let behind = sum(first, total) else { return next }
            return next < behind ? next : nil
        }
    }

    /// Pages found by their number.
    ///
    /// - Parameters:
    ///   - first: The number of the first page: 1, or 0 with some servers.
    ///   - itemsPerPage: How many items are asked for.
    ///   - end: What ends the list.
    ///   - items: Makes the task for the page; what it throws is thrown by ``moveNext()``.
    public static func pageNumber(
        from first: Int = 1, itemsPerPage: Int, end: PageEnd = .emptyPage,
        items: @escaping @Sendable (_ number: Int, _ itemsPerPage: Int) async throws -> TypedTask<[Item]>
    ) -> Paginator {
        pageNumber(from: first, itemsPerPage: itemsPerPage, end: end, page: { number, limit in try await items(number, limit).map { Page($0) } })
    }

    /// The same as ``pageNumber(from:itemsPerPage:end:items:)`` for answers that say how long the list is (``Page/total``), so
    /// that no request is needed to find the end, unless it was reset to a later page before.
    public static func pageNumber(
        from first: Int = 1, itemsPerPage: Int, end: PageEnd = .emptyPage,
        page: @escaping @Sendable (_ number: Int, _ itemsPerPage: Int) async throws -> TypedTask<Page<Item, Int>>
    ) -> Paginator {
        counting(from: first, itemsPerPage, end, page) { number, _ in
            guard let next = sum(number, 1) else { throw outOfRange }
            return next
        }
    }

    /// - Parameter next: The position behind a page that does not end the list; `nil` where it does all the same.
    private static func counting(
        from first: Int, _ itemsPerPage: Int, _ end: PageEnd,
        _ task: @escaping @Sendable (Int, Int) async throws -> TypedTask<Page<Item, Int>>,
        next: @escaping @Sendable (Int, Page<Item, Int>) throws -> Int?
    ) -> Paginator {
        // Positions only grow, so none comes again, and an empty page is the end.
        Paginator(itemsPerPage: itemsPerPage, tracks: false, maximumEmptyPages: 0) { position, saved in
            let position = position ?? first
            let limit = saved ?? itemsPerPage
            var page = try await Self.page(try await task(position, limit))
            let isEnd = page.items.isEmpty || end == .shortPage && page.items.count < limit
            page.next = isEnd ? nil : try next(position, page)
            return page
        }
    }

    private static func sum(_ first: Int, _ second: Int) -> Int? {
        let (sum, overflows) = first.addingReportingOverflow(second)
        return overflows ? nil : sum
    }

    private static var outOfRange: WebServiceError { WebServiceError(.pageOutOfRange, "the position of the next page is too great") }
}

extension Paginator {
    /// Pages that name the next one by a cursor: a text, or anything else that a server tells and takes back.
    ///
    /// ```swift
    /// let brewers = Paginator.cursor { cursor in
    ///     service.GET("/brewers").setQueryParameters(cursor.map { ["cursor": $0] } ?? [:]).decode(BrewersAnswer.self)
    ///         .map { Page($0.brewers, next: $0.nextCursor) }
    /// }
    /// ```
    /// - Parameters:
    ///   - maximumEmptyPages: How many pages in a row may be empty while others follow.
    ///   - page: Makes the task for the page, with `nil` for the first one; what it throws is thrown by ``moveNext()``. A page without a next cursor,
    ///     or with one that is an empty text, is the last one.
    public static func cursor(
        maximumEmptyPages: Int = 10, page: @escaping @Sendable (_ cursor: Position?) async throws -> TypedTask<Page<Item, Position>>
    ) -> Paginator {
        Paginator(maximumEmptyPages: maximumEmptyPages) { position in
            var answer = try await Self.page(try await page(position))
            if let cursor = answer.next as? String, cursor.isEmpty { answer.next = nil }
            return answer
        }
    }

    /// The page that a task makes, with its answer.
    static func page(_ task: TypedTask<Page<Item, Position>>) async throws -> Page<Item, Position> {
        var page = try await task.value
        if page.response == nil { page.response = try? await task.response }  // a value that stands in for an error has no answer
        return page
    }
}
