// Members that users of other frameworks look for, each with a message that names the replacement.

extension WebService {
    /// Unavailable: a logger is an observer.
    @available(*, unavailable, message: "add .log { … } to observers")
    public var logger: (any Observer)? {
        get { nil }
        set {}
    }
}
