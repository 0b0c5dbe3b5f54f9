extension Paginator {
    /// Returns the remaining pages as an asynchronous sequence.
    ///
    /// An iteration advances the paginator: a later iteration continues where the previous one
    /// stopped or, after an error, with the same page.
    ///
    /// - Parameter prefetch: Whether the next page is requested while the current one is in use. At
    ///   most one page is prefetched. It is cancelled when the iteration ends; no items are lost,
    ///   because the position does not advance. Defaults to `false`.
    public func pages(prefetch: Bool = false) -> PageSequence<Item, Position> {
        PageSequence(paginator: self, prefetches: prefetch)
    }

    /// Returns the remaining items as an asynchronous sequence; see ``pages(prefetch:)``.
    ///
    /// If an iteration stops within a page, the rest of that page is not requested again.
    public func items(prefetch: Bool = false) -> ItemSequence<Item, Position> {
        ItemSequence(pages: pages(prefetch: prefetch))
    }
}

/// An asynchronous sequence of the pages of a ``Paginator``.
public struct PageSequence<Item: Sendable, Position: Hashable & Codable & Sendable>: AsyncSequence, Sendable {
    let paginator: Paginator<Item, Position>
    let prefetches: Bool

    /// Returns an iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(paginator: paginator, ahead: prefetches ? Ahead(paginator) : nil)
    }

    /// An iterator that advances the paginator.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let paginator: Paginator<Item, Position>
        let ahead: Ahead?

        /// Returns the next page; see ``Paginator/moveNext()``.
        public func next() async throws -> Page<Item, Position>? {
            let page = try await paginator.moveNext()
            if page != nil { ahead?.begin() }
            return page
        }
    }

    /// The prefetch of an iteration, cancelled when the iterator is deallocated.
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

/// An asynchronous sequence of the items of a ``Paginator``.
public struct ItemSequence<Item: Sendable, Position: Hashable & Codable & Sendable>: AsyncSequence, Sendable {
    let pages: PageSequence<Item, Position>

    /// Returns an iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(pages: pages.makeAsyncIterator())
    }

    /// An iterator that advances the paginator after the last item of a page.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let pages: PageSequence<Item, Position>.Iterator
        private var rest: ArraySlice<Item> = []

        init(pages: PageSequence<Item, Position>.Iterator) {
            self.pages = pages
        }

        /// Returns the next item; see ``Paginator/moveNext()``.
        public mutating func next() async throws -> Item? {
            while rest.isEmpty {
                guard let page = try await pages.next() else { return nil }
                rest = page.items[...]
            }
            return rest.popFirst()
        }
    }
}
