public import Foundation
public import WebServiceCore

extension OAuth {
    /// The metadata with which a client registers itself (RFC 7591, section 2).
    public struct Registration: Sendable {
        /// How the client authenticates at the token endpoint.
        public enum Authentication: String, Sendable, Codable {
            /// The client has no secret.
            case none
            /// The client sends a secret as Basic authentication.
            case basic = "client_secret_basic"
            /// The client sends a secret in the body.
            case body = "client_secret_post"
        }

        /// The name that the server shows to users.
        public var name: String
        /// The redirect URLs. For a ``LoopbackReceiver``, servers should accept any port.
        public var redirects: [URL]
        /// The grants that the client uses. Defaults to `authorization_code` and `refresh_token`.
        public var grants = ["authorization_code", "refresh_token"]
        /// The requested scopes; empty for the server's default.
        public var scopes: [String] = []
        /// How the client authenticates. Defaults to `none`.
        public var authentication = Authentication.none
        /// Further members of the request, such as `client_uri` or `software_statement`. Members
        /// that are set from other properties have no effect.
        public var members: [String: JSONValue] = [:]

        /// Creates metadata.
        public init(name: String, redirects: [URL]) {
            self.name = name
            self.redirects = redirects
        }
    }

    /// A client as a server has registered it. Store it like a password to avoid registering again.
    ///
    /// The description of this type omits the secret.
    public struct RegisteredClient: Sendable, Hashable, Codable {
        /// The identifier of the client.
        public let id: String
        /// The secret of the client; `nil` if there is none.
        public let secret: String?
        /// The date at which the secret expires; `nil` if it does not expire.
        public let secretExpires: Date?
        /// How the client authenticates, which may differ from the requested authentication.
        public let authentication: Registration.Authentication

        /// The client for ``OAuth``.
        public var client: Client {
            guard let secret, authentication != .none else { return .public(id: id) }
            return .secret(secret, id: id, inBody: authentication == .body)
        }
    }

    /// Registers a client with a server (RFC 7591).
    ///
    /// - Parameters:
    ///   - registration: The metadata of the client.
    ///   - metadata: The metadata of the server; see
    ///     ``ServerMetadata/discover(_:service:allowsLoopbackHTTP:)``.
    ///   - accessToken: The initial access token, if the server requires one. Defaults to `nil`.
    ///   - service: See ``init(issuer:client:resources:dpop:service:origins:allowsLoopbackHTTP:)``.
    ///   - origins: See there.
    ///   - allowsLoopbackHTTP: See there.
    /// - Throws: `WebServiceError.Code.authorizationRefused`, for example with
    ///   `invalid_redirect_uri`; `WebServiceError.Code.invalidAuthorization` for a response that
    ///   cannot be used; `WebServiceError.Code.invalidServerMetadata` if the server has no usable
    ///   registration endpoint; or an error of the request.
    public static func register(
        _ registration: Registration, metadata: ServerMetadata, accessToken: String? = nil, service: WebService? = nil,
        origins: Set<Origin> = [], allowsLoopbackHTTP: Bool = false
    ) async throws -> RegisteredClient {
        let peer = Peer(service, nil, origins, allowsLoopbackHTTP: allowsLoopbackHTTP)
        let endpoint = try peer.endpoint(\.registrationEndpoint, "registration endpoint", of: metadata)
        var request = peer.request(.POST, endpoint)
        if let accessToken { request.headers[.authorization] = Credential.bearer(accessToken).value }
        try request.serialize(registration.document)
        let response = try await peer.response(to: request)
        let kind = ServerDocument.Kind(name: "registration response")
        guard [200, 201].contains(response.status) else { throw ServerDocument.refusal(response, kind) }
        return try RegisteredClient(ServerDocument(response, kind), to: registration, at: peer.clock.date)
    }
}

extension OAuth.Registration {
    fileprivate var document: JSONValue {
        var document = members
        document["client_name"] = .string(name)
        document["redirect_uris"] = .array(redirects.map { .string($0.absoluteString) })
        document["grant_types"] = .array(grants.map(JSONValue.string))
        document["response_types"] = .array(grants.contains("authorization_code") ? [.string("code")] : [])
        document["token_endpoint_auth_method"] = .string(authentication.rawValue)
        document["scope"] = scopes.joinedScopes.map(JSONValue.string)
        return .object(document)
    }
}

extension OAuth.RegisteredClient: RedactedReflectable {
    fileprivate init(_ document: ServerDocument, to registration: OAuth.Registration, at date: Date) throws {
        id = try document.required("client_id", document.string)
        secret = try document.string("client_secret")
        let expires = try document.seconds("client_secret_expires_at")
        secretExpires = expires.flatMap { $0 > .zero ? Date(timeIntervalSince1970: $0.inSeconds) : nil }
        guard secretExpires.map({ $0 > date }) ?? true else { throw document.failure("has a secret that has expired") }
        let method = try document.string("token_endpoint_auth_method") ?? registration.authentication.rawValue
        guard let authentication = OAuth.Registration.Authentication(rawValue: method),
            authentication == .none ? registration.authentication == .none : secret != nil
        else { throw document.failure("requires an authentication method that the client does not support") }
        self.authentication = authentication
        let redirects = try document.strings("redirect_uris").map(Set.init)
        guard redirects.map({ $0 == Set(registration.redirects.map(\.absoluteString)) }) ?? true else {
            throw document.failure("has redirect URLs other than the requested ones")
        }
    }

    /// The identifier of the client.
    public var description: String { id }
}
