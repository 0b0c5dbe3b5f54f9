public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension WebServiceError {
    /// The status of the response; `nil` without one.
    public var status: Int? { (response as? HTTPURLResponse)?.statusCode }

    /// The body decoded to a type of one's own, as when a server describes its errors.
    ///
    /// - Throws: What the decoder throws; ``Code/emptyResponse`` when there is no body.
    public func decodeBody<Value: Decodable>(_ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder()) throws -> Value {
        guard let body, !body.isEmpty else {
            throw WebServiceError(.emptyResponse, "the error has no body to decode a \(type) from", request: request, response: response)
        }
        return try JSON.decode(type, from: body, using: decoder)
    }

    /// The problem that the server describes, when the body is `application/problem+json` (RFC 9457).
    public var problem: ProblemDetails? {
        let type = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Type") ?? ""
        guard MediaType.essence(type) == "application/problem+json" else { return nil }
        // Not with JSONDecoder on Linux, which takes seconds for 512 levels of values of any type.
        let json = try? decodeBody(JSONValue.self, decoder: JSONValue.Parser())  // a body that is no object describes no problem
        guard case .object(let members)? = json else { return nil }
        return ProblemDetails(members)
    }

    /// The beginning of the body as text of at most 200 characters with secrets and control characters replaced, for a person who looks for what is
    /// wrong with it; `nil` when it is no text. It is in no description.
    public var bodySnippet: String? {
        let type = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Type")
        return body.flatMap { Redaction.standard.body($0.prefix(800), contentType: type) }.map { String($0.prefix(200)).escapingControls }
    }
}

/// What a server says of a failure (RFC 9457).
public struct ProblemDetails: Sendable, Hashable, Decodable {
    /// A URI that names the kind of problem; `about:blank` when there is none.
    public let type: String
    /// What kind of problem it is, for people.
    public let title: String?
    /// The status, as the origin server meant it.
    public let status: Int?
    /// What is wrong this time, for people.
    public let detail: String?
    /// A URI that names this occurrence.
    public let instance: String?
    /// Every other member.
    public let extensions: [String: JSONValue]

    /// Decodes a problem document; members of the wrong type are ignored, as the standard asks.
    public init(from decoder: any Decoder) throws {
        self.init(try [String: JSONValue](from: decoder))
    }

    fileprivate init(_ members: [String: JSONValue]) {
        var members = members
        type = members.removeValue(forKey: "type")?.string ?? "about:blank"
        title = members.removeValue(forKey: "title")?.string
        status = members.removeValue(forKey: "status")?.integer
        detail = members.removeValue(forKey: "detail")?.string
        instance = members.removeValue(forKey: "instance")?.string
        extensions = members
    }
}
