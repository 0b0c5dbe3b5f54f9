import Foundation
public import Testing
import WebServiceCore
public import WebServiceFaults
public import WebServiceMocking

extension FaultExplorer {
    /// Explores code within a test, and records an issue for each failure.
    ///
    /// ```swift
    /// @Test func checkout() async throws {
    ///     await FaultExplorer { mock in
    ///         mock.on(.POST, "/orders", .json(order, status: 201))
    ///     }.test { mock in
    ///         try await Shop(mock.service).checkout()
    ///     } check: { run in
    ///         #expect(run.effects(.POST, "/orders") <= 1, "ordered twice")
    ///     }
    /// }
    /// ```
    /// The issues that `#expect`, `#require` and `Issue.record` report in `check` are not recorded
    /// for each run. The first issue of a run becomes the message of the run's failure. Failures
    /// with the same comment, or without a comment at the same line, are recorded as one issue,
    /// with the first plan. A problem that prevents a complete exploration is also recorded as
    /// an issue. The report is attached to the test.
    ///
    /// - Parameters:
    ///   - sourceLocation: The source location of the issues.
    ///   - body: The code to explore, as in `FaultExplorer.explore(_:check:)`.
    ///   - check: A closure that checks what must hold after each run.
    /// - Returns: The report.
    @discardableResult
    public func test<Output: Sendable>(
        sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (_ mock: MockService) async throws -> Output,
        check: @escaping @Sendable (_ run: FaultRun<Model, Output>) async throws -> Void
    ) async -> FaultReport {
        let report = await explore(
            fileID: sourceLocation.fileID, line: sourceLocation.line, body,
            check: { run in
                let issues = IssueCollector()
                do { try await issues.collect { try await check(run) } } catch {
                    throw issues.first ?? error
                }
                if let issue = issues.first { throw issue }
            })
        Attachment.record(report.description, named: "faults.txt", sourceLocation: sourceLocation)
        for text in report.failures.map(\.description) + report.problems {
            Issue.record(Comment(rawValue: text), sourceLocation: sourceLocation)
        }
        return report
    }
}

/// A collector of the issues of a check, which are not recorded.
private final class IssueCollector: Sendable {
    private let violations = Mutex<[FaultViolation]>([])

    var first: FaultViolation? { violations.withLock { $0.first } }

    /// Runs a closure and collects its issues. Outside a test, issues are not collected.
    func collect(_ body: @escaping @Sendable () async throws -> Void) async throws {
        guard let test = Test.current else { return try await body() }
        let trait: IssueHandlingTrait = .compactMapIssues { issue in
            let comment = issue.comments.first?.rawValue
            let place = issue.sourceLocation.map { " (\($0.fileName):\($0.line))" } ?? ""
            // The text of an expectation contains its values, which differ between runs.
            let violation = FaultViolation("\(comment ?? "\(issue.kind)")\(place)", key: comment ?? place)
            self.violations.withLock { $0.append(violation) }
            return nil
        }
        try await trait.provideScope(for: test, testCase: Test.Case.current, performing: body)
    }
}
