import Foundation
public import WebServiceCore
import WebServiceStorage

/// A JSON object that a server has sent, with typed access to its members.
///
/// A member that is `null` counts as missing. An empty string counts as missing if the member is a
/// string other than a URL, as for the parameters of requests (RFC 6749, section 3.2). A member of
/// another type is an error, and so are repeated names.
struct ServerDocument: Sendable {
    /// A kind of document: its name and its code in errors.
    struct Kind: Sendable {
        let name: String
        var code = WebServiceError.Code.invalidAuthorization
    }

    let kind: Kind
    let members: [String: JSONValue]

    /// - Throws: An error with the code of the kind if the body is not a JSON object that is
    ///   declared as JSON.
    init(_ response: Response, _ kind: Kind) throws {
        guard Self.isJSON(response) else {
            throw WebServiceError(
                kind.code, "the \(kind.name) is not JSON; check that the URL is that of an OAuth server")
        }
        // The parser's error is not included, because it may quote the body.
        guard let members = try? JSON.strictValue(from: response.data).object else {
            throw WebServiceError(kind.code, "the \(kind.name) is not a JSON object")
        }
        (self.kind, self.members) = (kind, members)
    }

    static func isJSON(_ response: Response) -> Bool {
        let type = MediaType.essence(response.header(.contentType) ?? "")
        return type == "application/json" || type.hasPrefix("application/") && type.hasSuffix("+json")
    }

    /// Returns the error for an unsuccessful response.
    static func refusal(_ response: Response, _ kind: Kind) -> WebServiceError {
        guard let document = try? ServerDocument(response, kind),  // other bodies do not describe an error
            let failure = AuthorizationFailure(document.members.compactMapValues(\.string))
        else {
            let isCompleted = (200...399).contains(response.status)
            return WebServiceError(
                isCompleted ? kind.code : .authorizationRefused,
                "the server responded with status \(response.status) instead of a \(kind.name)",
                response: response.withoutBody)
        }
        var error = failure.error
        error.response = response.withoutBody
        return error
    }

    func failure(_ reason: String) -> WebServiceError { WebServiceError(kind.code, "the \(kind.name) \(reason)") }

    private func value<Value>(_ name: String, _ type: String, _ convert: (JSONValue) -> Value?) throws -> Value? {
        guard let member = members[name], !member.isNull else { return nil }
        guard let value = convert(member) else { throw failure("has a member '\(name)' that is not \(type)") }
        return value
    }

    /// Returns a string that consists of allowed ASCII characters.
    private func text(_ name: String, _ type: String, allowed: ClosedRange<UInt8>) throws -> String? {
        let text = try value(name, type) { $0.string.flatMap { $0.utf8.allSatisfy(allowed.contains) ? $0 : nil } }
        return text == "" ? nil : text
    }

    /// Returns a string of visible ASCII, which a field value or a parameter may contain.
    func token(_ name: String) throws -> String? { try text(name, "visible ASCII", allowed: 0x21...0x7E) }

    /// Returns a string of visible ASCII and spaces, such as the identifier of a client.
    func string(_ name: String) throws -> String? { try text(name, "printable ASCII", allowed: 0x20...0x7E) }

    func bool(_ name: String) throws -> Bool? { try value(name, "a Boolean", \.bool) }

    func strings(_ name: String) throws -> [String]? {
        try value(name, "an array of strings") { member in
            let strings = member.array?.compactMap(\.string)
            return strings?.count == member.array?.count ? strings : nil
        }
    }

    /// Returns a URL that the peer allows.
    func url(_ name: String, _ peer: Peer) throws -> URL? {
        try value(name, "an https URL") { $0.string.flatMap(peer.url) }
    }

    /// Returns a number of seconds, which must not be negative.
    func seconds(_ name: String) throws -> Duration? {
        try value(name, "a number of seconds") { $0.double.flatMap { $0 >= 0 ? .clamping(seconds: $0) : nil } }
    }

    /// Returns a member, or throws an error if it is missing.
    func required<Value>(_ name: String, _ read: (String) throws -> Value?) throws -> Value {
        guard let value = try read(name) else { throw failure("has no '\(name)'") }
        return value
    }
}

/// The error code with which an authorization server refused a request (RFC 6749, sections 4.1.2.1
/// and 5.2).
///
/// The description of this type contains only the code.
public struct AuthorizationFailure: Error, Sendable, Hashable {
    /// The error code, such as `access_denied` or `invalid_grant`.
    public let code: String
    /// The server's explanation for the developer; `nil` if there is none. It may contain any text.
    public let detail: String?

    /// - Returns: `nil` if there is no valid code.
    init?(_ parameters: [String: String]) {
        guard let code = parameters["error"], (1...64).contains(code.utf8.count),
            code.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || "_-.:/".utf8.contains($0) })
        else { return nil }
        (self.code, detail) = (code, parameters["error_description"])
    }

    var error: WebServiceError {
        WebServiceError(
            .authorizationRefused, "the authorization server refused the request: \(code)", underlying: self)
    }
}

extension AuthorizationFailure: RedactedReflectable {
    /// The error code.
    public var description: String { code }
}

extension WebServiceError {
    /// The error code of the authorization server; `nil` for all other errors.
    public var authorizationFailure: AuthorizationFailure? {
        underlying as? AuthorizationFailure ?? (underlying as? WebServiceError)?.authorizationFailure
    }
}

extension OAuth.Tokens {
    /// Creates the tokens of a token response (RFC 6749, section 5.1).
    ///
    /// - Parameters:
    ///   - date: The date at which the lifetime of the tokens begins.
    ///   - isBound: Whether the tokens must be bound to a key (RFC 9449, section 5).
    init(_ document: ServerDocument, receivedAt date: Date, isBound: Bool) throws {
        let accessToken = try document.required("access_token", document.token)
        let type = try document.required("token_type", document.string)
        let scheme = isBound ? "DPoP" : "Bearer"
        guard type.equalsIgnoringASCIICase(scheme) else {
            throw document.failure("has a 'token_type' other than \(scheme)")
        }
        let lifetime = try document.seconds("expires_in")
        self.init(
            Credential(value: "\(scheme) \(accessToken)", expiresIn: lifetime, from: date),
            refreshToken: try document.token("refresh_token"),
            scopes: try document.string("scope").map { $0.split(separator: " ").map(String.init) })
    }
}
