import Testing

/// Waits until a condition holds; after two minutes the wait ends with an issue. The condition is
/// tested after each of 20 yields and then every millisecond, so that tests that wait leave the
/// processors to others.
func eventually(
    _ what: Comment = "the condition holds in time", sourceLocation: SourceLocation = #_sourceLocation,
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
