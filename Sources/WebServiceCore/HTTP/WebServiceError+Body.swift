public import Foundation

extension WebServiceError {
    /// The status code of the response; `nil` if there is no response.
    public var status: Int? { response.flatMap { $0.isHTTP ? $0.status : nil } }

    /// Returns the body decoded as a custom type, such as a server's description of its errors.
    ///
    /// - Throws: The error of the decoder, or ``Code/emptyResponse`` if there is no body.
    public func decodeBody<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder()
    ) throws -> Value {
        guard let body, !body.isEmpty else {
            throw WebServiceError(
                .emptyResponse, "the error has no body to decode \(type) from; check 'body' first", request: request,
                response: response)
        }
        return try JSON.decode(type, from: body, using: decoder)
    }

    /// The problem that the server describes in an `application/problem+json` body (RFC 9457).
    ///
    /// `nil` for any other body.
    public var problem: ProblemDetails? {
        let type = response?.header(.contentType) ?? ""
        guard MediaType.essence(type) == "application/problem+json" else { return nil }
        let json = try? decodeBody(JSONValue.self)  // other bodies describe no problem
        guard case .object(let members)? = json else { return nil }
        return ProblemDetails(members)
    }
}

/// The details of a problem that a server reports (RFC 9457).
public struct ProblemDetails: Sendable, Hashable, Decodable {
    /// A URI that identifies the type of the problem. Defaults to `about:blank`.
    public let type: String
    /// A human-readable summary of the type of the problem.
    public let title: String?
    /// The status code set by the origin server.
    public let status: Int?
    /// A human-readable explanation of this occurrence of the problem.
    public let detail: String?
    /// A URI that identifies this occurrence of the problem.
    public let instance: String?
    /// All other members.
    public let extensions: [String: JSONValue]

    /// Creates problem details by decoding a problem document.
    ///
    /// Members of the wrong type are ignored, as the standard requires.
    public init(from decoder: any Decoder) throws {
        self.init(try [String: JSONValue](from: decoder))
    }

    fileprivate init(_ members: [String: JSONValue]) {
        var members = members
        type = members.removeValue(forKey: "type")?.string ?? "about:blank"
        title = members.removeValue(forKey: "title")?.string
        status = members.removeValue(forKey: "status")?.int
        detail = members.removeValue(forKey: "detail")?.string
        instance = members.removeValue(forKey: "instance")?.string
        extensions = members
    }
}
