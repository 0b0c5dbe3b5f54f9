import WebServiceCore

extension Paginator {
    /// Returns the remaining pages as an asynchronous sequence.
    ///
    /// An iteration advances the paginator. A later iteration continues where the previous one
    /// stopped. After an error, it continues with the same page.
    ///
    /// - Parameter prefetch: Whether the next page is requested while the current page is in use.
    ///   At most one page is prefetched. The prefetch is cancelled when the iteration ends. No
    ///   items are lost, because the position does not advance. Defaults to `false`.
    public func pages(prefetch: Bool = false) -> PageSequence {
        PageSequence(paginator: self, prefetches: prefetch)
    }

    /// Returns the remaining items as an asynchronous sequence; see ``pages(prefetch:)``.
    ///
    /// If an iteration stops within a page, the rest of the page is not requested again.
    public func items(prefetch: Bool = false) -> ItemSequence {
        ItemSequence(pages: pages(prefetch: prefetch))
    }

    /// An asynchronous sequence of pages.
    public struct PageSequence: AsyncSequence, Sendable {
        let paginator: Paginator
        let prefetches: Bool

        /// Returns an iterator that advances the paginator; see ``Paginator/moveNext()``.
        public func makeAsyncIterator() -> some AsyncIteratorProtocol<Page<Item, Position>, any Error> & Sendable {
            iterator()
        }

        func iterator() -> PageIterator {
            PageIterator(paginator: paginator, prefetch: prefetches ? Prefetch(paginator: paginator) : nil)
        }
    }

    /// An asynchronous sequence of items.
    public struct ItemSequence: AsyncSequence, Sendable {
        let pages: PageSequence

        /// Returns an iterator that advances the paginator after the last item of each page; see
        /// ``Paginator/moveNext()``.
        public func makeAsyncIterator() -> some AsyncIteratorProtocol<Item, any Error> & Sendable {
            ItemIterator(pages: pages.iterator())
        }
    }

    struct PageIterator: AsyncIteratorProtocol, Sendable {
        let paginator: Paginator
        fileprivate let prefetch: Prefetch?

        func next() async throws -> Page<Item, Position>? {
            let page = try await paginator.moveNext()
            if page != nil { prefetch?.begin() }
            return page
        }
    }

    private struct ItemIterator: AsyncIteratorProtocol, Sendable {
        let pages: PageIterator
        var rest: ArraySlice<Item> = []

        mutating func next() async throws -> Item? {
            while rest.isEmpty {
                guard let page = try await pages.next() else { return nil }
                rest = page.items[...]
            }
            return rest.popFirst()
        }
    }

    /// The prefetch of an iteration. It is cancelled when the iterator is deallocated.
    fileprivate final class Prefetch: Sendable {
        private let paginator: Paginator

        init(paginator: Paginator) {
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
