import WebServiceMocking

extension MockService {
    /// Runs a test, and reports the violations after it ends.
    ///
    /// If the test throws an error, only requests that match no stub are reported.
    ///
    /// - Parameter place: The module and file, the path, the line and the column of the test.
    func verifying<Value>(
        inOrder: Bool, at place: (fileID: String, filePath: String, line: Int, column: Int),
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value,
        report: (VerificationError.Violation) -> Void
    ) async rethrows -> Value {
        func violations() -> [VerificationError.Violation] {
            do throws(VerificationError) {
                try verify(
                    inOrder: inOrder, fileID: place.fileID, filePath: place.filePath, line: place.line,
                    column: place.column)
                return []
            } catch {
                return error.violations
            }
        }
        do {
            let value = try await body()
            violations().forEach(report)
            return value
        } catch {
            violations().filter { $0.kind == .unmatchedRequest }.forEach(report)
            throw error
        }
    }
}
