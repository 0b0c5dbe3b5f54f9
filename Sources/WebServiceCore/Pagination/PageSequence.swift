extension Paginator {
    /// The pages from here to the end, for `for try await`.
    ///
    /// An iteration moves the paginator: another one goes on where it has stopped, after an error with the same page.
    ///
    /// - Parameter prefetch: Whether the next page is asked for while the one before is used: never more than this one, cancelled when the iteration
    ///   ends, and not lost then, because the position stays before it.
    public func pages(prefetch: Bool = false) -> PageSequence<Item, Position> {
        PageSequence(paginator: self, prefetches: prefetch)
    }

    /// The items from here to the end, for `for try await`; see ``pages(prefetch:)``. Where an iteration stops within a page, the rest of the page is
    /// not asked for again.
    public func items(prefetch: Bool = false) -> ItemSequence<Item, Position> {
        ItemSequence(pages: pages(prefetch: prefetch))
    }
}

/// Pages of a ``Paginator``, one after another.
public struct PageSequence<Item: Sendable, Position: Hashable & Codable & Sendable>: AsyncSequence, Sendable {
    let paginator: Paginator<Item, Position>
    let prefetches: Bool

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator {
        Iterator(paginator: paginator, ahead: prefetches ? Ahead(paginator) : nil)
    }

    /// Moves the paginator.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let paginator: Paginator<Item, Position>
        let ahead: Ahead?

        /// The next page; see ``Paginator/moveNext()``.
        public func next() async throws -> Page<Item, Position>? {
            let page = try await paginator.moveNext()
            if page != nil { ahead?.begin() }
            return page
        }
    }

    /// The page ahead of an iteration, cancelled when that ends.
    final class Ahead: Sendable {
        private let paginator: Paginator<Item, Position>

        init(_ paginator: Paginator<Item, Position>) {
            self.paginator = paginator
        }

        deinit {
            paginator.cancelPrefetch()
        }

        func begin() {
            paginator.prefetch()
        }
    }
}

/// Items of the pages of a ``Paginator``, one after another.
public struct ItemSequence<Item: Sendable, Position: Hashable & Codable & Sendable>: AsyncSequence, Sendable {
    let pages: PageSequence<Item, Position>

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator {
        Iterator(pages: pages.makeAsyncIterator())
    }

    /// Moves the paginator when the items of a page are used up.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let pages: PageSequence<Item, Position>.Iterator
        private var rest: ArraySlice<Item> = []

        init(pages: PageSequence<Item, Position>.Iterator) {
            self.pages = pages
        }

        /// The next item; see ``Paginator/moveNext()``.
        public mutating func next() async throws -> Item? {
            while rest.isEmpty {
                guard let page = try await pages.next() else { return nil }
                rest = page.items[...]
            }
            return rest.popFirst()
        }
    }
}
