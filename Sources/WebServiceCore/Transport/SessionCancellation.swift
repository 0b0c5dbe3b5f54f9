/// The reason why a closed session refuses a request: the session cancelled its requests at an
/// instant of the system clock.
///
/// A task that was resumed before that instant ends with `URLError.cancelled`, even if its request
/// reaches the session later. The system clock is used because all instants of a test clock could
/// be equal.
package struct SessionCancellation: Error {
    let instant: UInt64

    package init(instant: UInt64) { self.instant = instant }
}
