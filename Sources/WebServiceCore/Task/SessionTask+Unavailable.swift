// Members that users of other frameworks look for, each with a message that names the replacement.

extension SessionTask {
    /// Unavailable: a typed task has this method.
    @available(*, unavailable, message: "create a typed task first, as in data().validate(statuses:)")
    public func validate(statuses: some Sequence<Int>) -> Self { self }
}
