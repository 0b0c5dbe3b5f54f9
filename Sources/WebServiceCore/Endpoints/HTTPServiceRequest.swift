public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A typed request that ``HTTPEndpoint`` performs: it says its ``Request``, and the value is decoded by itself for an output of `Void`, `Data`, `String` or
/// any `Decodable` type.
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
    /// The request to send. Called once for each performance, in the background.
    ///
    /// - Parameter service: Knows the base URL.
    /// - Throws: Whatever is wrong with the parameters; the error of the request, and nothing is sent.
    func request(for service: WebService) throws -> Request

    /// Looks at a new answer before it is decoded. Left out, a status outside 200 to 299 is ``WebServiceError/Code/unacceptableStatus``.
    func validate(_ response: Response) throws

    /// Makes the value. Called for new answers and, with nothing but the body in it, for those that a storage kept raw.
    func decode(_ response: Response) throws -> Output

    /// What decodes a `Decodable` output. Left out, it is a `JSONDecoder`.
    var decoder: any BodyDecoder { get }

    /// What a storage keeps of an answer when the request is stored raw (``RawStorableRequest``). Left out, it is the body; for an output of `String`
    /// the text in UTF-8, because no storage keeps the header fields that name its charset.
    func storedBody(of response: Response) -> Data?
}

extension HTTPServiceRequest {
    /// Accepts 200 to 299.
    public func validate(_ response: Response) throws {
        guard response.isSuccess else {
            throw WebServiceError(
                .unacceptableStatus, "the status is \(response.status)", response: response.urlResponse, body: response.data
            )
        }
    }

    /// A decoder for JSON.
    public var decoder: any BodyDecoder { JSONDecoder() }

    /// The body.
    public func storedBody(of response: Response) -> Data? { response.data }
}

extension HTTPServiceRequest where Output: Decodable {
    /// The body, decoded by ``decoder``; an optional output takes an empty body as `nil`.
    public func decode(_ response: Response) throws -> Output {
        try response.decoded(Output.self, decoder)
    }
}

extension HTTPServiceRequest where Output == Void {
    /// Nothing: a body is not looked at.
    public func decode(_ response: Response) {}
}

extension HTTPServiceRequest where Output == Data {
    /// The body; empty when there is none.
    public func decode(_ response: Response) throws -> Data { response.data }
}

extension HTTPServiceRequest where Output == String {
    /// The body as text in the charset that `Content-Type` names, UTF-8 without one.
    public func decode(_ response: Response) throws -> String { try response.text() }

    /// The text in UTF-8.
    public func storedBody(of response: Response) -> Data? {
        guard let text = try? response.text() else { return nil }  // what is no text failed to decode and is not stored
        return Data(text.utf8)
    }
}
