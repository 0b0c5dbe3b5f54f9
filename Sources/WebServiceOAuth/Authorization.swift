public import Foundation
import SystemCrypto
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension OAuth {
    /// Begins a log-in with an authorization code and PKCE (RFC 6749, section 4.1; RFC 7636).
    ///
    /// Open ``Authorization/url`` in a browser. When the browser is redirected, pass the resulting
    /// URL to ``Authorization/tokens(from:)``. Several log-ins may be in progress at the same time.
    ///
    /// - Parameters:
    ///   - redirect: The redirect URL, as registered with the server: an `https` URL, a URL with a
    ///     scheme of the app such as `com.example.app:/callback`, or the
    ///     ``LoopbackReceiver/redirect`` of a receiver.
    ///   - scopes: The requested scopes. Defaults to none, which requests the server's default.
    ///   - parameters: Further parameters, such as `prompt` or `login_hint`. Defaults to none.
    /// - Throws: `WebServiceError.Code.invalidServerMetadata` if the server does not publish
    ///   `S256` or has no usable endpoint, `WebServiceError.Code.encoding` if the redirect URL or
    ///   a parameter cannot be used, or an error of ``metadata()``.
    public func authorization(
        redirect: URL, scopes: [String] = [], parameters: [String: String] = [:]
    ) async throws -> Authorization {
        let metadata = try await metadata()
        let endpoint = try await endpoint(\.authorizationEndpoint, "authorization endpoint")
        _ = try await self.endpoint(\.tokenEndpoint, "token endpoint")  // fails before the user logs in
        guard metadata.codeChallengeMethods.contains("S256") else {
            throw WebServiceError(
                .invalidServerMetadata,
                "the authorization server does not publish support for PKCE with S256; if the server supports it, add "
                    + "'S256' to 'codeChallengeMethods'")
        }
        guard Self.isUsable(redirect) else {
            throw WebServiceError(
                .encoding,
                "the redirect URL must be absolute and have no fragment, and an http URL must have a loopback host")
        }
        let (state, verifier) = (Data.random(32).base64URL, Data.random(32).base64URL)
        var query: Parameters = [
            "response_type": "code", "client_id": client.id, "redirect_uri": redirect.absoluteString,
            "scope": scopes.joinedScopes, "state": state, "code_challenge": Self.challenge(for: verifier),
            "code_challenge_method": "S256", "dpop_jkt": peer.dpop.map { P256Key.thumbprint(of: $0.key.publicJWK) },
        ]
        for resource in resources { query.append("resource", resource.absoluteString) }
        for (name, value) in parameters.sorted(by: { $0.key < $1.key }) {
            guard !query.contains(where: { $0.key == name }) else {
                throw WebServiceError(.encoding, "the parameter '\(name)' is set automatically; remove it")
            }
            query.append(name, value)
        }
        var request = Request(.GET, url: endpoint)
        request.queryParameters = query
        guard let url = try request.urlRequest().url else {
            throw WebServiceError(.invalidURL, "the authorization endpoint with its parameters is not a valid URL")
        }
        return Authorization(
            self, url: url, redirect: redirect, state: state, verifier: verifier, issuer: metadata.issuer,
            requiresIssuer: metadata.returnsIssuer)
    }

    /// Returns the S256 code challenge for a verifier (RFC 7636, section 4.2).
    static func challenge(for verifier: String) -> String { Data(verifier.utf8).sha256.base64URL }

    private static func isUsable(_ redirect: URL) -> Bool {
        guard let scheme = redirect.scheme?.lowercased(), !redirect.absoluteString.utf8.contains(UInt8(ascii: "#"))
        else { return false }
        guard ["http", "https"].contains(scheme) else { return true }
        return Origin(redirect).map { scheme == "https" || $0.isLoopback } ?? false
    }

    /// Logs in with the user's browser and a receiver on this device (RFC 8252, section 7.3).
    ///
    /// - Parameters:
    ///   - scopes: The requested scopes. Defaults to none, which requests the server's default.
    ///   - limit: The time that the user has to log in. Defaults to five minutes.
    ///   - receiver: The receiver. Defaults to `nil`, which means a new one on any free port.
    ///   - open: Opens the URL in a browser, or shows it to the user. Called once.
    /// - Returns: The tokens.
    /// - Throws: `WebServiceError.Code.authorizationExpired` after the limit; an error of
    ///   ``authorization(redirect:scopes:parameters:)``, ``Authorization/tokens(from:)``, the
    ///   receiver or `open`; or `CancellationError`.
    public func logIn(
        scopes: [String] = [], within limit: Duration = .seconds(300), receiver: LoopbackReceiver? = nil,
        open: (_ url: URL) async throws -> Void
    ) async throws -> Tokens {
        let receiver = try receiver ?? LoopbackReceiver()
        defer { receiver.close() }
        let authorization = try await authorization(redirect: receiver.redirect, scopes: scopes)
        receiver.listen { authorization.expects($0) }
        try await open(authorization.url)
        return try await authorization.tokens(from: try await receiver.callback(within: limit, peer.clock))
    }

    /// A log-in with an authorization code that is in progress.
    ///
    /// All members may be used from any thread. The description of this type omits all values.
    public final class Authorization: Sendable {
        /// The URL to open in the user's browser. It is not secret, but valid for only one log-in.
        public let url: URL

        private let redirect: URL
        private let oauth: OAuth
        private let state: String
        private let verifier: String
        private let issuer: URL
        private let requiresIssuer: Bool
        private let isUsed = OnceFlag()

        fileprivate init(
            _ oauth: OAuth, url: URL, redirect: URL, state: String, verifier: String, issuer: URL, requiresIssuer: Bool
        ) {
            (self.oauth, self.url, self.redirect, self.state) = (oauth, url, redirect, state)
            (self.verifier, self.issuer, self.requiresIssuer) = (verifier, issuer, requiresIssuer)
        }

        /// Returns the tokens for the code in a callback.
        ///
        /// Only the first callback with the state of this log-in is used. A callback with another
        /// state throws an error, and the log-in continues.
        ///
        /// - Parameter callback: The URL that the browser was redirected to.
        /// - Throws: `WebServiceError.Code.invalidAuthorization` if the callback does not belong
        ///   to this log-in, comes from another issuer (RFC 9207), has no code or was used before,
        ///   or if the token response is invalid; `WebServiceError.Code.authorizationRefused`
        ///   with the server's error code, for example `access_denied`; or an error of the request.
        public func tokens(from callback: URL) async throws -> Tokens {
            guard let parameters = parameters(of: callback), Self.isEqual(parameters["state"], state) else {
                throw Self.invalid("belongs to another log-in")
            }
            guard isUsed.set() else { throw Self.invalid("repeats an earlier one; start a new log-in") }
            guard parameters["iss"].map({ Self.isEqual($0, issuer.absoluteString) }) ?? !requiresIssuer else {
                throw Self.invalid("names another issuer, or none")
            }
            if let failure = AuthorizationFailure(parameters) { throw failure.error }
            guard parameters["error"] == nil, let code = parameters["code"], !code.isEmpty else {
                throw Self.invalid("has no code")
            }
            return try await oauth.requestTokens([
                "grant_type": "authorization_code", "code": code, "redirect_uri": redirect.absoluteString,
                "code_verifier": verifier,
            ])
        }

        /// Returns whether a URL is the callback of this log-in, regardless of its result.
        func expects(_ callback: URL) -> Bool { Self.isEqual(parameters(of: callback)?["state"], state) }

        /// Compares the bytes, because a string also equals its canonical equivalents.
        private static func isEqual(_ value: String?, _ expected: String) -> Bool {
            value?.utf8.elementsEqual(expected.utf8) ?? false
        }

        /// Returns the parameters of a callback, or `nil` if it does not match the redirect URL, if
        /// it repeats a parameter (RFC 6749, section 3.1), if it is longer than 64 KiB, or if its
        /// encoding is invalid.
        private func parameters(of callback: URL) -> [String: String]? {
            let text = callback.absoluteString.utf8
            let (expected, ownQuery) = Self.parts(redirect.absoluteString.utf8)
            let (address, query) = Self.parts(text)
            guard text.count <= 1 << 16, address.elementsEqual(expected) else { return nil }
            let own = ownQuery.split(separator: UInt8(ascii: "&")).map(Array.init)
            var parameters: [String: String] = [:]
            for pair in query.split(separator: UInt8(ascii: "&")) where !own.contains(Array(pair)) {
                let name = pair.prefix { $0 != UInt8(ascii: "=") }
                guard let key = Self.decoded(name), let value = Self.decoded(pair[name.endIndex...].dropFirst()),
                    parameters.updateValue(value, forKey: key) == nil
                else { return nil }
            }
            return parameters
        }

        /// Returns a URL without its query, and the query.
        private static func parts(_ url: String.UTF8View) -> (Substring.UTF8View, Substring.UTF8View) {
            let text = url.prefix { $0 != UInt8(ascii: "#") }
            let address = text.prefix { $0 != UInt8(ascii: "?") }
            return (address, text[address.endIndex...].dropFirst())
        }

        private static func decoded(_ text: Substring.UTF8View) -> String? {
            String(validating: percentDecoded(text.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }), as: UTF8.self)
        }

        private static func invalid(_ reason: String) -> WebServiceError {
            WebServiceError(.invalidAuthorization, "the callback \(reason)")
        }
    }
}

extension OAuth.Authorization: RedactedReflectable {
    /// A description without values.
    public var description: String { "an authorization in progress" }
}
