/// The properties of an exchange that determine whether it may share the response to another one.
extension Next {
    /// The interceptors that follow in the list.
    package var following: ArraySlice<any Interceptor> { interceptors[position...] }

    /// The configuration of the service when the exchange began.
    package var configuration: any AnyObject & Sendable { exchange.setup }

    /// Whether a delegate may replace the request.
    package var hasDelegate: Bool { exchange.setup.delegate != nil }

    /// Waits while the task is suspended.
    ///
    /// - Throws: `URLError.cancelled`.
    package func permission() async throws { try await task.permission() }

    /// Adds the events of another exchange to the timeline.
    package func add(_ log: ExchangeLog.Record) { task.add(log) }
}
