public import Foundation
import WebServiceCore

extension CurlSession {
    /// The proxy configuration of a session.
    public enum Proxy: Sendable {
        /// The proxy specified by the environment.
        ///
        /// libcurl evaluates `http_proxy` in lower case, and `https_proxy`, `all_proxy` and
        /// `no_proxy` in lower or upper case. If none of these variables specifies a proxy when the
        /// session is created, the session connects directly, even if a variable is set later.
        /// Otherwise, libcurl reads the variables for each request. If a value is not a proxy URL,
        /// the request fails.
        case environment
        /// A direct connection, regardless of the environment.
        case none
        /// The proxy with this URL, such as `http://host:port`, for every host, regardless of the
        /// environment.
        ///
        /// The scheme is `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`. The URL may
        /// contain a user name and a password. The port defaults to 443 for `https` and to 1080 for
        /// all others. With any other string, the session cannot be created.
        case url(String)
        /// The proxy with this URL, as in ``url(_:)``, with a user name and a password.
        ///
        /// The URL must not contain a user name or a password. The user name must not be empty or
        /// contain a colon. Neither the user name nor the password may contain a control character.
        /// A SOCKS proxy does not support `usesDigest`. Otherwise, the session cannot be created.
        ///
        /// The credentials are sent only to the proxy. With `usesDigest`, they are sent as Digest
        /// credentials (RFC 7616) instead of Basic ones, after the challenge of the proxy. Requests
        /// for `http` URLs then also use a tunnel (CONNECT), which the proxy must permit.
        case authenticated(url: String, user: String, password: String, usesDigest: Bool = false)
        /// The proxy that a closure returns for the URL of each request.
        ///
        /// The closure is called once for each request that the session sends, including retries
        /// and redirects. It is called concurrently, on threads of the package, which it may block.
        /// An error that it throws, or a proxy that cannot be used, fails the request. The deadline
        /// of the request limits the wait. If the session is closed during the wait, the request
        /// fails. Requests with different credentials for the same proxy use separate connections.
        case perRequest(@Sendable (_ url: URL) async throws -> Proxy)
    }
}

// MARK: - Checks

extension CurlSession.Proxy {
    private static let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    /// The proxy URL that the case contains; `nil` for the other cases.
    var address: String? {
        switch self {
        case .url(let url), .authenticated(let url, _, _, _): url
        case .environment, .none, .perRequest: nil
        }
    }

    /// The scheme of the URL in lower case; `nil` if there is no URL.
    var scheme: String? {
        guard let url = address, let end = url.utf8.firstRange(of: "://".utf8) else { return nil }
        return String(Substring(url.utf8[..<end.lowerBound])).asciiLowercased()
    }

    /// Validates the URL of the proxy.
    ///
    /// libcurl would use a string without a scheme as a host name, and would report an unknown
    /// scheme only when a request is sent.
    ///
    /// - Throws: `WebServiceError.Code.curl`, whose message does not contain the URL.
    func check() throws(WebServiceError) {
        guard let url = address else { return }
        func fail(_ message: String) -> WebServiceError { WebServiceError(.curl, message) }
        guard !url.isEmpty else { throw fail("the proxy URL is empty; use .none to connect directly") }
        guard url.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw fail("the proxy URL contains a control character; remove it")
        }
        guard let scheme, let start = url.utf8.firstRange(of: "://".utf8)?.upperBound else {
            throw fail("the proxy URL has no scheme; use 'http://host:port'")
        }
        guard Self.schemes.contains(scheme) else {
            throw fail("the scheme of the proxy URL must be one of \(Self.schemes.joined(separator: ", "))")
        }
        let rest = url.utf8[start...]
        let authority = rest.prefix { !"/?#".utf8.contains($0) }
        let host = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[authority.index(after: $0)...] }
        guard ["", "/"].contains(String(Substring(rest[authority.endIndex...]))),
            Origin("http://" + String(Substring(host ?? authority))) != nil
        else {
            throw fail(
                "the proxy URL has a path, query or fragment, or no valid host and port; use '\(scheme)://host:port'")
        }
        guard case .authenticated(_, let user, let password, let usesDigest) = self else { return }
        guard host == nil else { throw fail("the proxy URL contains a user name; remove it and pass it as 'user'") }
        guard (user + password).utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw fail("the proxy user name or the proxy password contains a control character; remove it")
        }
        guard !user.isEmpty, !user.utf8.contains(UInt8(ascii: ":")) else {
            throw fail("the proxy user name must not be empty or contain a colon")
        }
        guard !usesDigest || scheme.hasPrefix("http") else {
            throw fail("a SOCKS proxy does not support Digest authentication; set usesDigest to false")
        }
    }

    /// A string that is unique to the credentials for a proxy; `nil` if there are none.
    var credentials: String? {
        switch self {
        case .url(let url): url.utf8.contains(UInt8(ascii: "@")) ? url : nil
        case .authenticated(_, let user, let password, let usesDigest): "\(usesDigest) \(user):\(password)"
        case .environment, .none, .perRequest: nil
        }
    }
}

// MARK: - Descriptions without secrets

extension CurlSession.Proxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A description that is safe to log: the kind of proxy, or the scheme, host and port of its
    /// URL without the user name and the password.
    public var description: String {
        switch self {
        case .environment: return "environment"
        case .none: return "none"
        case .perRequest: return "perRequest"
        case .url(let url), .authenticated(let url, _, _, _):
            // The code uses UTF-8 bytes, because a delimiter and a combining character form another
            // `Character`.
            let bytes = Array(url.utf8)
            let scheme = bytes[..<(bytes.firstRange(of: "://".utf8)?.upperBound ?? 0)]
            let authority = bytes[(bytes.lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 } ?? scheme.endIndex)...]
            if scheme.contains(UInt8(ascii: "@")) { return "url" }
            return String(decoding: scheme + authority.prefix { !"/?#".utf8.contains($0) }, as: UTF8.self)
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// A mirror that contains only ``description``, because the URL may contain a password.
    public var customMirror: Mirror { Mirror(self, children: ["proxy": description], displayStyle: .struct) }
}
