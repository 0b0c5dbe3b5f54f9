import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

/// What a response to a request for a file or a part is, in a table.
@Suite("Combinations of range responses", .permit)
struct RangeCombinationTests {
    /// The combinations for which the implementation decides otherwise, and why.
    private static let exceptions: [String: RangeCombination.Outcome] = [
        // The session has decoded the body, so its length is not that of the field. Real sessions
        // verify the framing.
        "r030-whole-gzip-truncated": .completeFile,
        // Without a strong validator, with no bytes or with too many, the whole file is requested,
        // so that a part or status 416 is an error.
        "r081-cont-no-validators": .error, "r082-cont-no-validators-no-length": .error,
        "r083-cont-new-etag-none-known": .error, "r165-cont-have0-206": .error, "r167-cont-have0-416-zero": .error,
        "r172-cont-416-equal-no-validator": .error, "r176-cont-416-smaller": .error,
        "r188-cont-416-have-too-much": .error,
        // A part with status 200 is used if everything else agrees.
        "r098-cont-200-with-cr": .slice, "r221-piece-200-with-cr": .slice,
        // The bytes that both contain are compared, and the rest is appended.
        "r106-cont-from-zero-206": .slice,
        // The part is not used, and the whole file is requested.
        "r157-cont-two-cl-differ": .startOver,
    ]

    @Test(
        "A response is a part, the file, the end, a reason to start over or an error",
        arguments: [("range-responses.json", 100), ("range-responses-independent.json", 256)])
    func table(name: String, minimum: Int) async throws {
        let combinations = try RangeCombination.all(name)
        #expect(combinations.count >= minimum)
        var wrong: [String] = []
        for combination in combinations {
            let outcome = try await combination.outcome()
            let exception = Self.exceptions[combination.id]
            let isCorrect = exception.map { $0 == outcome } ?? outcome.map(combination.accepts) ?? false
            if !isCorrect {
                wrong.append("\(combination.id): \(outcome?.rawValue ?? "wrong bytes"); \(combination.why)")
            }
        }
        #expect(wrong == [])
    }
}
