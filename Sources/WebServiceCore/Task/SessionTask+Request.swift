public import Foundation

/// Setters of the request. Each setter changes a property of ``Request``, which documents the
/// value.
///
/// Setters of different properties can be called in any order, except that the last body replaces
/// the others. Setters have no effect after the first ``SessionTask/resume()``.
extension SessionTask {
    /// Changes the request with a closure, which can set any property of ``Request``.
    ///
    /// ```swift
    /// service.GET("/archive").configure { $0.options.redirectPolicy = .manual }
    /// ```
    /// This method has no effect after the first ``SessionTask/resume()``. A typed request creates
    /// its own request, so a change to a task of `perform(_:key:duplicates:)` makes that task fail
    /// with ``WebServiceError/Code/encoding``. The closure is called on the calling thread. If
    /// another thread has changed the request in the meantime, the closure is called again.
    @discardableResult
    public func configure(_ change: (inout Request) -> Void) -> Self {
        while let (request, revision) = call.withLock({ $0.unsent }) {
            var changed = request
            change(&changed)
            if call.withLock({ $0.replaceRequest(changed, ifRevision: revision) }) { break }
        }
        return self
    }

    /// Sets ``Request/parameters`` and, if `encoding` is given, ``Request/parameterEncoding``.
    @discardableResult
    public func setParameters(_ parameters: Parameters, encoding: Request.ParameterEncoding? = nil) -> Self {
        setting { request in
            request.parameters = parameters
            if let encoding { request.parameterEncoding = encoding }
        }
    }

    /// Sets ``Request/parameters`` from a dictionary of any values, sorted by name.
    @discardableResult
    @_disfavoredOverload
    public func setParameters(_ parameters: [String: Any], encoding: Request.ParameterEncoding? = nil) -> Self {
        setParameters(Parameters(parameters), encoding: encoding)
    }

    /// Sets ``Request/parameterEncoding``.
    @discardableResult
    public func setParameterEncoding(_ encoding: Request.ParameterEncoding) -> Self {
        setting { $0.parameterEncoding = encoding }
    }

    /// Sets ``Request/queryParameters`` and, if `encoder` is given,
    /// ``Request/queryParameterEncoder``.
    @discardableResult
    public func setQueryParameters(_ parameters: Parameters, encoder: QueryParameterEncoder? = nil) -> Self {
        setting { request in
            request.queryParameters = parameters
            if let encoder { request.queryParameterEncoder = encoder }
        }
    }

    /// Sets ``Request/queryParameters`` from a dictionary of any values, sorted by name.
    @discardableResult
    @_disfavoredOverload
    public func setQueryParameters(_ parameters: [String: Any], encoder: QueryParameterEncoder? = nil) -> Self {
        setQueryParameters(Parameters(parameters), encoder: encoder)
    }

    /// Sets ``Request/formParameters``.
    @discardableResult
    public func setFormParameters(_ parameters: Parameters) -> Self {
        setting { $0.formParameters = parameters }
    }

    /// Sets ``Request/formParameters`` from a dictionary of any values, sorted by name.
    @discardableResult
    @_disfavoredOverload
    public func setFormParameters(_ parameters: [String: Any]) -> Self {
        setFormParameters(Parameters(parameters))
    }

    /// Sets ``Request/multipart``.
    @discardableResult
    public func setMultipart(_ form: MultipartFormData) -> Self {
        setting { $0.multipart = form }
    }

    /// Sets the body as ``Request/serialize(json:)`` does. An encoding error becomes the error of
    /// the task.
    @discardableResult
    public func setJSON(_ json: Any) -> Self {
        configure { $0.keepingError { try $0.serialize(json: json) } }
    }

    /// Sets the body as ``Request/serialize(_:encoder:contentType:)`` does.
    ///
    /// An encoding error becomes the error of the task.
    ///
    /// - Parameters:
    ///   - value: The value to encode.
    ///   - encoder: The encoder. Defaults to `nil`: the current ``WebService/encoder``.
    @discardableResult
    public func setJSON(_ value: some Encodable, encoder: (any BodyEncoder)? = nil) -> Self {
        let encoder = encoder ?? service.encoder
        return configure { $0.keepingError { try $0.serialize(value, encoder: encoder) } }
    }

    /// Sets ``Request/content``.
    @discardableResult
    public func setBody(_ body: Request.Body) -> Self {
        setting { $0.content = body }
    }

    /// Sets the body to bytes. `contentType` is their media type, or `nil` if it is unknown.
    @discardableResult
    public func setBody(_ data: Data, contentType: String? = nil) -> Self {
        setBody(.data(data, contentType: contentType))
    }

    /// Sets the body to JSON that is already encoded.
    @discardableResult
    public func setJSONData(_ json: Data) -> Self {
        setBody(json, contentType: ContentType.json)
    }

    /// Sets the body to the content of a file; see ``Request/Body/file(_:contentType:)``.
    @discardableResult
    public func setBody(file url: URL, contentType: String? = nil) -> Self {
        setBody(.file(url, contentType: contentType))
    }

    /// Sets the body to bytes that a closure returns.
    ///
    /// The closure is called in the background when the task is resumed; see
    /// ``Request/setBodyProvider(contentType:_:)``.
    @discardableResult
    public func setBody(contentType: String? = nil, _ provider: @escaping @Sendable () async throws -> Data) -> Self {
        setting { $0.setBodyProvider(contentType: contentType, provider) }
    }

    /// Replaces ``Request/headers``, including the fields of the service.
    @discardableResult
    public func setHeaders(_ headers: Headers) -> Self {
        setting { $0.headers = headers }
    }

    /// Replaces ``Request/headers`` with the fields of a dictionary, sorted by name.
    @discardableResult
    @_disfavoredOverload
    public func setHeaders(_ headers: [String: String]) -> Self {
        setHeaders(Headers(headers))
    }

    /// Sets one field of ``Request/headers``; `nil` removes it.
    @discardableResult
    public func setHeaderValue(_ value: String?, forName name: String) -> Self {
        setting { $0.headers[name] = value }
    }

    /// Sets one field of ``Request/headers`` with a well-known name; `nil` removes it.
    @discardableResult
    public func setHeaderValue(_ value: String?, forName name: Headers.Name) -> Self {
        setting { $0.headers[name] = value }
    }

    /// Sets ``Request/Options/timeout``.
    @discardableResult
    public func setTimeout(_ timeout: Duration) -> Self {
        setting { $0.options.timeout = timeout }
    }

    /// Sets ``Request/Options/attemptTimeout``.
    @discardableResult
    public func setAttemptTimeout(_ timeout: Duration) -> Self {
        setting { $0.options.attemptTimeout = timeout }
    }

    /// Sets ``Request/Options/deadline``.
    @discardableResult
    public func setDeadline(_ deadline: Duration) -> Self {
        setting { $0.options.deadline = deadline }
    }

    /// Appends an interceptor to those of the request; see ``Request/Options/interceptors``.
    @discardableResult
    public func intercepted(by interceptor: any Interceptor) -> Self {
        setting { $0.options.interceptors.append(interceptor) }
    }

    /// Applies a change that calls no custom code.
    @discardableResult
    func setting(_ change: (inout Request) -> Void) -> Self {
        // A replaced value may have a custom deinitializer, so it is released outside the lock.
        let replaced = call.withLock { state in
            defer { state.configure(change) }
            return state.unsent?.request
        }
        withExtendedLifetime(replaced) {}
        return self
    }
}
