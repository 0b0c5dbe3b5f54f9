public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// An HTTP request as a value: its content, independent of how it is sent.
///
/// Create requests with ``WebService/request(_:path:pathParameters:)``.
///
/// ```swift
/// var request = service.request(.GET, path: "/brewers")
/// request.queryParameters = ["state": "new york"]
/// request.headers["custom-header-name"] = "foo"
/// ```
/// Setters do not validate, and their order does not matter. The request is validated when it is
/// encoded: a ``SessionTask`` encodes it once, at its first `resume()`, and ``urlRequest()``
/// encodes it on demand.
///
/// A request has at most one body: ``body``, ``formParameters``, ``multipart``,
/// ``serialize(json:)``, ``serialize(_:encoder:contentType:)`` and
/// ``setBodyProvider(contentType:_:)`` replace each other. If ``parameters`` belong in the body as
/// well, the last one set is used. The `Content-Type` is the header field if it is set, otherwise
/// the media type of the body.
public struct Request: Sendable {
    /// The method.
    public var method: Method

    /// The header fields.
    ///
    /// Fields that frame the request (`Content-Length`, `Transfer-Encoding`, `Host`, `Connection`
    /// …) are reserved for the transport and rejected.
    public var headers = Headers()

    /// The parameters that are added to the query of the URL.
    ///
    /// A query that the URL already has is preserved.
    public var queryParameters: Parameters?

    /// A custom encoder that adds the query parameters to the URL.
    ///
    /// Defaults to `nil`, which means `name=value&…`.
    public var queryParameterEncoder: QueryParameterEncoder?

    /// The parameters whose location depends on the method.
    ///
    /// They are added to the URL for GET, HEAD and DELETE, and otherwise written into the body by
    /// ``parameterEncoding``.
    public var parameters: Parameters? {
        didSet {
            parametersAreLast = true
            if parametersBelongInBody { template?.httpBody = nil }  // clears a stream as well
        }
    }

    /// A Boolean value that indicates whether ``parameters`` were set after ``content``.
    private var parametersAreLast = false

    /// The format of ``parameters`` in a body.
    ///
    /// With `json`, a body of bytes without a media type is sent as `application/json` as well.
    public var parameterEncoding: ParameterEncoding = .percent

    /// The strategy that converts values to strings in a query or a form.
    public var parameterStrategy = ParameterStrategy()

    /// The characters that a form leaves unescaped, in names and values.
    ///
    /// Defaults to `nil`, which means those of the standard (WHATWG URL, section 5.2). `& = + %`
    /// and everything outside ASCII are always escaped; otherwise, the form could not be decoded.
    public var formParametersAllowedCharacters: CharacterSet?

    /// A Boolean value that indicates whether the request sends and stores cookies.
    ///
    /// It has an effect only if the session handles cookies. Defaults to `true`.
    public var shouldHandleCookies = true

    /// The header fields in which an ``Authentication`` has found or set a credential.
    var credentialFields: Set<Headers.Name> = []

    /// The policy that determines when a ``ResponseCache`` among the interceptors may respond.
    ///
    /// Without such an interceptor, `returnCacheDataDontLoad` fails with
    /// `URLError.resourceUnavailable`, and all other policies send the request.
    public var cachePolicy: URLRequest.CachePolicy = .useProtocolCachePolicy

    /// The idle timeout in seconds: the longest wait of the transport for the next bytes.
    ///
    /// The task fails with `URLError.timedOut` when it expires. Defaults to ``defaultTimeout``.
    public var timeout: TimeInterval = Request.defaultTimeout

    /// The timeout for connecting in seconds, including name resolution and TLS.
    ///
    /// Defaults to `nil`, which means the timeout of the session. The task fails with
    /// `URLError.cannotConnectToHost` when it expires, unlike a task whose server does not respond.
    /// `CurlSession` enforces this timeout. Foundation does not report when a connection is
    /// established, so its sessions ignore it.
    public var connectTimeout: TimeInterval?

    /// The deadline: the longest duration of the whole exchange.
    ///
    /// The library's clock measures it from `resume()` to the last byte, including retries and
    /// redirects, regardless of the transport. The task fails with
    /// ``WebServiceError/Code/deadline`` when it passes. Defaults to ``defaultDeadline``.
    public var deadline: Duration = Request.defaultDeadline

    /// The default of ``timeout``: 60 seconds, as in Foundation.
    public static let defaultTimeout: TimeInterval = 60

    /// The default of ``deadline``: 10 minutes.
    public static let defaultDeadline: Duration = .seconds(600)

    /// The policy for redirects.
    public var redirectPolicy = RedirectPolicy.follow

    /// The maximum size of the response body in bytes, after decompression; `nil` for no limit.
    ///
    /// If a body is larger, the task fails with ``WebServiceError/Code/responseTooLarge`` as soon
    /// as the session detects it. Defaults to ``defaultMaximumResponseBytes``.
    public var maximumResponseBytes: Int? = Request.defaultMaximumResponseBytes

    /// The default of ``maximumResponseBytes``: 100 MiB.
    public static let defaultMaximumResponseBytes = 100 << 20

    /// A mapper from failed responses to this request to custom errors.
    ///
    /// It takes precedence over the mapper of the service.
    public var errorMapper: (any ErrorMapper)?

    /// The interceptors of this request, inside those of the service.
    public var interceptors: [any Interceptor] = []

    /// A Boolean value that indicates whether `Range` and `If-Range` are those of a download, which
    /// a redirect to another origin retains.
    var downloadsPart = false

    var location: Location
    var content: Content = .none {
        didSet {
            parametersAreLast = false
            template?.httpBody = nil  // clears a stream as well: Foundation stores both in one place
        }
    }

    /// The `URLRequest` with properties beyond those above, such as a body stream.
    ///
    /// Setting ``content`` removes its body.
    var template: URLRequest?

    /// Creates a request for an absolute http or https URL.
    ///
    /// A request for any other URL fails when it is encoded.
    public init(_ method: Method = .GET, url: URL) {
        self.init(method, url: url.absoluteString)
    }

    /// Creates a request for an absolute http or https URL.
    ///
    /// A request for any other URL fails when it is encoded.
    public init(_ method: Method = .GET, url: String) {
        self.method = method
        location = .absolute(url)
    }

    init(_ method: Method, location: Location) {
        self.method = method
        self.location = location
    }

    /// Creates a request that is equivalent to a `URLRequest`.
    public init(_ urlRequest: URLRequest) {
        self.init(Method(rawValue: urlRequest.httpMethod ?? "GET"), url: urlRequest.url?.absoluteString ?? "")
        headers = Headers((urlRequest.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        shouldHandleCookies = urlRequest.httpShouldHandleCookies
        cachePolicy = urlRequest.cachePolicy
        timeout = urlRequest.timeoutInterval
        template = urlRequest
        if let data = urlRequest.httpBody { body = data }
        if let stream = urlRequest.httpBodyStream as? BodyStream { multipart = stream.form }
    }

    /// Creates a request from any value that can be sent.
    ///
    /// If that fails, the error is thrown when this request is encoded.
    public init(_ encodable: any URLRequestEncodable) {
        if let request = encodable as? Request {
            self = request
            return
        }
        do {
            self.init(try encodable.urlRequest())
        } catch {
            let failure =
                error as? WebServiceError
                ?? WebServiceError(.encoding, "the request cannot be created", underlying: error)
            self.init(.GET, location: .invalid(failure))
        }
    }

    /// A format of ``Request/parameters`` in a body.
    public enum ParameterEncoding: Sendable {
        /// A form: `application/x-www-form-urlencoded`.
        case percent
        /// A JSON object: `application/json`.
        case json
    }
}

extension Request {
    /// The absolute URL without ``queryParameters``.
    ///
    /// `nil` if no valid URL can be formed. Sending the request then fails with the reason.
    public var url: URL? {
        get { try? location.url() }  // encoding the request throws the error
        set { location = .absolute(newValue?.absoluteString ?? "") }
    }

    /// The media type of the body.
    ///
    /// This is the `Content-Type` header field if it is set, otherwise the media type of the body
    /// itself.
    public var contentType: String? {
        get { headers[.contentType] ?? bodyContentType }
        set { headers[.contentType] = newValue }
    }

    /// The `User-Agent` header field.
    public var userAgent: String? {
        get { headers[.userAgent] }
        set { headers[.userAgent] = newValue }
    }

    /// The media type that the body itself specifies.
    var bodyContentType: String? {
        if parametersBelongInBody { return parameterEncoding.contentType }
        return switch content {
        case .data(_, nil), .provider(nil, _): parameterEncoding == .json ? ContentType.json : ContentType.octetStream
        default: content.contentType
        }
    }

    /// A Boolean value that indicates whether ``parameters`` are the body.
    var parametersBelongInBody: Bool {
        parameters?.isEmpty == false && !method.encodesParametersInURL && (parametersAreLast || content.isNone)
    }

    /// A Boolean value that indicates whether the body comes from a provider.
    var hasBodyProvider: Bool {
        if case .provider = content { !parametersBelongInBody } else { false }
    }
}

extension Request.ParameterEncoding {
    var contentType: String {
        switch self {
        case .percent: ContentType.formEncoded
        case .json: ContentType.json
        }
    }
}

extension Request: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method and the URL without its query: safe to log.
    public var description: String {
        let text = url.map { String($0.absoluteString.prefix { $0 != "?" }) }
        return "\(ASCII.isToken(method.rawValue) ? method.rawValue : "(invalid method)") \(text ?? "(invalid URL)")"
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The mirror that `dump` prints. It contains only ``description``.
    ///
    /// Parameters, header fields and body may contain secrets.
    public var customMirror: Mirror {
        Mirror(self, children: ["request": description], displayStyle: .struct)
    }
}
