/// The problem details of an error response (RFC 9457).
public struct BreweryProblem: Error, Decodable, Hashable, Sendable {
    /// A summary.
    public var title: String
    /// An explanation; `nil` if there is none.
    public var detail: String?
}
