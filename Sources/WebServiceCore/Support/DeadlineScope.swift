/// The deadline of a scope of Swift code, which applies to the tasks that are resumed in it.
package final class DeadlineScope: Sendable {
    /// The scope of the current Swift task; `nil` for none.
    @TaskLocal package static var current: DeadlineScope?

    private let clock: TaskClock
    private let end: UInt64

    /// Creates a scope that ends after a duration, or at the end of the current one if that is
    /// earlier.
    init(_ duration: Duration, _ clock: TaskClock) {
        let rest = Self.current.map { min($0.rest, duration) } ?? duration
        self.clock = clock
        end = clock.now.addingSaturated(rest)
    }

    /// The duration until the end; zero after it.
    var rest: Duration {
        let now = clock.now
        return .nanoseconds(Int64(clamping: end - min(end, now)))
    }
}
