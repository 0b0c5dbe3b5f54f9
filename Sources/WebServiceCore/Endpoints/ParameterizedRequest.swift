import Foundation

/// A typed request that says method, path and parameters, and has its ``Request`` made of them.
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
    /// The method. Left out, it is GET.
    var method: Request.Method { get }

    /// The path below the base URL; see ``WebService/absoluteURL(_:pathParameters:)``.
    var path: String { get }

    /// The values of the placeholders in the path. Left out, there are none.
    var pathParameters: Parameters? { get }

    /// Header fields. Left out, there are none.
    var headers: Headers { get }

    /// What is asked for. Left out, there is none.
    var parameters: RequestParameters { get }

    /// Where simple parameters go; `nil` to let the method choose: the query for GET, HEAD and DELETE, else a JSON body. Left out, it is `nil`.
    var parameterPlacement: ParameterPlacement? { get }

    /// Changes the request that was made of all this, such as its limits of time, its error mapper or its interceptors. Left out, it changes nothing.
    func configure(_ request: inout Request)
}

/// What a ``ParameterizedRequest`` is asked with.
public enum RequestParameters: Sendable {
    /// Nothing.
    case none
    /// Names and values.
    case simple(Parameters)
    /// A body of parts.
    case multipart(MultipartFormData)
}

/// Where parameters go.
public enum ParameterPlacement: Sendable, Hashable {
    /// Into the query of the URL, whatever the method.
    case query
    /// Into a body as a form: `application/x-www-form-urlencoded`.
    case form
    /// Into a body as a JSON object.
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

    /// The method chooses.
    public var parameterPlacement: ParameterPlacement? { nil }

    /// Changes nothing.
    public func configure(_ request: inout Request) {}

    /// The request, made of all that.
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` for parameters that JSON cannot say.
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
