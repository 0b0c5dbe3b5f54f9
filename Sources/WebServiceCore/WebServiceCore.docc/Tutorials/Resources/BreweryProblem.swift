/// The problem details of an error response (RFC 9457).
struct BreweryProblem: Error, Decodable, Hashable, Sendable {
    /// A summary.
    var title: String
    /// An explanation; `nil` if there is none.
    var detail: String?
}
