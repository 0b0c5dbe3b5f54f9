extension Interceptor where Self == ClosureInterceptor {
    /// Returns an interceptor that adds the header field `traceparent` (W3C Trace Context).
    ///
    /// Each exchange has a random trace identifier and is marked as sampled. Each attempt,
    /// including retries and redirects, has a new span identifier, regardless of the order of the
    /// interceptors. A redirect to another origin removes the field for the rest of the chain. If
    /// the request already has a valid `traceparent`, the trace identifier and the flags of that
    /// field are used. Otherwise, a `tracestate` of the request is removed.
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

/// The trace of an exchange, to which each attempt adds a span (W3C Trace Context, section 3.2).
struct TraceParent: Sendable, Equatable {
    /// The identifier: 32 lower-case hexadecimal digits, of which at least one is not zero.
    let traceID: String
    /// The flags: two hexadecimal digits.
    let flags: String

    /// Creates a sampled trace with a random identifier.
    init() {
        traceID = UInt64.random(in: .min ... .max).hexadecimal + UInt64.random(in: 1 ... .max).hexadecimal
        flags = "01"
    }

    /// Creates a trace from a field value; `nil` if the value is invalid.
    ///
    /// Later versions of the format may append parts (section 3.2.4). Flags that are not defined
    /// are cleared.
    init?(_ value: String) {
        var parts = value.split(separator: "-", maxSplits: 4, omittingEmptySubsequences: false)[...]
        guard let version = parts.popFirst(), let traceID = parts.popFirst(), let spanID = parts.popFirst(),
            let flags = parts.popFirst(), version != "ff", parts.isEmpty || version != "00",
            zip([version, traceID, spanID, flags], [2, 32, 16, 2]).allSatisfy({ text, count in
                text.utf8.count == count && text.utf8.allSatisfy(Self.isDigit)
            }),
            [traceID, spanID].allSatisfy({ $0.utf8.contains { $0 != UInt8(ascii: "0") } }),
            let bits = UInt8(flags, radix: 16)
        else { return nil }
        self.traceID = String(traceID)
        self.flags = "0\(bits & 3)"
    }

    /// Returns the field value of a new span.
    func startingSpan() -> String {
        "00-\(traceID)-\(UInt64.random(in: 1 ... .max).hexadecimal)-\(flags)"
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}

extension TraceParent: RequestTagKey {
    /// Requests are not traced by default.
    static let defaultValue: TraceParent? = nil
}

extension Request {
    /// Returns the request with a new span of its trace, if it has one.
    func startingSpan() -> Request {
        guard let trace = options[TraceParent.self] else { return self }
        var request = self
        request.headers["traceparent"] = trace.startingSpan()
        return request
    }
}
