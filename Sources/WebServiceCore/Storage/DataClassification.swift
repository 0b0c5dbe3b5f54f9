/// A kind of data, for storing and deleting responses of different kinds separately.
///
/// The set of classifications is open:
/// ```swift
/// extension DataClassification {
///     static let user = DataClassification("user")
/// }
/// ```
public struct DataClassification: Sendable, Hashable, CustomStringConvertible {
    /// The name of the classification.
    public let description: String

    /// Creates a custom classification. Two classifications are equal if their names are equal.
    public init(_ name: String) {
        description = name
    }

    /// The classification of requests that specify no other.
    public static let `default` = DataClassification("default")
}
