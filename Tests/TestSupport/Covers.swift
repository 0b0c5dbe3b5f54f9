package import Testing

/// The ids of the promises in `Tests/Catalogue.md` that a test or a suite covers.
///
/// A failure of the test names them.
package struct Covers: TestTrait, SuiteTrait {
    package let ids: [String]

    package var comments: [Comment] { ids.map { Comment(rawValue: $0) } }
}

extension Trait where Self == Covers {
    /// Names the promises of `Tests/Catalogue.md` that the test covers.
    package static func covers(_ ids: String...) -> Covers { Covers(ids: ids) }
}
