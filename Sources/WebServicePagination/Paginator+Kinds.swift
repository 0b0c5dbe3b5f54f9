public import WebServiceCore

extension Paginator {
    /// The condition that ends a list whose pages do not identify the next page.
    public enum End: Sendable, Hashable {
        /// The list ends with a page without items. This costs one more request, but works with
        /// every server.
        case emptyPage
        /// The list ends with a page that contains fewer items than requested, or none. If the
        /// server may return fewer items on any page, the list may end too early.
        case shortPage
    }
}

extension Paginator where Position == Int {
    /// Returns a paginator for pages that are identified by an offset.
    ///
    /// The offset grows by the number of received items, so no item is lost if the server returns
    /// fewer items than requested.
    ///
    /// - Parameters:
    ///   - first: The offset of the first item, which is 0, or 1 for some servers. Defaults to 0.
    ///   - itemsPerPage: The number of items to request per page.
    ///   - end: The condition that ends the list. Defaults to ``Paginator/End/emptyPage``.
    ///   - items: Returns a task for the page. If it throws an error, ``moveNext()`` throws the
    ///     same error, or `URLError.cancelled` for a `CancellationError`.
    public static func offset(
        from first: Int = 0, itemsPerPage: Int, end: End = .emptyPage,
        items: @escaping @Sendable (_ offset: Int, _ limit: Int) async throws -> TypedTask<[Item]>
    ) -> Paginator {
        offset(
            from: first, itemsPerPage: itemsPerPage, end: end,
            page: { offset, limit in try await items(offset, limit).map { Page($0) } })
    }

    /// Returns a paginator for pages that are identified by an offset and contain the length of the
    /// list.
    ///
    /// This method is equivalent to ``offset(from:itemsPerPage:end:items:)``, but the responses
    /// contain the length of the list (``Page/total``), so no additional request is needed to find
    /// the end.
    public static func offset(
        from first: Int = 0, itemsPerPage: Int, end: End = .emptyPage,
        page: @escaping @Sendable (_ offset: Int, _ limit: Int) async throws -> TypedTask<Page<Item, Int>>
    ) -> Paginator {
        counting(from: first, itemsPerPage, end, page) { offset, page in
            guard let next = sum(offset, page.items.count) else { throw outOfRange }
            guard let total = page.total, total >= 0, let behind = sum(first, total) else { return next }
            return next < behind ? next : nil
        }
    }

    /// Returns a paginator for pages that are identified by a number.
    ///
    /// - Parameters:
    ///   - first: The number of the first page, which is 1, or 0 for some servers. Defaults to 1.
    ///   - itemsPerPage: The number of items to request per page.
    ///   - end: The condition that ends the list. Defaults to ``Paginator/End/emptyPage``.
    ///   - items: Returns a task for the page. If it throws an error, ``moveNext()`` throws the
    ///     same error, or `URLError.cancelled` for a `CancellationError`.
    public static func pageNumber(
        from first: Int = 1, itemsPerPage: Int, end: End = .emptyPage,
        items: @escaping @Sendable (_ number: Int, _ itemsPerPage: Int) async throws -> TypedTask<[Item]>
    ) -> Paginator {
        pageNumber(
            from: first, itemsPerPage: itemsPerPage, end: end,
            page: { number, limit in try await items(number, limit).map { Page($0) } })
    }

    /// Returns a paginator for pages that are identified by a number and contain the length of the
    /// list.
    ///
    /// This method is equivalent to ``pageNumber(from:itemsPerPage:end:items:)``, but the responses
    /// contain the length of the list (``Page/total``). No additional request is therefore needed
    /// to find the end, unless the paginator was reset to a later page.
    public static func pageNumber(
        from first: Int = 1, itemsPerPage: Int, end: End = .emptyPage,
        page: @escaping @Sendable (_ number: Int, _ itemsPerPage: Int) async throws -> TypedTask<Page<Item, Int>>
    ) -> Paginator {
        counting(from: first, itemsPerPage, end, page) { number, _ in
            guard let next = sum(number, 1) else { throw outOfRange }
            return next
        }
    }

    /// - Parameter next: Returns the position after a page whose items do not end the list, or
    ///   `nil` if the list ends there for another reason.
    private static func counting(
        from first: Int, _ itemsPerPage: Int, _ end: End,
        _ task: @escaping @Sendable (Int, Int) async throws -> TypedTask<Page<Item, Int>>,
        next: @escaping @Sendable (Int, Page<Item, Int>) throws -> Int?
    ) -> Paginator {
        // Positions only grow, so no position is repeated, and an empty page ends the list.
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

    private static var outOfRange: WebServiceError {
        WebServiceError(.pageOutOfRange, "the position of the next page exceeds the range of Int")
    }
}

extension Paginator {
    /// Returns a paginator for pages that contain a cursor for the next page.
    ///
    /// A cursor is a string, or any other value that the server provides and accepts.
    ///
    /// ```swift
    /// let brewers = Paginator.cursor { cursor in
    ///     service.GET("/brewers")
    ///         .setQueryParameters(cursor.map { ["cursor": $0] } ?? [:])
    ///         .decode(BrewersResponse.self)
    ///         .map { Page($0.brewers, next: $0.nextCursor) }
    /// }
    /// ```
    /// - Parameters:
    ///   - maximumEmptyPages: The maximum number of consecutive empty pages, not counting the last
    ///     page. Defaults to 10.
    ///   - page: Returns a task for the page with a cursor, which is `nil` for the first page. If
    ///     it throws an error, ``moveNext()`` throws the same error, or `URLError.cancelled` for a
    ///     `CancellationError`. A page is the last one if its next cursor is `nil` or an empty
    ///     string.
    public static func cursor(
        maximumEmptyPages: Int = 10,
        page: @escaping @Sendable (_ cursor: Position?) async throws -> TypedTask<Page<Item, Position>>
    ) -> Paginator {
        Paginator(maximumEmptyPages: maximumEmptyPages) { position in
            var found = try await Self.page(try await page(position))
            if let cursor = found.next as? String, cursor.isEmpty { found.next = nil }
            return found
        }
    }

    /// Returns the page that a task delivers, together with its response.
    static func page(_ task: TypedTask<Page<Item, Position>>) async throws -> Page<Item, Position> {
        var page = try await task.value
        if page.response == nil { page.response = try? await task.response }  // there is none if an error was replaced
        return page
    }
}
