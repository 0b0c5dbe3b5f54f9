/// The reason why a closed session refuses a request.
package struct SessionClosure: Refusal {
    /// The instant of the system clock at which the session cancelled its requests; `nil` if it did
    /// not.
    ///
    /// A task that was resumed before that instant ends with `URLError.cancelled`, even if its
    /// request reaches the session later. The system clock is used because all instants of a test
    /// clock could be equal.
    let cancellation: UInt64?

    package init(cancellation: UInt64?) { self.cancellation = cancellation }
}
