/// How far a ``Paginator`` has come: a value to save, as JSON for example, and to go on from with
/// ``Paginator/reset(to:)-(PaginatorState<Position>)``.
///
/// It holds positions in clear: cursors and links of some servers are secrets.
public struct PaginatorState<Position: Hashable & Codable & Sendable>: Codable, Hashable, Sendable {
    /// Where the next page begins; `nil` for the beginning of the list, and at the end where no position is known.
    public internal(set) var position: Position?

    /// Whether there are no more pages.
    public internal(set) var isAtEnd = false

    /// How many items there were since the beginning, or since the last reset.
    public internal(set) var itemCount = 0

    /// How many items a page is asked for; `nil` where the server decides.
    public internal(set) var itemsPerPage: Int?

    /// How many items the whole list has, where the server has said it.
    public internal(set) var total: Int?

    /// How many empty pages there were in a row.
    var emptyPages = 0

    /// Where there have been pages already; stays empty where positions only grow.
    var visited: Set<Position> = []

    init(at position: Position? = nil, itemsPerPage: Int?) {
        self.position = position
        self.itemsPerPage = itemsPerPage
    }

    /// Whether the next page was there already.
    var isRepeated: Bool { position.map(visited.contains) ?? false }

    /// Goes behind a page.
    ///
    /// - Parameters:
    ///   - tracks: Whether the server names the next page: its position is remembered, to notice when it comes again, and a total does not end the list.
    ///   - maximumEmptyPages: How many pages in a row may be empty while others follow.
    mutating func advance(
        over page: Page<some Sendable, Position>, tracks: Bool, maximumEmptyPages: Int
    ) throws(WebServiceError) {
        if !page.items.isEmpty || page.next == nil {
            emptyPages = 0
        } else {
            guard emptyPages < maximumEmptyPages else {
                throw WebServiceError(
                    .tooManyEmptyPages, "more than \(maximumEmptyPages) empty pages in a row", response: page.response?.urlResponse,
                    body: page.response?.data)
            }
            emptyPages += 1
        }
        if tracks { visited.formUnion([position ?? page.address].compactMap(\.self)) }
        let (count, overflows) = itemCount.addingReportingOverflow(page.items.count)
        itemCount = overflows ? .max : count
        if let all = page.total { total = all >= 0 ? all : nil }
        isAtEnd = page.next == nil || !tracks && total.map { itemCount >= $0 } ?? false
        position = page.next
    }
}

extension PaginatorState: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How many items there were and whether more follow: safe to log.
    public var description: String { "\(itemCount) items, \(isAtEnd ? "at the end" : "more follow")" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What `dump` shows: the same as ``description``, because positions may be secrets.
    public var customMirror: Mirror { Mirror(self, children: ["state": description], displayStyle: .struct) }
}

extension WebServiceError.Code {
    /// A page names a next one that was there already, so that the list would never end.
    public static let repeatedCursor = WebServiceError.Code("repeatedCursor")
    /// More empty pages in a row than a ``Paginator`` goes over.
    public static let tooManyEmptyPages = WebServiceError.Code("tooManyEmptyPages")
    /// An offset or a page number that is greater than `Int` can hold.
    public static let pageOutOfRange = WebServiceError.Code("pageOutOfRange")
    /// A `Link` to a next page that must not be followed, or an answer that can have none.
    public static let linkRefused = WebServiceError.Code("linkRefused")
}
