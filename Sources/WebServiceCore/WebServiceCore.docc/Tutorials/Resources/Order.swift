/// An order of beer.
struct Order: Codable, Hashable, Sendable {
    /// The identifier of the brewer.
    var brewer: Int
    /// The number of kegs.
    var kegs: Int
}
