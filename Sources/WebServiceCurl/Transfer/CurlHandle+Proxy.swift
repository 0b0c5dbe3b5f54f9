import CCurl
import Foundation
import WebServiceCore

extension CurlSession.Proxy {
    /// Whether libcurl supports TLS to a proxy.
    static var supportsHTTPS: Bool { ccurl_supports_https_proxies() != 0 }

    /// Whether the environment specifies a proxy.
    ///
    /// libcurl ignores `HTTP_PROXY`, which a request to a CGI program can set (RFC 3875, section
    /// 4.1.18).
    static var isInEnvironment: Bool {
        let environment = ProcessInfo.processInfo.environment
        return ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
            .contains { environment[$0]?.isEmpty == false }
    }
}

extension CurlHandle {
    /// Sets the proxy, and resets all options of an earlier proxy.
    func setProxy(_ proxy: CurlSession.Proxy) throws {
        var account: (user: String?, password: String?, usesDigest: Bool) = (nil, nil, false)
        if case .authenticated(_, let user, let password, let usesDigest) = proxy {
            account = (user, password, usesDigest)
        }
        // Without a value, libcurl reads the environment for each request.
        let isFromEnvironment = engine.readsEnvironment(for: proxy)
        try check(
            ccurl_set_string(easy, CURLOPT_PROXY, isFromEnvironment ? nil : proxy.address ?? ""), "the proxy")
        try check(ccurl_set_string(easy, CURLOPT_NOPROXY, isFromEnvironment ? nil : ""), "the proxy for all hosts")
        try check(ccurl_set_string(easy, CURLOPT_PROXYUSERNAME, account.user), "the user name of the proxy")
        try check(ccurl_set_string(easy, CURLOPT_PROXYPASSWORD, account.password), "the password of the proxy")
        let methods = account.usesDigest ? ccurl_auth_digest() : ccurl_auth_basic()
        try check(ccurl_set_long(easy, CURLOPT_PROXYAUTH, methods), "the authentication of the proxy")
        // With Digest but without a tunnel, libcurl would first send an empty body to an http URL.
        ccurl_set_long(easy, CURLOPT_HTTPPROXYTUNNEL, account.usesDigest ? 1 : 0)
    }
}

extension CurlEngine {
    /// Returns whether libcurl reads the environment to select the proxy of a request.
    func readsEnvironment(for proxy: CurlSession.Proxy) -> Bool {
        if case .environment = proxy { hasEnvironmentProxy } else { false }
    }

    /// Returns whether a request may share the connections of other requests over the same proxy.
    ///
    /// libcurl compares the proxies of two requests, but not their credentials.
    func sharesConnections(of proxy: CurlSession.Proxy?) -> Bool {
        guard let proxy, proxy.address != nil else { return true }
        let credentials = proxy.credentials ?? ""
        // The description contains no user name and no password. A port can be implicit, so it is
        // ignored.
        let authority = "\(proxy)".asciiLowercased().split(separator: "/").last ?? ""
        let host = authority.utf8.first == UInt8(ascii: "[") ? authority : authority.prefix { $0 != ":" }
        let first = proxyCredentials[String(host)]
        if first == nil { proxyCredentials[String(host)] = credentials }
        return first.map { $0 == credentials } ?? true
    }
}
