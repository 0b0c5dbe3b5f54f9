import Foundation

/// A typed request whose ``Request`` is created from its method, path and parameters.
///
/// ```swift
/// struct OrdersRequest: ParameterizedRequest {
///     var skip: Int
///     typealias Output = [Order]
///
///     var path: String { "/orders" }
///     var parameters: RequestParameters { .simple(["skip": skip, "take": 20]) }
/// }
/// ```
public protocol ParameterizedRequest: HTTPServiceRequest {
    /// The method. Defaults to GET.
    var method: Request.Method { get }

    /// The path relative to the base URL; see ``WebService/absoluteURL(_:pathParameters:)``.
    var path: String { get }

    /// The values of the placeholders in the path. Defaults to `nil`.
    var pathParameters: Parameters? { get }

    /// The header fields. Defaults to none.
    var headers: Headers { get }

    /// The parameters of the request. Defaults to none.
    var parameters: RequestParameters { get }

    /// The placement of simple parameters.
    ///
    /// Defaults to `nil`: the method determines it, the query for GET, HEAD and DELETE, and a JSON
    /// body for all others.
    var parameterPlacement: ParameterPlacement? { get }

    /// Changes the request after it has been created from the other members.
    ///
    /// For example, it can set the timeout, the error mapper or interceptors. Has no effect by
    /// default.
    func configure(_ request: inout Request)
}

/// The parameters of a ``ParameterizedRequest``.
public enum RequestParameters: Sendable {
    /// No parameters.
    case none
    /// Names and values.
    case simple(Parameters)
    /// A multipart form.
    case multipart(MultipartFormData)
}

/// The placement of parameters in a request.
public enum ParameterPlacement: Sendable, Hashable {
    /// The query of the URL, with any method.
    case query
    /// A form in the body: `application/x-www-form-urlencoded`.
    case form
    /// A JSON object in the body.
    case json
}

extension ParameterizedRequest {
    /// GET.
    public var method: Request.Method { .GET }

    /// No placeholders.
    public var pathParameters: Parameters? { nil }

    /// No header fields.
    public var headers: Headers { Headers() }

    /// No parameters.
    public var parameters: RequestParameters { .none }

    /// `nil`: the method determines the placement.
    public var parameterPlacement: ParameterPlacement? { nil }

    /// Has no effect.
    public func configure(_ request: inout Request) {}

    /// Creates the request from the other members.
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` for parameters that JSON cannot represent.
    public func request(for service: WebService) throws -> Request {
        var request = service.request(method, path: path, pathParameters: pathParameters)
        request.headers = headers
        switch parameters {
        case .none: break
        case .multipart(let form): request.multipart = form
        case .simple(let parameters):
            switch parameterPlacement ?? (method.encodesParametersInURL ? .query : .json) {
            case .query: request.queryParameters = parameters
            case .form: request.formParameters = parameters
            case .json: request.content = .data(try parameters.jsonData(), contentType: ContentType.json)
            }
        }
        configure(&request)
        return request
    }
}
