public import Foundation
public import WebServiceCore
public import WebServiceStorage

/// A client of one authorization server that obtains, refreshes and revokes tokens (OAuth 2.1).
///
/// ```swift
/// let oauth = OAuth(issuer: issuer, client: .public(id: "my-tool"))
/// let tokens = try await oauth.logIn(scopes: ["profile"]) { url in print("Open \(url)") }
/// service.interceptors = [.retry(), Authentication(oauth.tokenSource(tokens))]
/// ```
/// - The endpoints come from the server's metadata (RFC 8414, OpenID Connect Discovery), which is
///   requested before the first use. The metadata must name the same issuer.
/// - All URLs of the server must be https (apart from `allowsLoopbackHTTP`), and all endpoints must
///   have the issuer's `Origin` or one of `origins`. Redirects are not followed, and responses of
///   more than 256 KiB are refused.
/// - Errors and the records of observers contain no authorization code, verifier, secret or token.
///
/// Requests are sent with a copy of `service` that is made when this object is created, without its
/// `Authentication`, idempotency keys and groups of endpoints. Interceptors that are installed
/// later do not apply to these requests. A retry policy repeats a token request only if nothing of
/// it was sent, because a code is valid only once. All members may be used from any thread.
public final class OAuth: Sendable {
    /// A credential, the refresh token that obtains the next credential, and the granted scopes.
    public typealias Tokens = TokenFile.Tokens

    let client: Client
    let resources: [URL]
    let peer: Peer
    private let issuer: URL
    private let known = Mutex<ServerMetadata?>(nil)

    /// Creates a client of a server that publishes its metadata. No request is sent.
    ///
    /// - Parameters:
    ///   - issuer: The issuer, exactly as in the server's metadata, for example with or without a
    ///     trailing slash.
    ///   - client: The client's identifier and authentication.
    ///   - resources: The resources that the tokens are for (RFC 8707). Defaults to none.
    ///   - dpop: An interceptor with the key that the tokens are bound to. Defaults to `nil`, which
    ///     means bearer tokens.
    ///   - service: A service whose session, clock and observers are used. Defaults to `nil`, which
    ///     means a new service.
    ///   - origins: Further origins that endpoints may have. Defaults to none.
    ///   - allowsLoopbackHTTP: Whether http is allowed for 127.0.0.1, `[::1]` and `localhost`, for
    ///     development. Defaults to `false`.
    public init(
        issuer: URL, client: Client, resources: [URL] = [], dpop: DPoP? = nil, service: WebService? = nil,
        origins: Set<Origin> = [], allowsLoopbackHTTP: Bool = false
    ) {
        (self.issuer, self.client, self.resources) = (issuer, client, resources)
        peer = Peer(service, dpop, origins, allowsLoopbackHTTP: allowsLoopbackHTTP)
    }

    /// Creates a client of a server whose metadata is known, for example because it publishes none.
    ///
    /// The parameters are those of
    /// ``init(issuer:client:resources:dpop:service:origins:allowsLoopbackHTTP:)``.
    public convenience init(
        metadata: ServerMetadata, client: Client, resources: [URL] = [], dpop: DPoP? = nil, service: WebService? = nil,
        origins: Set<Origin> = [], allowsLoopbackHTTP: Bool = false
    ) {
        self.init(
            issuer: metadata.issuer, client: client, resources: resources, dpop: dpop, service: service,
            origins: origins, allowsLoopbackHTTP: allowsLoopbackHTTP)
        known.withLock { $0 = metadata }
    }

    /// Returns the server's metadata. After it has been received, it is not requested again.
    ///
    /// - Throws: `WebServiceError.Code.invalidServerMetadata`,
    ///   `WebServiceError.Code.authorizationRefused` after a status of 500 or above, or an error of
    ///   the requests.
    public func metadata() async throws -> ServerMetadata {
        if let metadata = known.withLock(\.self) { return metadata }
        let metadata = try await ServerMetadata.discover(issuer, peer)
        known.withLock { $0 = metadata }
        return metadata
    }

    func endpoint(_ read: (ServerMetadata) -> URL?, _ name: String) async throws -> URL {
        let metadata = try await metadata()
        return try peer.endpoint(read, name, of: metadata)
    }

    // MARK: - Tokens

    /// Sends a token request and returns the tokens in the response.
    func requestTokens(_ form: Parameters) async throws -> Tokens {
        let endpoint = try await endpoint(\.tokenEndpoint, "token endpoint")
        let start = peer.clock.date
        let document = try await send(form, to: endpoint, ServerDocument.Kind(name: "token response"))
        return try Tokens(document, receivedAt: start, isBound: peer.dpop != nil)
    }

    /// Sends a form with the client's authentication and returns the document in the response.
    func send(_ form: Parameters, to endpoint: URL, _ kind: ServerDocument.Kind) async throws -> ServerDocument {
        var form = form
        for resource in resources { form.append("resource", resource.absoluteString) }
        let response = try await response(to: form, at: endpoint)
        guard response.status == 200 else { throw ServerDocument.refusal(response, kind) }
        let document = try ServerDocument(response, kind)
        // Some servers respond with status 200 when they refuse a request.
        guard document.members["error"]?.isNull ?? true else { throw ServerDocument.refusal(response, kind) }
        return document
    }

    private func response(to form: Parameters, at endpoint: URL) async throws -> Response {
        let response = try await attempt(form, at: endpoint)
        guard peer.dpop?.requiresNonce(response) == true else { return response }
        return try await attempt(form, at: endpoint)
    }

    /// Sends a form once, with a client assertion of its own, because a server may accept each one
    /// only once (OpenID Connect Core 1.0, section 9).
    private func attempt(_ form: Parameters, at endpoint: URL) async throws -> Response {
        var (request, form) = (peer.request(.POST, endpoint), form)
        try client.authenticate(&request, &form, issuer: issuer, date: peer.clock.date)
        request.formParameters = form
        return try await peer.response(to: request, isTokenRequest: true)
    }

    /// Returns new tokens that replace `tokens`, obtained with their refresh token.
    ///
    /// Pass this method to a `TokenFile` to store the new tokens:
    /// ```swift
    /// let file = try TokenFile(url) { try await oauth.refresh($0) }
    /// ```
    /// - Returns: `nil` if there is no refresh token.
    /// - Throws: `WebServiceError.Code.authorizationRefused` if the server refuses the refresh
    ///   token, for example with `invalid_grant`; `WebServiceError.Code.invalidAuthorization`; or
    ///   an error of ``metadata()`` or of the request.
    public func refresh(_ tokens: Tokens) async throws -> Tokens? {
        guard let refreshToken = tokens.refreshToken else { return nil }
        var new = try await requestTokens(["grant_type": "refresh_token", "refresh_token": refreshToken])
        new.refreshToken = new.refreshToken ?? refreshToken
        new.scopes = new.scopes ?? tokens.scopes
        return new
    }

    /// Revokes tokens when the user logs out (RFC 7009). Revokes the refresh token if there is one,
    /// with which the server should also revoke the access tokens of the log-in; otherwise revokes
    /// the access token.
    ///
    /// Revoke the tokens before you remove them and call `Authentication.clear()`.
    ///
    /// - Throws: `WebServiceError.Code.invalidServerMetadata` if the server has no usable
    ///   revocation endpoint, `WebServiceError.Code.authorizationRefused`,
    ///   `WebServiceError.Code.invalidAuthorization` after a redirect, or an error of the request.
    public func revoke(_ tokens: Tokens) async throws {
        let endpoint = try await endpoint(\.revocationEndpoint, "revocation endpoint")
        let accessToken = tokens.credential.value.split(separator: " ").last.map(String.init)
        let response = try await response(
            to: [
                "token": tokens.refreshToken ?? accessToken,
                "token_type_hint": tokens.refreshToken == nil ? "access_token" : "refresh_token",
            ], at: endpoint)
        guard response.isSuccess else {
            throw ServerDocument.refusal(response, ServerDocument.Kind(name: "confirmation"))
        }
    }

    /// Returns a source of tokens in memory, for one `Authentication`.
    public func tokenSource(_ tokens: Tokens) -> TokenSource {
        let stored = Stored(tokens)
        return tokenSource({ stored.value }, store: { stored.value = $0 })
    }

    /// Returns a source of tokens that the program stores, for example in the Keychain.
    ///
    /// Use the source with only one `Authentication`, which refreshes the tokens once for all
    /// requests. To log out, remove the stored tokens and call `Authentication.clear()`.
    ///
    /// - Parameters:
    ///   - read: Returns the stored tokens, or `nil` after a log-out. Called during each refresh,
    ///     and before each request until a refresh or `Authentication.update(_:)` has provided a
    ///     credential.
    ///   - store: Stores refreshed tokens. If it throws an error, the refresh throws that error,
    ///     and the next refresh stores the same tokens.
    public func tokenSource(
        _ read: @escaping @Sendable () async throws -> Tokens?,
        store: @escaping @Sendable (_ tokens: Tokens) async throws -> Void
    ) -> TokenSource {
        // The last new tokens, by the old ones, whose refresh token must not be used again.
        let unstored = Stored<[Tokens: Tokens]>([:])
        return TokenSource({ try await read()?.credential }) { [self] rejected in
            guard let old = try await read() else { return nil }
            if let rejected, rejected != old.credential { return old.credential }
            if unstored.value[old] == nil { unstored.value = try await refresh(old).map { [old: $0] } ?? [:] }
            guard let new = unstored.value[old] else { return nil }
            // A log-out or a log-in in the meantime takes precedence.
            guard try await read() == old else { return try await read()?.credential }
            try await store(new)
            unstored.value = [:]
            return new.credential
        }
    }

    /// Returns a source of the client's own tokens, without a user (RFC 6749, section 4.4).
    ///
    /// The first token is requested before the first request. A new token is requested whenever the
    /// previous one expires or is rejected.
    ///
    /// - Parameter scopes: The requested scopes; by default, those that the server chooses.
    public func clientCredentials(scopes: [String] = []) -> TokenSource {
        // An expired credential is refreshed before it is sent, once for all requests.
        let stored = Stored(Credential(value: "", expires: .distantPast))
        return TokenSource({ stored.value }) { [self] rejected in
            let current = stored.value
            if let rejected, rejected != current { return current }
            let new = try await requestTokens(["grant_type": "client_credentials", "scope": scopes.joinedScopes])
            stored.value = new.credential
            return new.credential
        }
    }
}

/// A value in memory.
private final class Stored<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    var value: Value {
        get { state.withLock(\.self) }
        set { state.withLock { $0 = newValue } }
    }
}

extension [String] {
    /// The value of the parameter `scope`; `nil` if there are no scopes.
    var joinedScopes: String? { isEmpty ? nil : joined(separator: " ") }
}

extension WebServiceError.Code {
    /// The authorization server refused a request. If it stated an error code, the code is in
    /// ``WebServiceError/authorizationFailure``.
    public static let authorizationRefused = WebServiceError.Code("authorizationRefused")
    /// A response of an authorization server, or a callback, is malformed or belongs to another
    /// server or log-in.
    public static let invalidAuthorization = WebServiceError.Code("invalidAuthorization")
    /// The metadata of an authorization server or a resource is malformed, belongs to another one,
    /// or lacks a required value.
    public static let invalidServerMetadata = WebServiceError.Code("invalidServerMetadata")
    /// The user did not complete a log-in in time.
    public static let authorizationExpired = WebServiceError.Code("authorizationExpired")
}
