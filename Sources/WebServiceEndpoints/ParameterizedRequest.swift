import Foundation
public import WebServiceCore

/// A typed request whose `Request` is created from its method, path and parameters.
///
/// ```swift
/// struct OrdersRequest: ParameterizedRequest {
///     var skip: Int
///     typealias Output = [Order]
///
///     var path: String { "/orders" }
///     var parameters: Parameters { ["skip": skip, "take": 20] }
/// }
///
/// struct UpdateIssue: ParameterizedRequest {
///     var issue: Issue
///     typealias Output = Issue
///
///     var method: Request.Method { .PUT }
///     var path: String { "/issues/{id}" }
///     var pathParameters: Parameters { ["id": issue.id] }
///     var body: some Encodable { issue }
/// }
/// ```
public protocol ParameterizedRequest: HTTPServiceRequest {
    /// The method. Defaults to GET.
    var method: Request.Method { get }

    /// The path relative to the base URL; see `WebService.absoluteURL(_:pathParameters:)`.
    var path: String { get }

    /// The values of the placeholders in the path. Defaults to none.
    var pathParameters: Parameters { get }

    /// The header fields. They are added to `WebService.headers` and replace fields with the same
    /// name. Defaults to none.
    var headers: Headers { get }

    /// The parameters of the request. Defaults to none.
    var parameters: Parameters { get }

    /// A multipart form to send as the body. Defaults to `nil`.
    var multipart: MultipartFormData? { get }

    /// The location and format of the parameters. Defaults to `percent`, as in `Request`.
    ///
    /// If the request has a ``body-swift.property`` or a form, the parameters are added to the
    /// query.
    var parameterEncoding: Request.ParameterEncoding { get }

    /// A value to send as a JSON body. Defaults to `nil`.
    var body: Body { get }

    /// The type of ``body-swift.property``.
    associatedtype Body: Encodable = Never?

    /// The encoder of ``body-swift.property``. Defaults to `WebService.encoder` of the service
    /// that executes the request.
    var encoder: any BodyEncoder { get }

    /// Changes the request after it has been created from the other members.
    ///
    /// For example, this method can set the timeout, the error mapper or the interceptors. The
    /// default implementation does nothing.
    func configure(_ request: inout Request)
}

extension ParameterizedRequest {
    /// The type of ``method-swift.property``.
    public typealias Method = Request.Method

    /// The method GET.
    public var method: Request.Method { .GET }

    /// An empty list. The path has no placeholders.
    public var pathParameters: Parameters { [:] }

    /// An empty list. The request adds no header fields.
    public var headers: Headers { Headers() }

    /// An empty list. The request has no parameters.
    public var parameters: Parameters { [:] }

    /// `nil`. The request has no multipart form.
    public var multipart: MultipartFormData? { nil }

    /// `percent`, the default parameter encoding of `Request`.
    public var parameterEncoding: Request.ParameterEncoding { .percent }

    /// The encoder of the service that executes the request, or a `JSONEncoder` outside a service.
    public var encoder: any BodyEncoder {
        if let encoder = PerformingService.core?.encoder { encoder } else { JSONEncoder() }
    }

    /// Leaves the request unchanged.
    public func configure(_ request: inout Request) {}

    /// Creates the request from the other members.
    ///
    /// - Throws: `WebServiceError.Code.encoding` if the body cannot be encoded, or if there is both
    ///   a body and a multipart form.
    public func request(for service: WebService) throws -> Request {
        let values = pathParameters.isEmpty ? nil : pathParameters
        var request = service.request(method, path: path, pathParameters: values)
        request.headers = headers.adding(request.headers)
        request.parameterEncoding = parameterEncoding
        let hasBody = (body as? any OptionalValue)?.isNilValue != true
        if hasBody {
            let encoder: any BodyEncoder = PerformingService.$core.withValue(service.core) { self.encoder }
            try request.serialize(body, encoder: encoder)
        }
        if let multipart {
            guard !hasBody else {
                throw WebServiceError(
                    .encoding, "the request has both a body and a multipart form; return nil for one of them")
            }
            request.multipart = multipart
        }
        let parameters = parameters
        if !parameters.isEmpty {
            if !request.content.isNone { request.parameterEncoding = .query }
            request.parameters = parameters
        }
        configure(&request)
        return request
    }
}

extension ParameterizedRequest where Body == Never? {
    /// `nil`. The request has no body.
    public var body: Never? { nil }
}
