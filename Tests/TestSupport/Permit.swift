import Dispatch
import Foundation
package import Testing
import WebServiceCore

/// Limits how many tests run at once, and the time of each.
///
/// The tests of all targets run in one process, and the testing library starts all of them at
/// once. A test with this trait waits for a permit first, and its time limit begins when it has
/// one. Required on every suite that is not nested; the trait of a test replaces that of its suite.
package struct Permit: SuiteTrait, TestTrait, TestScoping {
    let isExclusive: Bool
    let minutes: Int

    package var isRecursive: Bool { true }

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> Permit? { testCase == nil ? nil : self }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // The traits of the suite are first, and provide the outer scope.
        guard Self.cleanups == nil, let permit = test.traits.lazy.compactMap({ $0 as? Permit }).last else {
            return try await function()
        }
        _ = Self.reportsNoUnsentTasks
        let count = permit.isExclusive ? Permits.shared.count : 1
        await Permits.shared.take(count)
        let start = ContinuousClock.now
        defer {
            Permits.shared.give(count)
            Self.record(start.duration(to: .now), test)
        }
        let cleanups = Collected<@Sendable () -> Void>()
        defer { for cleanup in cleanups.values.reversed() { cleanup() } }
        try await Self.$cleanups.withValue(cleanups) { try await permit.limited(test.name, function) }
    }

    /// Many tests create tasks only to look at them, so the package's tests report none of them.
    private static let reportsNoUnsentTasks: Void = { WebService.reportsUnsentTasks = false }()

    /// What runs at the end of the test; `nil` outside of a test with a permit.
    @TaskLocal private static var cleanups: Collected<@Sendable () -> Void>?

    /// Calls a closure at the end of the test, in reverse order.
    package static func atEnd(_ cleanup: @escaping @Sendable () -> Void) { cleanups?.add(cleanup) }

    /// The file that receives the milliseconds and the name of each test; for `scripts/soak`.
    private static let times = ProcessInfo.processInfo.environment["WEBSERVICE_TEST_TIMES"]
        .flatMap { FileHandle(forWritingAtPath: $0) }

    private static func record(_ duration: Duration, _ test: Test) {
        let line = "\(Int(duration / .milliseconds(1))) \(test.id)\n"
        try? times?.write(contentsOf: Data(line.utf8))
    }

    /// The time limit, which is longer at full length and under a sanitizer.
    private var limit: Duration { .seconds(60 * minutes * (isSanitized ? 5 : isThorough ? 3 : 1)) }

    /// Runs a test. After the time limit, its task is cancelled. A test that does not end then ends
    /// the process, so that a run always ends.
    private func limited(_ name: String, _ function: @Sendable () async throws -> Void) async throws {
        let end = DispatchWorkItem {
            FileHandle.standardError.write(Data("The test \(name) does not end. The process exits.\n".utf8))
            exit(EXIT_FAILURE)
        }
        DispatchQueue(label: "Permit").asyncAfter(
            deadline: .now() + .seconds(Int(limit.components.seconds) + 30), execute: end)
        defer { end.cancel() }
        try await withoutActuallyEscaping(function) { function in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await Task.sleep(for: limit)
                    Issue.record("The test exceeds its time limit of \(limit).")
                }
                group.addTask { try await function() }
                defer { group.cancelAll() }
                try await group.next()
            }
        }
    }
}

extension Trait where Self == Permit {
    /// Runs the test beside as many others as there are processors, for at most two minutes.
    package static var permit: Permit { permit(minutes: 2) }

    /// Runs the test beside as many others as there are processors.
    package static func permit(minutes: Int) -> Permit { Permit(isExclusive: false, minutes: minutes) }

    /// Runs the test while no other test runs, for at most two minutes. For tests that block
    /// shared threads, measure time or count resources of the process.
    package static var exclusive: Permit { exclusive(minutes: 2) }

    /// Runs the test while no other test runs.
    package static func exclusive(minutes: Int) -> Permit { Permit(isExclusive: true, minutes: minutes) }
}

/// The permits of the process. A test that takes all of them runs when no other test waits.
private final class Permits: Sendable {
    /// Many tests wait for sockets and processes, so one more of them runs than there are processors.
    static let shared = Permits(max(2, ProcessInfo.processInfo.activeProcessorCount) + 1)

    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
        var waitingForAll: [CheckedContinuation<Void, Never>] = []
    }

    let count: Int
    private let state: Mutex<State>

    init(_ count: Int) {
        self.count = count
        state = Mutex(State(free: count))
    }

    func take(_ count: Int) async {
        await withCheckedContinuation { continuation in
            state.withLock { state in
                if count == 1 { state.waiting.append(continuation) } else { state.waitingForAll.append(continuation) }
            }
            give(0)
        }
    }

    func give(_ count: Int) {
        let ready = state.withLock { state in
            state.free += count
            var ready: [CheckedContinuation<Void, Never>] = []
            while state.free > 0, let next = state.waiting.popLast() {
                state.free -= 1
                ready.append(next)
            }
            if state.free == self.count, let next = state.waitingForAll.popLast() {
                state.free = 0
                ready.append(next)
            }
            return ready
        }
        for continuation in ready { continuation.resume() }
    }
}
