public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// Setters of the request. Each changes the field of ``Request`` that documents its meaning.
///
/// The order of calls does not matter, except that the last body replaces the others. Setters have
/// an effect until the first ``SessionTask/resume()``, which encodes the request.
extension SessionTask {
    /// Sets ``Request/parameters`` and, if given, their encoding in the body.
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

    /// Sets ``Request/parameterStrategy``.
    @discardableResult
    public func setParameterStrategy(_ strategy: ParameterStrategy) -> Self {
        setting { $0.parameterStrategy = strategy }
    }

    /// Sets ``Request/queryParameters`` and, if given, ``Request/queryParameterEncoder``.
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

    /// Sets ``Request/queryParameterEncoder``.
    @discardableResult
    public func setQueryParameterEncoder(_ encoder: @escaping QueryParameterEncoder) -> Self {
        setting { $0.queryParameterEncoder = encoder }
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

    /// Sets ``Request/formParametersAllowedCharacters``.
    @discardableResult
    public func setFormParametersAllowedCharacters(_ characters: CharacterSet) -> Self {
        setting { $0.formParametersAllowedCharacters = characters }
    }

    /// Sets ``Request/multipart``.
    @discardableResult
    public func setMultipart(_ form: MultipartFormData) -> Self {
        setting { $0.multipart = form }
    }

    /// Sets the body as ``Request/serialize(json:)`` does. Its error becomes the error of the task.
    @discardableResult
    public func setJSON(_ json: Any) -> Self {
        setting { $0.keepingError { try $0.serialize(json: json) } }
    }

    /// Sets the body as ``Request/serialize(_:encoder:contentType:)`` does.
    ///
    /// Its error becomes the error of the task.
    @discardableResult
    public func setJSON(_ value: some Encodable, encoder: some BodyEncoder = JSONEncoder()) -> Self {
        setting { $0.keepingError { try $0.serialize(value, encoder: encoder) } }
    }

    /// Sets the body to encoded JSON.
    @discardableResult
    public func setJSONData(_ data: Data) -> Self {
        setBody(data, contentType: ContentType.json)
    }

    /// Sets the body to JSON that a closure returns.
    ///
    /// The closure is called in the background when the task is resumed; see
    /// ``Request/setBodyProvider(contentType:_:)``.
    @discardableResult
    public func setJSONData(_ provider: @escaping @Sendable () async throws -> Data) -> Self {
        setBody(contentType: ContentType.json, provider)
    }

    /// Sets the body to bytes of a media type; `nil` for an unknown type.
    @discardableResult
    public func setBody(_ data: Data, contentType: String? = nil) -> Self {
        setting { $0.content = .data(data, contentType: contentType) }
    }

    /// Sets the body to bytes that a closure returns.
    ///
    /// The closure is called in the background when the task is resumed; see
    /// ``Request/setBodyProvider(contentType:_:)``.
    @discardableResult
    public func setBody(contentType: String? = nil, _ provider: @escaping @Sendable () async throws -> Data) -> Self {
        setting { $0.setBodyProvider(contentType: contentType, provider) }
    }

    /// Replaces ``Request/headers``.
    @discardableResult
    public func setHeaders(_ headers: Headers) -> Self {
        setting { $0.headers = headers }
    }

    /// Sets one field of ``Request/headers``; `nil` removes it.
    @discardableResult
    public func setHeaderValue(_ value: String?, forName name: String) -> Self {
        setting { $0.headers[name] = value }
    }

    /// Sets ``Request/shouldHandleCookies``.
    @discardableResult
    public func setShouldHandleCookies(_ shouldHandle: Bool) -> Self {
        setting { $0.shouldHandleCookies = shouldHandle }
    }

    /// Sets ``Request/cachePolicy``.
    @discardableResult
    public func setCachePolicy(_ policy: URLRequest.CachePolicy) -> Self {
        setting { $0.cachePolicy = policy }
    }

    /// Sets ``Request/timeout``.
    @discardableResult
    public func setTimeout(_ timeout: Duration) -> Self {
        setting { $0.timeout = timeout }
    }

    /// Sets ``Request/connectTimeout``; `nil` for the timeout of the session.
    @discardableResult
    public func setConnectTimeout(_ timeout: Duration?) -> Self {
        setting { $0.connectTimeout = timeout }
    }

    /// Sets ``Request/deadline``.
    @discardableResult
    public func setDeadline(_ deadline: Duration) -> Self {
        setting { $0.deadline = deadline }
    }

    /// Sets ``Request/redirectPolicy``.
    @discardableResult
    public func setRedirectPolicy(_ policy: RedirectPolicy) -> Self {
        setting { $0.redirectPolicy = policy }
    }

    /// Sets ``Request/maximumResponseBytes``; `nil` for no limit.
    @discardableResult
    public func setMaximumResponseBytes(_ maximum: Int?) -> Self {
        setting { $0.maximumResponseBytes = maximum }
    }

    /// Sets ``Request/errorMapper``; `nil` to use only the error mapper of the service.
    @discardableResult
    public func setErrorMapper(_ mapper: (any ErrorMapper)?) -> Self {
        setting { $0.errorMapper = mapper }
    }

    /// Adds an interceptor after the interceptors of the request and inside those of the service.
    @discardableResult
    public func intercepted(by interceptor: any Interceptor) -> Self {
        setting { $0.interceptors.append(interceptor) }
    }

    private func setting(_ change: (inout Request) -> Void) -> Self {
        configure(change)
        return self
    }
}
