// Members that users of other frameworks look for, each with a message that names the replacement.

extension WebService {
    /// Unavailable: a logger is a delegate.
    @available(*, unavailable, message: "set passthroughDelegate to a RequestLogger, and retain the logger")
    public var logger: RequestLogger? {
        get { nil }
        set {}
    }
}
