/// A brewer.
struct Brewer: Codable, Hashable, Sendable {
    /// The identifier, which the server assigns.
    var id: Int
    /// The name.
    var name: String
    /// The state, in lower case.
    var state: String
}
