public import Foundation

// Members that users of other frameworks look for, each with a message that names the replacement.

extension SessionTask {
    /// Unavailable: a typed task has this method.
    @available(*, unavailable, message: "create a typed task first, as in data().validate(statuses:)")
    public func validate(statuses: some Sequence<Int>) -> Self { self }

    /// Unavailable: a typed task has this property.
    @available(*, unavailable, message: "create a typed task first, as in data().response")
    public var response: Response {
        get async throws { throw CancellationError() }
    }

    /// Unavailable: use ``setHeaderValue(_:forName:)-(_,String)``.
    @available(*, unavailable, message: "use setHeaderValue(_:forName:)")
    public func setHeader(_ name: String, _ value: String?) -> Self { self }

    /// Unavailable: use ``setHeaderValue(_:forName:)-(_,String)``.
    @available(*, unavailable, renamed: "setHeaderValue(_:forName:)")
    public func setHeader(_ value: String?, forName name: String) -> Self { self }
}

/// Unavailable: call the setters of the request before the method that creates the typed task, or
/// use ``TypedTask/configure(_:)``.
@available(*, unavailable, message: "call it before decode(_:), or use configure { $0.… = … }")
extension TypedTask {
    /// Unavailable: a setter of the request.
    public func setParameters(_ parameters: Any, encoding: Request.ParameterEncoding? = nil) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setQueryParameters(_ parameters: Any, encoder: QueryParameterEncoder? = nil) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setFormParameters(_ parameters: Any) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setMultipart(_ form: MultipartFormData) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setJSON(_ json: Any, encoder: (any BodyEncoder)? = nil) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setJSONData(_ json: Data) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setBody(_ body: Any, contentType: String? = nil) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setHeaders(_ headers: Headers) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setHeaderValue(_ value: String?, forName name: Any) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setHeader(_ name: String, _ value: String?) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setTimeout(_ timeout: Duration) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setAttemptTimeout(_ timeout: Duration) -> Self { self }

    /// Unavailable: a setter of the request.
    public func setDeadline(_ deadline: Duration) -> Self { self }

    /// Unavailable: a setter of the request.
    public func intercepted(by interceptor: any Interceptor) -> Self { self }
}

extension WebService {
    /// Unavailable: a logger is an observer.
    @available(*, unavailable, message: "add .log { … } to observers")
    public var logger: (any Observer)? {
        get { nil }
        set {}
    }

    /// Unavailable: an option of the requests.
    @available(*, unavailable, renamed: "options.timeout")
    public var timeout: Duration {
        get { .zero }
        set {}
    }
}

extension Request {
    /// Unavailable: an option of the request.
    @available(*, unavailable, renamed: "options.timeout")
    public var timeout: Duration {
        get { .zero }
        set {}
    }

    /// Unavailable: a subscript of ``headers``.
    @available(*, unavailable, message: "set headers[name]")
    public mutating func setHeader(_ name: String, _ value: String?) {}
}

extension Response {
    /// Unavailable: use ``status``.
    @available(*, unavailable, renamed: "status")
    public var statusCode: Int { status }
}

extension WebServiceError.Code {
    /// Unavailable: the status is not the code of the error.
    @available(*, unavailable, message: "compare the status of the error, as in error.status == 404")
    public static func == (code: WebServiceError.Code, status: Int) -> Bool { false }

    /// Unavailable: the status is not the code of the error.
    @available(*, unavailable, message: "compare the status of the error, as in error.status != 404")
    public static func != (code: WebServiceError.Code, status: Int) -> Bool { false }
}

extension Authentication {
    /// Unavailable: a ``TokenSource`` calls the closure.
    @available(*, unavailable, message: "pass a source: Authentication(TokenSource { … })")
    public convenience init(_ credential: @escaping @Sendable () async throws -> Credential?) {
        self.init(TokenSource(credential))
    }
}

extension Interceptor where Self == Authentication {
    /// Unavailable: a ``TokenSource`` calls the closure.
    @available(*, unavailable, message: "use Authentication(TokenSource { .bearer(…) })")
    public static func bearer(_ token: @escaping @Sendable () async throws -> String) -> Authentication {
        .bearer("")
    }
}
