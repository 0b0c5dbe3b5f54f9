extension Interceptor where Self == ClosureInterceptor {
    /// Returns an interceptor that adds the header field `traceparent` (W3C Trace Context).
    ///
    /// Each exchange has a random trace identifier and is marked as sampled. Each attempt,
    /// including retries and redirects, has a new span identifier, regardless of the order of the
    /// interceptors. A redirect to another origin removes the field for the rest of the chain. If
    /// the request already has a valid `traceparent`, its trace identifier and flags are used.
    /// Otherwise, a `tracestate` of the request is removed.
    public static func traceContext() -> ClosureInterceptor {
        ClosureInterceptor { request, next in
            var request = request
            let given = request.headers["traceparent"].flatMap(TraceParent.init)
            if given == nil { request.headers["tracestate"] = nil }
            request.options[TraceParent.self] = next.task.trace(given ?? TraceParent())
            return try await next(request)
        }
    }
}
