import Testing

/// The ids of the promises in `Tests/Catalogue.md` that a test or a suite covers.
///
/// A failure of the test names them.
struct Covers: TestTrait, SuiteTrait {
    let ids: [String]

    var comments: [Comment] { ids.map { Comment(rawValue: $0) } }
}

extension Trait where Self == Covers {
    /// Names the promises of `Tests/Catalogue.md` that the test covers.
    static func covers(_ ids: String...) -> Covers { Covers(ids: ids) }
}
