public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// One HTTP request as a value: what to send, and nothing about how. Made by ``WebService/request(_:path:pathParameters:)``.
///
/// ```swift
/// var request = service.request(.GET, path: "/brewers")
/// request.queryParameters = ["state": "new york"]
/// request.headers["custom-header-name"] = "foo"
/// ```
/// The setters check nothing and their order does not matter. Everything is checked when the request is encoded, which a
/// ``SessionTask`` does once, at its first `resume()`, and ``urlRequest()`` does on demand.
///
/// A request has at most one body: ``body``, ``formParameters``, ``multipart``, ``serialize(json:)``, ``serialize(_:encoder:contentType:)``
/// and ``setBodyProvider(contentType:_:)`` replace each other. Where ``parameters`` belong in the
/// body as well, the last one set counts. Its `Content-Type` is the header field where you set one,
/// and else what the body brings along.
public struct Request: Sendable {
    /// The method.
    public var method: Method

    /// The header fields. Fields that frame the message (`Content-Length`, `Transfer-Encoding`, `Host`, `Connection` …) belong to the
    /// transport and are refused.
    public var headers = Headers()

    /// Parameters for the URL. A query that the URL has already is kept, and these are added to it.
    public var queryParameters: Parameters?

    /// Puts the query parameters into the URL in a way of your own; `nil` for the usual `name=value&…`.
    public var queryParameterEncoder: QueryParameterEncoder?

    /// Parameters whose place the method decides: the URL for GET, HEAD and DELETE, else the body by ``parameterEncoding``.
    public var parameters: Parameters? {
        didSet {
            parametersAreLast = true
            if parametersBelongInBody { template?.httpBody = nil }  // and a stream with it
        }
    }

    /// A Boolean value that indicates whether ``parameters`` were set after ``content``.
    private var parametersAreLast = false

    /// How ``parameters`` are written into a body. With `json`, bytes that come without a media
    /// type are `application/json` as well.
    public var parameterEncoding: ParameterEncoding = .percent

    /// How values become texts in a query or a form.
    public var parameterStrategy = ParameterStrategy()

    /// Characters that a form leaves unescaped, in names and values; `nil` for those of the standard (WHATWG URL, section 5.2).
    /// `& = + %` and everything outside ASCII are always escaped, or the form could not be read back.
    public var formParametersAllowedCharacters: CharacterSet?

    /// Whether cookies are sent and stored for this request, where the session handles cookies at all.
    public var shouldHandleCookies = true

    /// The header fields in which an ``Authentication`` has found or set a credential.
    var credentialFields: Set<Headers.Name> = []

    /// Whether a ``ResponseCache`` among the interceptors may answer. Without one, `returnCacheDataDontLoad` fails with
    /// `URLError.resourceUnavailable`, and all others ask the server.
    public var cachePolicy: URLRequest.CachePolicy = .useProtocolCachePolicy

    /// Seconds the transport may wait for the next bytes. The task fails with `URLError.timedOut` when it passes.
    public var timeout: TimeInterval = Request.defaultTimeout

    /// Seconds that connecting may take, name look-up and TLS included; `nil` for the session's own limit. The task fails with
    /// `URLError.cannotConnectToHost` when it passes, so that it is told from a server that does not answer. `CurlSession` keeps to it; Foundation
    /// does not say when a connection is there, and its sessions ignore it.
    public var connectTimeout: TimeInterval?

    /// How long the whole exchange may take by the framework's own clock, from `resume()` to the last byte, retries and redirects included, whatever the
    /// transport does. The task fails with ``WebServiceError/Code/deadline`` when it passes.
    public var deadline: Duration = Request.defaultDeadline

    /// 60 seconds, as in Foundation.
    public static let defaultTimeout: TimeInterval = 60

    /// 10 minutes.
    public static let defaultDeadline: Duration = .seconds(600)

    /// What to do with redirects.
    public var redirectPolicy = RedirectPolicy.follow

    /// How long the body of an answer may be, in bytes after decompression; `nil` for no limit. A longer one fails the task with
    /// ``WebServiceError/Code/responseTooLarge``, as soon as the session notices it.
    public var maximumResponseBytes: Int? = Request.defaultMaximumResponseBytes

    /// 100 MiB.
    public static let defaultMaximumResponseBytes = 100 << 20

    /// Turns answers to this request that are failures into errors of your own, before that of the service is asked; `nil` for none.
    public var errorMapper: (any ErrorMapper)?

    /// Interceptors of this request alone, inside those of the service.
    public var interceptors: [any Interceptor] = []

    var location: Location
    var content: Content = .none {
        didSet {
            parametersAreLast = false
            template?.httpBody = nil  // which clears a stream as well: Foundation has one place for both
        }
    }

    /// What a plain `URLRequest` may hold beyond the fields above, such as a body stream; its body is that of ``content`` once that is set.
    var template: URLRequest?

    /// Makes a request for an absolute http or https URL; any other fails when the request is encoded.
    public init(_ method: Method = .GET, url: URL) {
        self.init(method, url: url.absoluteString)
    }

    /// Makes a request for an absolute http or https URL; any other fails when the request is encoded.
    public init(_ method: Method = .GET, url: String) {
        self.method = method
        location = .absolute(url)
    }

    init(_ method: Method, location: Location) {
        self.method = method
        self.location = location
    }

    /// Makes a request that says the same as a plain `URLRequest`.
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

    /// Makes a request from anything that can be sent; its error, where it has one, comes back when this request is encoded.
    public init(_ encodable: any URLRequestEncodable) {
        if let request = encodable as? Request {
            self = request
            return
        }
        do {
            self.init(try encodable.urlRequest())
        } catch {
            let failure = error as? WebServiceError ?? WebServiceError(.encoding, "the request could not be made", underlying: error)
            self.init(.GET, location: .invalid(failure))
        }
    }

    /// How ``Request/parameters`` are written into a body.
    public enum ParameterEncoding: Sendable {
        /// As a form: `application/x-www-form-urlencoded`.
        case percent
        /// As a JSON object: `application/json`.
        case json
    }
}

extension Request {
    /// The absolute URL without ``queryParameters``. `nil` when no valid URL could be formed; sending the request tells why.
    public var url: URL? {
        get { try? location.url() }  // encoding the request throws the error
        set { location = .absolute(newValue?.absoluteString ?? "") }
    }

    /// The media type of the body: the header field where it is set, else the one the body brings along.
    public var contentType: String? {
        get { headers[.contentType] ?? bodyContentType }
        set { headers[.contentType] = newValue }
    }

    /// The `User-Agent` header field.
    public var userAgent: String? {
        get { headers[.userAgent] }
        set { headers[.userAgent] = newValue }
    }

    /// The media type that the body brings along.
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

    /// A Boolean value that indicates whether a provider makes the body.
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

    /// What `dump` shows: the same as ``description``, because parameters, header fields and body may hold secrets.
    public var customMirror: Mirror {
        Mirror(self, children: ["request": description], displayStyle: .struct)
    }
}
