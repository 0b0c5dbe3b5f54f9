/// An order of beer.
public struct Order: Codable, Hashable, Sendable {
    /// The identifier of the brewer.
    public var brewer: Int
    /// The number of kegs.
    public var kegs: Int

    /// Creates an order.
    public init(brewer: Int, kegs: Int) {
        self.brewer = brewer
        self.kegs = kegs
    }
}
