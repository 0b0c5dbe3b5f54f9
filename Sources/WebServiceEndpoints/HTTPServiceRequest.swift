public import Foundation
public import WebServiceCore

/// A typed request that ``HTTPEndpoint`` sends.
///
/// A conforming type defines the `Request`; an output of type `Void`, `Data`, `String` or any
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
    /// Returns the request to send. Called once per execution, in the background, and by
    /// `WebService.sessionTask(request:)`, on the calling thread.
    ///
    /// - Parameter service: The service that sends the request; it provides the base URL.
    /// - Throws: An error in the parameters. It becomes the error of the task, and no request is
    ///   sent.
    func request(for service: WebService) throws -> Request

    /// Validates a new response before it is decoded.
    ///
    /// By default, a status outside 200 to 299 throws `WebServiceError.Code.unacceptableStatus`.
    func validate(_ response: Response) throws

    /// Returns the decoded value.
    ///
    /// Called for new responses and for raw responses from a storage, which have only a body.
    func decode(_ response: Response) throws -> Output

    /// The decoder for a `Decodable` output. Defaults to `WebService.decoder` of the service that
    /// executes the request.
    var decoder: any BodyDecoder { get }

    /// Returns the bytes to store for a request that is stored raw (`RawStorableRequest`).
    ///
    /// Defaults to the body or, for an output of type `String`, to the text in UTF-8, because
    /// storages do not store the header field with the charset.
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

    /// The decoder of the service that executes the request; a `JSONDecoder` outside a service.
    public var decoder: any BodyDecoder { PerformingService.core?.decoder ?? JSONDecoder() }

    /// Returns the body.
    public func storedBody(of response: Response) -> Data? { response.data }
}

extension HTTPServiceRequest where Output: Decodable {
    /// Returns the body decoded by ``decoder``.
    ///
    /// An empty body decodes to `nil` if the output is optional.
    public func decode(_ response: Response) throws -> Output {
        try response.decoded(Output.self, decoder)
    }
}

extension HTTPServiceRequest where Output == Void {
    /// Ignores the body.
    public func decode(_ response: Response) {}
}

extension HTTPServiceRequest where Output == Data {
    /// Returns the body, empty if the response has none.
    public func decode(_ response: Response) throws -> Data { response.data }
}

extension HTTPServiceRequest where Output == String {
    /// Returns the body as a string in the charset of `Content-Type`, or in UTF-8 if it names none.
    public func decode(_ response: Response) throws -> String { try response.text() }

    /// Returns the text in UTF-8.
    public func storedBody(of response: Response) -> Data? {
        guard let text = try? response.text() else { return nil }  // such a body failed to decode and is not stored
        return Data(text.utf8)
    }
}
