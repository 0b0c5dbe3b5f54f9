public import Foundation

// Members that users of other frameworks look for, each with a message that names the replacement.

extension SessionTask {
    /// Unavailable: only typed tasks have this method.
    @available(*, unavailable, message: "create a typed task first, as in data().validate(statuses:)")
    public func validate(statuses: some Sequence<Int>) -> Self { self }

    /// Unavailable: only typed tasks have this property.
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
@available(*, unavailable, message: "call the setter before decode(_:), or use configure { $0.… = … }")
extension TypedTask {
    /// Unavailable: call this setter before the typed task is created.
    public func setParameters(_ parameters: Any, encoding: Request.ParameterEncoding? = nil) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setQueryParameters(_ parameters: Any, encoder: QueryParameterEncoder? = nil) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setFormParameters(_ parameters: Any) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setMultipart(_ form: MultipartFormData) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setJSON(_ json: Any, encoder: (any BodyEncoder)? = nil) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setJSONData(_ json: Data) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setBody(_ body: Any, contentType: String? = nil) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setHeaders(_ headers: Headers) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setHeaderValue(_ value: String?, forName name: Any) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setHeader(_ name: String, _ value: String?) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setTimeout(_ timeout: Duration) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setAttemptTimeout(_ timeout: Duration) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func setDeadline(_ deadline: Duration) -> Self { self }

    /// Unavailable: call this setter before the typed task is created.
    public func intercepted(by interceptor: any Interceptor) -> Self { self }
}

extension WebService {
    /// Unavailable: add a logger to the observers.
    @available(*, unavailable, message: "add .log { … } to observers")
    public var logger: (any Observer)? {
        get { nil }
        set {}
    }

    /// Unavailable: the timeout is an option of the requests.
    @available(*, unavailable, renamed: "options.timeout")
    public var timeout: Duration {
        get { .zero }
        set {}
    }
}

extension Request {
    /// Unavailable: the timeout is an option of the request.
    @available(*, unavailable, renamed: "options.timeout")
    public var timeout: Duration {
        get { .zero }
        set {}
    }

    /// Unavailable: use the subscript of ``headers``.
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
    /// Unavailable: pass the closure to a ``TokenSource``.
    @available(*, unavailable, message: "pass a source: Authentication(TokenSource { … })")
    public convenience init(_ credential: @escaping @Sendable () async throws -> Credential?) {
        self.init(TokenSource(credential))
    }
}

extension Interceptor where Self == Authentication {
    /// Unavailable: pass the closure to a ``TokenSource``.
    @available(*, unavailable, message: "use Authentication(TokenSource { .bearer(…) })")
    public static func bearer(_ token: @escaping @Sendable () async throws -> String) -> Authentication {
        .bearer("")
    }
}
