public import WebServiceCore

/// A page of a longer list.
public struct Page<Item: Sendable, Position: Hashable & Codable & Sendable>: Sendable {
    /// The items, in order.
    public var items: [Item]

    /// The position of the next page; `nil` for the last page.
    public var next: Position?

    /// The number of items in the whole list, if known; a negative number counts as unknown.
    public var total: Int?

    /// The response that contained the page; `nil` if there was none.
    public var response: Response?

    /// The position of the page itself, so that a link back to the first page is detected as a
    /// repetition.
    var address: Position?

    /// Creates a page. Without a next position, it is the last one.
    public init(_ items: [Item], next: Position? = nil, total: Int? = nil, response: Response? = nil) {
        self.items = items
        self.next = next
        self.total = total
        self.response = response
    }
}

extension Page: RedactedReflectable {
    /// A description that is safe to log: the number of items and whether more follow.
    public var description: String { "\(items.count) items, \(next == nil ? "last page" : "more follow")" }

    /// A mirror with the items and whether more follow, but without positions, which may be secret.
    public var customMirror: Mirror {
        Mirror(self, children: ["items": items, "isLast": next == nil], displayStyle: .struct)
    }
}
