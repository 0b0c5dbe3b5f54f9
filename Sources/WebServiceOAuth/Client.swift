import Foundation
import SystemCrypto
public import WebServiceCore

extension OAuth {
    /// A client of an authorization server: its identifier and its authentication.
    ///
    /// The description of this type omits the secret and the key.
    public struct Client: Sendable {
        private enum Authentication: Sendable {
            case none
            case basic(secret: String)
            case body(secret: String)
            case key(SigningKey, id: String?, audience: String?)
        }

        /// The identifier of the client.
        public let id: String
        private let authentication: Authentication

        /// Returns a client that cannot keep a secret, such as an app or a command-line program.
        public static func `public`(id: String) -> Client { Client(id: id, authentication: .none) }

        /// Returns a client with a secret (RFC 6749, section 2.3.1).
        ///
        /// - Parameters:
        ///   - secret: The secret.
        ///   - id: The identifier.
        ///   - inBody: Whether the secret is sent in the body instead of as Basic authentication.
        ///     Defaults to `false`.
        public static func secret(_ secret: String, id: String, inBody: Bool = false) -> Client {
            Client(id: id, authentication: inBody ? .body(secret: secret) : .basic(secret: secret))
        }

        /// Returns a client with a private key: `private_key_jwt` with ES256 (RFC 7523).
        ///
        /// - Parameters:
        ///   - key: The private key. Its public part must be registered with the server.
        ///   - id: The identifier of the client.
        ///   - keyID: The identifier of the key. Defaults to `nil`, which sends none.
        ///   - audience: The audience of the assertions. Defaults to `nil`, which means the issuer.
        ///     Some servers require the URL of the token endpoint.
        public static func privateKey(
            _ key: SigningKey, id: String, keyID: String? = nil, audience: String? = nil
        ) -> Client {
            Client(id: id, authentication: .key(key, id: keyID, audience: audience))
        }

        /// Adds the client's authentication to a request and its form.
        func authenticate(_ request: inout Request, _ form: inout Parameters, issuer: URL, date: Date) throws {
            form.append("client_id", id)  // some servers require it even with Basic
            switch authentication {
            case .none: break
            case .basic(let secret):
                let credential = try Credential.basic(user: Self.encoded(id), password: Self.encoded(secret))
                request.headers[credential.header] = credential.value
            case .body(let secret): form.append("client_secret", secret)
            case .key(let key, let keyID, let audience):
                let now = Int(date.timeIntervalSince1970)
                form.append("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
                let claims: [String: JSONValue] = [
                    "iss": .string(id), "sub": .string(id), "aud": .string(audience ?? issuer.absoluteString),
                    "jti": .string(Data.random(16).base64URL), "iat": JSONValue(now),
                    "exp": JSONValue(now + 60),
                ]
                let header = keyID.map { ["kid": JSONValue.string($0)] } ?? [:]
                form.append("client_assertion", try key.key.token(header: header, claims: claims))
            }
        }

        /// Returns a form-encoded string (RFC 6749, appendix B), with spaces encoded as `%20`.
        private static func encoded(_ text: String) -> String {
            let allowed = CharacterSet(
                charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._")
            return text.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        }
    }
}

extension OAuth.Client: RedactedReflectable {
    /// The identifier of the client.
    public var description: String { id }
}
