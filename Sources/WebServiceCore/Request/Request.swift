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
/// Setters do not validate. Their order does not matter, except for those of the body. The request
/// is validated when it is encoded: a ``SessionTask`` encodes it after its first `resume()`, and
/// ``urlRequest()`` encodes it on demand.
///
/// A request has at most one body, ``content``. ``body``, ``formParameters``, ``multipart``,
/// ``serialize(json:)``, ``serialize(_:encoder:contentType:)`` and
/// ``setBodyProvider(contentType:_:)`` also set the body. If ``parameters`` also belong in the
/// body, whichever was set last is used. The `Content-Type` header field is sent if it is set;
/// otherwise, the media type of the body is sent.
public struct Request: Sendable {
    /// The properties, which copies of the request share until one of them changes.
    ///
    /// @unchecked: ``Request/properties`` changes the object only while it has one reference.
    private final class Storage: @unchecked Sendable {
        @exclusivity(unchecked) var properties: Properties

        init(_ properties: Properties) { self.properties = properties }
    }

    /// The stored properties. See the properties of ``Request`` with the same names.
    private struct Properties: Sendable {
        var method: Method
        var headers = Headers()
        var queryParameters: Parameters?
        var queryParameterEncoder: QueryParameterEncoder?
        var parameters: Parameters?
        /// Whether `parameters` were set after `content`.
        var parametersAreLast = false
        var parameterEncoding = ParameterEncoding.percent
        var parameterStrategy = ParameterStrategy()
        var formParametersAllowedCharacters: CharacterSet?
        var options = Options()
        var credentialFields: Set<Headers.Name> = []
        var downloadsPart = false
        var uploadsPart = false
        var signature: Signature?
        var boundFields: [BoundFields] = []
        var location: Location
        var content = Body.none
        var template: URLRequest?
    }

    private var storage: Storage

    private var properties: Properties {
        get { storage.properties }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.properties) }
            yield &storage.properties
        }
    }

    /// The HTTP method, such as GET.
    public var method: Method {
        get { storage.properties.method }
        _modify { yield &properties.method }
    }

    /// The header fields of the request.
    ///
    /// Fields that frame the request (`Content-Length`, `Transfer-Encoding`, `Host`, `Connection`
    /// …) are reserved for the transport and rejected.
    public var headers: Headers {
        get { storage.properties.headers }
        _modify { yield &properties.headers }
    }

    /// The parameters that are added to the query of the URL.
    ///
    /// A query that the URL already has is preserved.
    public var queryParameters: Parameters? {
        get { storage.properties.queryParameters }
        _modify { yield &properties.queryParameters }
    }

    /// A custom encoder that adds the query parameters to the URL.
    ///
    /// Defaults to `nil`, in which case the parameters are written as `name=value&…`.
    public var queryParameterEncoder: QueryParameterEncoder? {
        get { storage.properties.queryParameterEncoder }
        _modify { yield &properties.queryParameterEncoder }
    }

    /// The parameters whose location and format depend on the method and ``parameterEncoding``.
    public var parameters: Parameters? {
        get { storage.properties.parameters }
        _modify {
            defer {
                properties.parametersAreLast = true
                if parametersBelongInBody { template?.httpBody = nil }  // clears a stream as well
            }
            yield &properties.parameters
        }
    }

    /// The location and format of ``parameters``. Defaults to `percent`.
    ///
    /// With `json`, a body of bytes without a media type is sent as `application/json` as well.
    public var parameterEncoding: ParameterEncoding {
        get { storage.properties.parameterEncoding }
        _modify { yield &properties.parameterEncoding }
    }

    /// The strategy that converts values to strings in a query or a form.
    public var parameterStrategy: ParameterStrategy {
        get { storage.properties.parameterStrategy }
        _modify { yield &properties.parameterStrategy }
    }

    /// The characters that a form leaves unescaped, in names and values.
    ///
    /// Defaults to `nil`, in which case the standard (WHATWG URL, section 5.2) defines these
    /// characters. `& = + %` and everything outside ASCII are always escaped; otherwise, the form
    /// could not be decoded.
    public var formParametersAllowedCharacters: CharacterSet? {
        get { storage.properties.formParametersAllowedCharacters }
        _modify { yield &properties.formParametersAllowedCharacters }
    }

    /// The options for sending the request: timeouts, limits, policies, interceptors.
    public var options: Options {
        get { storage.properties.options }
        _modify { yield &properties.options }
    }

    /// The header fields in which an ``Authentication`` or a signature has found or set a
    /// credential.
    package var credentialFields: Set<Headers.Name> {
        get { storage.properties.credentialFields }
        _modify { yield &properties.credentialFields }
    }

    /// Whether a download set `Range` and `If-Range`. A redirect to another origin retains these
    /// fields.
    package var downloadsPart: Bool {
        get { storage.properties.downloadsPart }
        _modify { yield &properties.downloadsPart }
    }

    /// Whether the request belongs to an upload that continues from the server's offset. Such a
    /// request is not retried unchanged, and a redirect to another origin retains its fields.
    package var uploadsPart: Bool {
        get { storage.properties.uploadsPart }
        _modify { yield &properties.uploadsPart }
    }

    /// The credential that replaces a placeholder in ``headers``.
    var signature: Signature? {
        get { storage.properties.signature }
        _modify { yield &properties.signature }
    }

    /// Whether a credential replaces a placeholder in ``headers``.
    package var isSigned: Bool { signature != nil }

    /// The fields of ``headers`` that may be sent only to certain origins. They are removed when
    /// the URL changes to another origin.
    var boundFields: [BoundFields] {
        get { storage.properties.boundFields }
        _modify { yield &properties.boundFields }
    }

    var location: Location {
        get { storage.properties.location }
        _modify {
            defer { removeForeignFields() }
            yield &properties.location
        }
    }

    /// The body. Defaults to ``Body/none``.
    ///
    /// If ``parameters`` also belong in the body, whichever was set last is used.
    public var content: Body {
        get { storage.properties.content }
        _modify {
            defer {
                properties.parametersAreLast = false
                template?.httpBody = nil  // clears a stream as well: Foundation stores both in one place
            }
            yield &properties.content
        }
    }

    /// The `URLRequest` with properties beyond those above, such as a body stream.
    ///
    /// Setting ``content`` removes the body of this `URLRequest`.
    package var template: URLRequest? {
        get { storage.properties.template }
        _modify { yield &properties.template }
    }

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
        self.init(method, location: .absolute(url))
    }

    init(_ method: Method, location: Location) {
        storage = Storage(Properties(method: method, location: location))
    }

    /// Creates a request that is equivalent to a `URLRequest`.
    public init(_ urlRequest: URLRequest) {
        self.init(Method(rawValue: urlRequest.httpMethod ?? "GET"), url: urlRequest.url?.absoluteString ?? "")
        headers = Headers((urlRequest.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        options.shouldHandleCookies = urlRequest.httpShouldHandleCookies
        options.cachePolicy = urlRequest.cachePolicy
        // A `URLRequest` has a timeout even if none was set.
        if urlRequest.timeoutInterval != 60 { options.timeout = Duration.clamping(seconds: urlRequest.timeoutInterval) }
        template = urlRequest
        if let data = urlRequest.httpBody { body = data }
        if let stream = urlRequest.httpBodyStream as? BodyStream { content = stream.body }
    }

    /// Creates a request from any value that can be sent.
    ///
    /// If the conversion fails, the error is thrown when this request is encoded.
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
                ?? WebServiceError(
                    .encoding, "urlRequest() of \(type(of: encodable)) failed; see the underlying error",
                    underlying: error)
            self.init(failing: failure)
        }
    }

    /// Creates a request that cannot be encoded.
    ///
    /// - Parameter error: The error to throw.
    package init(failing error: WebServiceError) {
        self.init(.GET, location: .invalid(error))
    }

    /// The location and format of ``Request/parameters``.
    public enum ParameterEncoding: Sendable, Hashable {
        /// The query of the URL for GET, HEAD and DELETE; for all other methods, a form in the body
        /// (`application/x-www-form-urlencoded`).
        case percent
        /// The query of the URL for GET, HEAD and DELETE; for all other methods, a JSON object in
        /// the body (`application/json`).
        case json
        /// The query of the URL, for all methods.
        case query
    }
}

extension Request {
    /// The absolute URL without ``queryParameters``.
    ///
    /// The value is `nil` if no valid URL can be formed. Sending the request then fails with an
    /// error that states the reason.
    public var url: URL? {
        get { try? location.url() }  // encoding the request throws the error
        set { location = .absolute(newValue?.absoluteString ?? "") }
    }

    /// The path as it was passed to the service, with its placeholders and without a query:
    /// `/brewers/{id}`.
    ///
    /// Use the template to group requests in metrics and traces. If you pass values as
    /// `pathParameters`, all requests of an operation have the same template. The template does not
    /// include the path of the base URL. It is `nil` for a request with an absolute URL and after
    /// ``url`` was set.
    public var pathTemplate: String? { location.template }

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
        return switch content.content {
        case .data(_, nil), .provider(nil, _): parameterEncoding == .json ? ContentType.json : ContentType.octetStream
        default: content.contentType
        }
    }

    /// Whether ``parameters`` belong in the URL.
    package var encodesParametersInURL: Bool { parameterEncoding == .query || method.encodesParametersInURL }

    /// Whether ``parameters`` are the body.
    package var parametersBelongInBody: Bool {
        parameters?.isEmpty == false && !encodesParametersInURL
            && (storage.properties.parametersAreLast || content.isNone)
    }

    /// Whether the body comes from a provider.
    package var hasBodyProvider: Bool {
        if case .provider = content.content { !parametersBelongInBody } else { false }
    }

    /// Whether a sequence produces the body, or a part of it, while it is sent.
    var hasStreamedBody: Bool { !content.streams.isEmpty && !parametersBelongInBody }
}

extension Request.ParameterEncoding {
    package var contentType: String {
        switch self {
        case .percent, .query: ContentType.formEncoded
        case .json: ContentType.json
        }
    }
}

extension Request {
    /// The request without its body and the parameters that belong in it.
    var withoutBody: Request {
        var request = self
        request.content = .none
        if parametersBelongInBody { request.parameters = nil }
        request.template?.httpBody = nil
        return request
    }

    /// Whether the body is a file, a stream or a multipart form.
    var isUpload: Bool {
        switch content.content {
        case .file, .stream, .multipart: true
        case .none, .data, .form, .provider, .invalid: false
        }
    }
}

extension Request: RedactedReflectable {
    /// A description that is safe to log: the method, and the URL without its query and without
    /// parameters of path segments such as `;jsessionid=…`.
    public var description: String {
        let text = url?.absoluteString.withoutParameters
        let name = ASCII.isToken(method.rawValue.utf8) ? method.rawValue : "(invalid method)"
        return "\(name) \(text ?? "(invalid URL)")"
    }
}

extension String {
    /// The URL without its query and without parameters of path segments such as `;jsessionid=…`.
    var withoutParameters: String {
        let path = utf8.prefix { $0 != UInt8(ascii: "?") }
        guard path.contains(UInt8(ascii: ";")) else { return String(Substring(path)) }
        let segments = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return segments.map { Substring($0.prefix { $0 != UInt8(ascii: ";") }) }.joined(separator: "/")
    }
}
