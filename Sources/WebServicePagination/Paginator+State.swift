public import WebServiceCore

extension Paginator {
    /// The progress of a ``Paginator``, which can be saved and restored.
    ///
    /// A state can be encoded, for example as JSON, and restored with `reset(to:)`. It consists of
    /// the next position and at most a few kilobytes of other data, regardless of how many pages
    /// were visited.
    ///
    /// A state contains the next position in plain text, although some servers use secret cursors
    /// and links.
    public struct State: Codable, Hashable, Sendable {
        /// The position of the next page. It is `nil` at the beginning, and also at the end if it
        /// is unknown.
        public internal(set) var position: Position?

        /// Whether there are no more pages.
        public internal(set) var isAtEnd = false

        /// The number of items since the beginning or the last reset to a position.
        public internal(set) var itemCount = 0

        /// The number of items to request per page; `nil` if the server decides.
        public internal(set) var itemsPerPage: Int?

        /// The number of items in the whole list; `nil` if the server has not reported it.
        public internal(set) var total: Int?

        /// The number of consecutive empty pages.
        var emptyPages = 0

        /// The visited positions. The value is `nil` at the beginning, and always for offsets and
        /// page numbers, which only grow.
        private var trail: VisitedPositions?

        init(at position: Position? = nil, itemsPerPage: Int?) {
            self.position = position
            self.itemsPerPage = itemsPerPage
        }

        /// Whether the next page has been visited before.
        var isRepeated: Bool { position.map { trail?.contains($0) == true } ?? false }

        /// Advances past a page.
        ///
        /// - Parameters:
        ///   - tracks: Whether the server identifies the next page. If so, positions are recorded
        ///     to detect repetitions, and a total does not end the list.
        ///   - maximumEmptyPages: The maximum number of consecutive empty pages, not counting the
        ///     last page.
        mutating func advance(
            over page: Page<some Sendable, Position>, tracks: Bool, maximumEmptyPages: Int
        ) throws(WebServiceError) {
            if !page.items.isEmpty || page.next == nil {
                emptyPages = 0
            } else {
                guard emptyPages < maximumEmptyPages else {
                    throw WebServiceError(
                        .tooManyEmptyPages,
                        "the server sent more than \(maximumEmptyPages) consecutive empty pages; increase "
                            + "maximumEmptyPages",
                        response: page.response)
                }
                emptyPages += 1
            }
            if tracks, let visited = position ?? page.address {
                var trail = trail ?? VisitedPositions()
                trail.insert(visited)
                self.trail = trail
            }
            let (count, overflows) = itemCount.addingReportingOverflow(page.items.count)
            itemCount = overflows ? .max : count
            if let all = page.total { total = all >= 0 ? all : nil }
            isAtEnd = page.next == nil || !tracks && total.map { itemCount >= $0 } ?? false
            position = page.next
        }
    }
}

extension Paginator.State: RedactedReflectable {
    /// A description that is safe to log: the number of items, and whether more pages follow.
    public var description: String { "\(itemCount) items, \(isAtEnd ? "at the end" : "more follow")" }
}

extension WebServiceError.Code {
    /// The next page was already visited, so the list would never end.
    public static let repeatedCursor = WebServiceError.Code("repeatedCursor")
    /// The server sent more consecutive empty pages than the ``Paginator`` allows.
    public static let tooManyEmptyPages = WebServiceError.Code("tooManyEmptyPages")
    /// An offset or a page number exceeds the range of `Int`.
    public static let pageOutOfRange = WebServiceError.Code("pageOutOfRange")
    /// A `Link` to the next page must not be followed, or a response cannot have such a link.
    public static let linkRefused = WebServiceError.Code("linkRefused")
}
