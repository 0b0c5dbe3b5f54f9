/// What kind of data an answer is, so that kinds can be kept and deleted apart: an open set.
///
/// ```swift
/// extension DataClassification {
///     static let user = DataClassification("user")
/// }
/// ```
public struct DataClassification: Sendable, Hashable, CustomStringConvertible {
    /// The name of the classification.
    public let description: String

    /// Makes a classification of your own; two are equal when their names are.
    public init(_ name: String) {
        description = name
    }

    /// What requests have that say nothing else.
    public static let `default` = DataClassification("default")
}
