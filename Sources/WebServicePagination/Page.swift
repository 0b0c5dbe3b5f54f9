public import WebServiceCore

/// A page of a longer list.
public struct Page<Item: Sendable, Position: Hashable & Codable & Sendable>: Sendable {
    /// The items, in order.
    public var items: [Item]

    /// The position of the next page; `nil` for the last page.
    public var next: Position?

    /// The number of items in the whole list; `nil` if it is unknown. A negative number counts as
    /// unknown.
    public var total: Int?

    /// The response that contained the page; `nil` if there was none.
    public var response: Response?

    /// The position of this page. It is used to detect a link back to the first page as a
    /// repetition.
    var address: Position?

    /// Creates a page. If there is no next position, it is the last page.
    public init(_ items: [Item], next: Position? = nil, total: Int? = nil, response: Response? = nil) {
        self.items = items
        self.next = next
        self.total = total
        self.response = response
    }
}

extension Page: RedactedReflectable {
    /// A description that is safe to log: the number of items, and whether more pages follow.
    public var description: String { "\(items.count) items, \(next == nil ? "last page" : "more follow")" }

    /// A mirror with the items and whether this is the last page. It omits positions, which may be
    /// secret.
    public var customMirror: Mirror {
        Mirror(self, children: ["items": items, "isLast": next == nil], displayStyle: .struct)
    }
}
