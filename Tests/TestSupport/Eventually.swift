package import Testing

/// Waits until a condition is true, and records an issue after two minutes.
package func eventually(
    _ what: Comment = "the condition becomes true in time", sourceLocation: SourceLocation = #_sourceLocation,
    _ holds: () async throws -> Bool
) async rethrows {
    if try await !becomesTrue(holds) { Issue.record(what, sourceLocation: sourceLocation) }
}

/// Waits until a condition is true, for at most two minutes. The condition is evaluated after each
/// of 20 yields and then every millisecond, so that waiting tests leave the processors to other
/// tests.
package func becomesTrue(_ holds: () async throws -> Bool) async rethrows -> Bool {
    let end = ContinuousClock.now + .seconds(120)
    var rounds = 0
    while try await !holds() {
        guard ContinuousClock.now < end else { return false }
        rounds += 1
        if rounds <= 20 || Task.isCancelled { await Task.yield() } else { try? await Task.sleep(for: .milliseconds(1)) }
    }
    return true
}
