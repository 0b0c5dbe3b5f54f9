// Members that users of other frameworks look for, each with a message that names the replacement.

extension Response {
    /// Unavailable: use ``status``.
    @available(*, unavailable, renamed: "status")
    public var statusCode: Int { status }
}
