/// A brewer.
public struct Brewer: Codable, Hashable, Sendable {
    /// The identifier, which the server assigns.
    public var id: Int
    /// The name.
    public var name: String
    /// The state, in lower case.
    public var state: String

    /// Creates a brewer.
    public init(id: Int, name: String, state: String) {
        self.id = id
        self.name = name
        self.state = state
    }
}
