/// A piece of a longer list.
public struct Page<Item: Sendable, Position: Hashable & Codable & Sendable>: Sendable {
    /// The items, in order.
    public var items: [Item]

    /// Where the next page begins; `nil` when this is the last one.
    public var next: Position?

    /// How many items the whole list has, where the server says it; a negative number counts as unknown.
    public var total: Int?

    /// The answer that the page was made of; `nil` when there was none.
    public var response: Response?

    /// Where a first page lies, so that a server that leads back to it is noticed at once.
    var address: Position?

    /// Makes a page; what is left out is unknown, and without a next position it is the last one.
    public init(_ items: [Item], next: Position? = nil, total: Int? = nil, response: Response? = nil) {
        self.items = items
        self.next = next
        self.total = total
        self.response = response
    }
}

extension Page: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How many items there are and whether more follow: safe to log.
    public var description: String { "\(items.count) items, \(next == nil ? "the last ones" : "more follow")" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What `dump` shows: the items and whether more follow. A position may be a secret.
    public var customMirror: Mirror { Mirror(self, children: ["items": items, "isLast": next == nil], displayStyle: .struct) }
}
