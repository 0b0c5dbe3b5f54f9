public import Foundation
public import WebServiceCore

extension OAuth {
    /// A challenge with which a resource requires a token (RFC 6750, section 3; RFC 9728, section
    /// 5.1).
    public struct Challenge: Sendable, Hashable {
        /// The scheme in lower case, such as `bearer` or `dpop`.
        public let scheme: String
        /// The error code, such as `invalid_token` or `insufficient_scope`; `nil` if there is none.
        public let error: String?
        /// The scopes that the request requires; empty if the challenge names none.
        public let scopes: [String]
        /// The URL of the resource's metadata; `nil` if the challenge names none.
        public let resourceMetadata: String?

        /// Returns the challenges of a response, in order.
        public static func all(in response: Response) -> [Challenge] {
            (response.head?.values(for: "WWW-Authenticate") ?? []).flatMap(AuthenticationChallenge.all).map {
                Challenge(
                    scheme: $0.scheme, error: $0.parameters["error"],
                    scopes: $0.parameters["scope"]?.split(separator: " ").map(String.init) ?? [],
                    resourceMetadata: $0.parameters["resource_metadata"])
            }
        }
    }

    /// The metadata of a resource, including the authorization servers whose tokens it accepts (RFC
    /// 9728).
    public struct ProtectedResource: Sendable, Hashable {
        /// The identifier of the resource, which can be passed in the `resources` of ``OAuth``.
        public let resource: URL
        /// The issuers of the authorization servers; empty if they are not published.
        public let authorizationServers: [URL]
        /// The scopes of the resource; empty if they are not published.
        public let scopes: [String]

        /// Requests the metadata of a resource.
        ///
        /// If the challenge names the URL of the metadata, only that URL is requested. Otherwise,
        /// the well-known URLs of the resource and of its origin are tried. The metadata must be at
        /// the resource's origin. It must name the URL itself as its resource, or the parent path
        /// from which its well-known URL is formed.
        ///
        /// - Parameters:
        ///   - url: The URL of a request to the resource.
        ///   - challenge: The challenge in the response to that request. Defaults to `nil`.
        ///   - service: A service whose session, clock and observers are used. Defaults to `nil`,
        ///     which means a new service.
        ///   - allowsLoopbackHTTP: Whether http is allowed for 127.0.0.1, `[::1]` and `localhost`.
        ///     Defaults to `false`.
        /// - Throws: `WebServiceError.Code.invalidServerMetadata` if there is no valid metadata,
        ///   `WebServiceError.Code.authorizationRefused` after a status of 500 or above, or an
        ///   error of the requests.
        public static func discover(
            _ url: URL, challenge: Challenge? = nil, service: WebService? = nil, allowsLoopbackHTTP: Bool = false
        ) async throws -> ProtectedResource {
            let peer = Peer(service, allowsLoopbackHTTP: allowsLoopbackHTTP)
            let kind = ServerDocument.Kind(name: "resource metadata document", code: .invalidServerMetadata)
            guard let origin = Origin(url), peer.url(url.absoluteString) != nil else {
                throw WebServiceError(kind.code, "the resource must be an https URL without a fragment")
            }
            var locations = [url, URL(string: "\(origin)")].compactMap { $0?.wellKnown(wellKnownName) }
            if let location = challenge?.resourceMetadata {
                guard let location = peer.url(location), Origin(location) == origin else {
                    throw WebServiceError(
                        kind.code, "the challenge names metadata outside the resource's origin")
                }
                locations = [location]
            }
            for location in locations {
                let response = try await peer.response(to: peer.request(.GET, location))
                if response.status == 200 {
                    return try ProtectedResource(ServerDocument(response, kind), of: url, at: location, peer)
                }
                guard (400...499).contains(response.status) else { throw ServerDocument.refusal(response, kind) }
            }
            throw WebServiceError(
                kind.code, "the resource publishes no metadata; use the issuer of its authorization server")
        }
    }
}

extension OAuth.ProtectedResource {
    fileprivate static let wellKnownName = "oauth-protected-resource"

    private init(_ document: ServerDocument, of url: URL, at location: URL, _ peer: Peer) throws {
        let resource = try document.required("resource") { try document.url($0, peer) }
        guard url.identifiers(of: location).contains(resource.absoluteString) else {
            throw document.failure("names a resource other than the requested URL")
        }
        _ = try document.url("jwks_uri", peer)
        self.resource = resource
        authorizationServers = try (document.strings("authorization_servers") ?? []).map { text in
            guard let url = peer.url(text) else {
                throw document.failure("has an authorization server that is not an https URL")
            }
            return url
        }
        scopes = try document.strings("scopes_supported") ?? []
    }
}

extension URL {
    /// Returns the identifiers that metadata at a location may have for this URL (RFC 9728, section
    /// 3.3): this URL, and the parent URL from which the location was formed. An empty path may
    /// also be a slash.
    fileprivate func identifiers(of location: URL) -> Set<String> {
        var identifiers: Set = [absoluteString]
        let origin = Origin(self).map { "\($0)" } ?? ""
        let prefix = "\(origin)/.well-known/\(OAuth.ProtectedResource.wellKnownName)"
        if location.absoluteString.hasPrefix(prefix) {
            let parent = origin + location.absoluteString.dropFirst(prefix.count)
            if absoluteString.hasPrefix(parent + "/") { identifiers.insert(parent) }
        }
        if !identifiers.isDisjoint(with: [origin, origin + "/"]) { identifiers.formUnion([origin, origin + "/"]) }
        return identifiers
    }
}
