package import Testing

/// Waits until a condition is true, and records an issue after two minutes. The condition is
/// evaluated after each of 20 yields and then every millisecond, so that waiting tests leave the
/// processors to other tests.
package func eventually(
    _ what: Comment = "the condition becomes true in time", sourceLocation: SourceLocation = #_sourceLocation,
    _ holds: () -> Bool
) async {
    let end = ContinuousClock.now + .seconds(120)
    var rounds = 0
    while !holds() {
        guard ContinuousClock.now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            return
        }
        rounds += 1
        if rounds <= 20 || Task.isCancelled { await Task.yield() } else { try? await Task.sleep(for: .milliseconds(1)) }
    }
}
