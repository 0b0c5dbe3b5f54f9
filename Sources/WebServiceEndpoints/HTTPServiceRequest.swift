public import Foundation
public import WebServiceCore

/// A typed request that ``HTTPEndpoint`` sends.
///
/// A conforming type defines the `Request`. An output of type `Void`, `Data`, `String` or any
/// `Decodable` type is decoded automatically.
///
/// ```swift
/// struct Rename: HTTPServiceRequest, Hashable {
///     var id: Int
///     var name: String
///     typealias Output = Brewer
///
///     func request(for service: WebService) -> Request {
///         var request = service.request(.PUT, path: "/brewers/{id}", pathParameters: ["id": id])
///         request.formParameters = ["name": name]
///         return request
///     }
/// }
/// ```
public protocol HTTPServiceRequest: ServiceRequest {
    /// Returns the request to send. The endpoint calls this method once per execution, in the
    /// background. `WebService.sessionTask(request:)` calls it on the calling thread.
    ///
    /// - Parameter service: The service that sends the request. It provides the base URL.
    /// - Throws: An error in the parameters, which becomes the error of the task. No request is
    ///   sent.
    func request(for service: WebService) throws -> Request

    /// Validates a new response before it is decoded.
    ///
    /// By default, throws `WebServiceError.Code.unacceptableStatus` if the status is outside 200 to
    /// 299.
    func validate(_ response: Response) throws

    /// Returns the decoded value.
    ///
    /// Called for new responses, and for raw responses from a storage, which contain only a body.
    func decode(_ response: Response) throws -> Output

    /// The decoder for a `Decodable` output. Defaults to `WebService.decoder` of the service that
    /// executes the request.
    var decoder: any BodyDecoder { get }

    /// Returns the bytes to store for a request that is stored raw (`RawStorableRequest`).
    ///
    /// Defaults to the body. For an output of type `String`, defaults to the text in UTF-8, because
    /// storages do not store the header field that contains the charset.
    func storedBody(of response: Response) -> Data?
}

extension HTTPServiceRequest {
    /// Accepts a status of 200 to 299.
    public func validate(_ response: Response) throws {
        guard response.isSuccess else {
            throw WebServiceError(
                .unacceptableStatus, "the server responded with \(response.statusText)", response: response)
        }
    }

    /// The decoder of the service that executes the request, or a `JSONDecoder` outside a service.
    public var decoder: any BodyDecoder { PerformingService.core?.decoder ?? JSONDecoder() }

    /// Returns the body.
    public func storedBody(of response: Response) -> Data? { response.data }
}

extension HTTPServiceRequest where Output: Decodable {
    /// Returns the body decoded by ``decoder``.
    ///
    /// If the output is optional, an empty body is decoded to `nil`.
    public func decode(_ response: Response) throws -> Output {
        try response.decoded(Output.self, decoder)
    }
}

extension HTTPServiceRequest where Output == Void {
    /// Ignores the body.
    public func decode(_ response: Response) {}
}

extension HTTPServiceRequest where Output == Data {
    /// Returns the body, or empty data if the response has no body.
    public func decode(_ response: Response) throws -> Data { response.data }
}

extension HTTPServiceRequest where Output == String {
    /// Returns the body as a string in the charset of `Content-Type`, or in UTF-8 if no charset is
    /// given.
    public func decode(_ response: Response) throws -> String { try response.text() }

    /// Returns the text in UTF-8.
    public func storedBody(of response: Response) -> Data? {
        guard let text = try? response.text() else { return nil }  // decoding has already failed, so nothing is stored
        return Data(text.utf8)
    }
}
