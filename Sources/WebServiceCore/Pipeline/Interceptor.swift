/// Wraps the sending of a request: changes it, answers in its place, sends it again, looks at the answer. Retry and authentication are interceptors.
///
/// An interceptor that measures every logical request, retries included:
/// ```swift
/// struct Stopwatch: Interceptor {
///     func intercept(_ request: Request, next: Next) async throws -> Response {
///         let start = ContinuousClock.now
///         let response = try await next(request)
///         print("\(request.method): \(start.duration(to: .now))")
///         return response
///     }
/// }
/// service.interceptors = [Stopwatch(), .retry()]
/// ```
/// Those of the service come before those of the request, the first of a list wraps all that follow (`WebService+Pipeline.swift`, step 3).
/// An interceptor runs as a Swift task of its own for each exchange; cancelling the exchange cancels it. It may call `next` any number of times,
/// one after another. It is called from several exchanges at once.
///
/// To fake the rest of the chain in a test, make a service over a `MockSession` and install the interceptor.
public protocol Interceptor: Sendable {
    /// Handles one request.
    ///
    /// - Parameters:
    ///   - request: What is to be sent. A body provider has run already: its bytes are ``Request/body``.
    ///   - next: Everything behind this interceptor.
    /// - Returns: The answer, whatever its status.
    /// - Throws: What becomes the error of the exchange.
    func intercept(_ request: Request, next: Next) async throws -> Response
}

/// The stages after an interceptor: the interceptors that follow, and then an exchange.
public struct Next: Sendable {
    let context: ExchangeContext
    let pipeline: Pipeline
    /// The interceptors that follow.
    let following: ArraySlice<any Interceptor>
    let send: @Sendable (Request) async throws -> Response

    /// Passes a request on and returns its response.
    ///
    /// - Throws: `URLError` for transport errors, ``WebServiceError`` for errors of the framework, `URLError.cancelled` when the exchange is
    ///   cancelled.
    public func callAsFunction(_ request: Request) async throws -> Response {
        try await send(request)
    }

    /// Adds an event to the exchange's ``Timeline``.
    public func record(_ kind: Timeline.Kind, _ detail: String = "") {
        context.log.record(kind, detail)
    }
}

/// An interceptor made of a closure.
public struct ClosureInterceptor: Interceptor {
    private let body: @Sendable (Request, Next) async throws -> Response

    /// Makes an interceptor.
    public init(_ body: @escaping @Sendable (_ request: Request, _ next: Next) async throws -> Response) {
        self.body = body
    }

    /// Calls the closure.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        try await body(request, next)
    }
}

extension Interceptor where Self == ClosureInterceptor {
    /// An interceptor made of a closure.
    public static func closure(_ body: @escaping @Sendable (_ request: Request, _ next: Next) async throws -> Response) -> ClosureInterceptor {
        ClosureInterceptor(body)
    }

    /// Sets header fields that the request does not have.
    public static func headers(_ headers: Headers) -> ClosureInterceptor {
        ClosureInterceptor { request, next in
            var request = request
            for field in headers where request.headers[field.name] == nil { request.headers[field.name] = field.value }
            return try await next(request)
        }
    }
}
