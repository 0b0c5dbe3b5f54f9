public import Foundation
public import WebServiceCore

extension OAuth {
    /// The metadata of an authorization server (RFC 8414, and OpenID Connect Discovery 1.0).
    ///
    /// Create metadata for a server that publishes none, or change the published metadata:
    /// ```swift
    /// var metadata = try await OAuth.ServerMetadata.discover(issuer)
    /// metadata.codeChallengeMethods = ["S256"]  // supported, but not published
    /// let oauth = OAuth(metadata: metadata, client: client)
    /// ```
    public struct ServerMetadata: Sendable, Hashable {
        /// The issuer.
        public var issuer: URL
        /// The URL that the user's browser opens; `nil` if there is none.
        public var authorizationEndpoint: URL?
        /// The endpoint that issues tokens; `nil` if there is none.
        public var tokenEndpoint: URL?
        /// The endpoint for devices without a browser (RFC 8628); `nil` if there is none.
        public var deviceAuthorizationEndpoint: URL?
        /// The endpoint that revokes tokens (RFC 7009); `nil` if there is none.
        public var revocationEndpoint: URL?
        /// The endpoint that registers clients (RFC 7591); `nil` if there is none.
        public var registrationEndpoint: URL?
        /// The supported scopes; empty if they are not published.
        public var scopes: [String] = []
        /// The supported methods of PKCE (RFC 7636). If `S256` is missing, no authorization code is
        /// requested. Defaults to `S256`.
        public var codeChallengeMethods = ["S256"]
        /// Whether each callback names the issuer (RFC 9207). Defaults to `false`.
        public var returnsIssuer = false

        /// Creates metadata.
        public init(issuer: URL, authorizationEndpoint: URL? = nil, tokenEndpoint: URL? = nil) {
            self.issuer = issuer
            self.authorizationEndpoint = authorizationEndpoint
            self.tokenEndpoint = tokenEndpoint
        }

        /// Requests the metadata of a server.
        ///
        /// The well-known URLs of RFC 8414 and of OpenID Connect Discovery are tried in this order.
        ///
        /// - Parameters: See
        ///   ``OAuth/init(issuer:client:resources:dpop:service:origins:allowsLoopbackHTTP:)``.
        /// - Throws: `WebServiceError.Code.invalidServerMetadata` if there is no metadata of this
        ///   issuer at any of these URLs, `WebServiceError.Code.authorizationRefused` after a
        ///   status of 500 or above, or an error of the requests.
        public static func discover(
            _ issuer: URL, service: WebService? = nil, allowsLoopbackHTTP: Bool = false
        ) async throws -> ServerMetadata {
            try await discover(issuer, Peer(service, allowsLoopbackHTTP: allowsLoopbackHTTP))
        }
    }
}

extension OAuth.ServerMetadata {
    private static let kind = ServerDocument.Kind(name: "metadata document", code: .invalidServerMetadata)

    static func discover(_ issuer: URL, _ peer: Peer) async throws -> OAuth.ServerMetadata {
        guard peer.url(issuer.absoluteString) != nil, !issuer.absoluteString.utf8.contains(UInt8(ascii: "?")) else {
            throw WebServiceError(
                .invalidServerMetadata,
                "the issuer must be an https URL without a query or fragment; "
                    + "allowsLoopbackHTTP permits http for loopback")
        }
        var failure: (any Error)?
        for url in locations(of: issuer) {
            let response = try await peer.response(to: peer.request(.GET, url))
            if response.status == 200 {
                do {
                    return try OAuth.ServerMetadata(ServerDocument(response, kind), issuer: issuer, peer)
                } catch {
                    // A server without this document may respond with an HTML page for any URL.
                    guard !ServerDocument.isJSON(response) else { throw error }
                    failure = failure ?? error
                }
            } else if !(400...499).contains(response.status) {
                throw ServerDocument.refusal(response, kind)
            }
        }
        throw failure
            ?? WebServiceError(
                .invalidServerMetadata,
                "the authorization server publishes no metadata; create an OAuth.ServerMetadata with its endpoints")
    }

    /// Returns the URLs of the documents (RFC 8414, sections 3 and 5; OpenID Connect Discovery 1.0,
    /// section 4).
    private static func locations(of issuer: URL) -> [URL] {
        let openID = "openid-configuration"
        let appended = URL(string: issuer.absoluteString.droppingSlash + "/.well-known/\(openID)")
        let urls = [issuer.wellKnown("oauth-authorization-server"), issuer.wellKnown(openID), appended]
        return urls.compactMap(\.self).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private init(_ document: ServerDocument, issuer: URL, _ peer: Peer) throws {
        guard try document.string("issuer") == issuer.absoluteString else {
            throw document.failure(
                "does not name the issuer '\(issuer.absoluteString)'; both must match exactly")
        }
        self.init(
            issuer: issuer, authorizationEndpoint: try document.url("authorization_endpoint", peer),
            tokenEndpoint: try document.url("token_endpoint", peer))
        deviceAuthorizationEndpoint = try document.url("device_authorization_endpoint", peer)
        revocationEndpoint = try document.url("revocation_endpoint", peer)
        registrationEndpoint = try document.url("registration_endpoint", peer)
        _ = try document.url("jwks_uri", peer)
        scopes = try document.strings("scopes_supported") ?? []
        codeChallengeMethods = try document.strings("code_challenge_methods_supported") ?? []
        returnsIssuer = try document.bool("authorization_response_iss_parameter_supported") ?? false
    }
}

extension URL {
    /// Returns the URL with a well-known path between its origin and its path (RFC 8414, section 3;
    /// RFC 9728, section 3.1).
    func wellKnown(_ name: String) -> URL? {
        guard let origin = Origin(self) else { return nil }
        let text = absoluteString.utf8
        let authority = text.firstRange(of: "://".utf8)?.upperBound ?? text.startIndex
        let rest = String(Substring(text[authority...].drop { !"/?".utf8.contains($0) }))
        let path = rest.prefix { $0 != "?" }
        return URL(string: "\(origin)/.well-known/\(name)\(String(path).droppingSlash)\(rest.dropFirst(path.count))")
    }
}

extension String {
    /// The string without a slash at its end.
    var droppingSlash: String { hasSuffix("/") ? String(dropLast()) : self }
}
