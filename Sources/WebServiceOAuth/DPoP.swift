import Foundation
import SystemCrypto
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An interceptor that proves possession of the key that tokens are bound to (DPoP, RFC 9449).
///
/// Pass it to `OAuth`, and install it after the `Authentication` that uses the tokens:
/// ```swift
/// let dpop = try DPoP()
/// let oauth = OAuth(issuer: issuer, client: client, dpop: dpop)
/// service.interceptors = [.retry(), Authentication(oauth.tokenSource(tokens)), dpop]
/// ```
/// - Each request with `Authorization: DPoP …` is sent with its own proof for its method, URL and
///   token, even after a redirect in the same origin. Other requests are sent unchanged.
/// - If the server requires a nonce (`use_dpop_nonce`), the request is sent again once with it.
///   Later requests use the last nonce of their origin.
///
/// The tokens are valid only with the key. If you store the tokens, also store the
/// ``OAuth/SigningKey``. All members may be used from any thread.
public final class DPoP: Interceptor {
    /// The key that the tokens are bound to.
    public let key: OAuth.SigningKey

    /// A server that issues or receives tokens. Each role has its own nonces.
    private struct Server: Hashable {
        let origin: Origin
        var issuesTokens = false
    }

    private let nonces = Mutex<[Server: String]>([:])

    /// Creates an interceptor with a new key.
    ///
    /// - Throws: `WebServiceError.Code.encoding` if libcrypto is missing.
    public convenience init() throws { self.init(key: try OAuth.SigningKey()) }

    /// Creates an interceptor with a stored key.
    public init(key: OAuth.SigningKey) { self.key = key }

    /// Returns the response to the request, or to the request that is sent again with a nonce.
    ///
    /// - Throws: `WebServiceError.Code.bodyNotReplayable` if a body cannot be sent again, or any
    ///   error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        guard request.headers[.authorization]?.hasPrefix("DPoP ") == true else { return try await next(request) }
        return try await response(to: request, next, issuesTokens: false) { response in
            response.status == 401
                && (response.head?.values(for: "WWW-Authenticate") ?? []).flatMap(AuthenticationChallenge.all)
                    .contains { $0.scheme == "dpop" && $0.parameters["error"] == "use_dpop_nonce" }
        }
    }

    /// An interceptor for requests to the authorization server, which sends no request again.
    var forTokenRequests: ClosureInterceptor {
        .closure { [self] in try await response(to: $0, $1, issuesTokens: true) { _ in false } }
    }

    /// Returns whether a response of the authorization server requires a request with its nonce.
    func requiresNonce(_ response: Response) -> Bool {
        response.status == 400 && response.header("DPoP-Nonce") != nil
            && (try? JSON.decode(JSONValue.self, from: response.data))?["error"]?.string == "use_dpop_nonce"
    }

    private func response(
        to request: Request, _ next: Next, issuesTokens: Bool, _ requiresNonce: (Response) -> Bool
    ) async throws -> Response {
        guard let origin = request.url.flatMap(Origin.init) else { return try await next(request) }
        let server = Server(origin: origin, issuesTokens: issuesTokens)
        let used = nonces.withLock { $0[server] }
        let response = try await next(signed(request, used, origin, next.clock))
        let isFromHere = (response.redirects + [response.url].compactMap(\.self)).allSatisfy { Origin($0) == origin }
        guard isFromHere, let nonce = adopt(response, server), nonce != used, requiresNonce(response),
            request.template?.httpBodyStream == nil
        else { return response }
        guard request.canSendBody else { throw WebServiceError.bodyNotReplayable(request, after: .success(response)) }
        next.record(.retry, "with a nonce of the server")
        guard let result = await next.again(signed(request, nonce, origin, next.clock)) else { return response }
        let repeated = try result.get()
        _ = adopt(repeated, server)
        return repeated
    }

    /// Stores and returns the nonce of a response, or returns `nil` if there is no valid nonce.
    private func adopt(_ response: Response, _ server: Server) -> String? {
        guard let nonce = response.header("DPoP-Nonce"), (1...1_024).contains(nonce.utf8.count),
            nonce.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"\"\\".utf8.contains($0) })
        else { return nil }
        nonces.withLock { $0[server] = nonce }
        return nonce
    }

    /// Returns the request with a proof that is computed each time it is sent.
    private func signed(_ request: Request, _ nonce: String?, _ origin: Origin, _ clock: TaskClock) -> Request {
        let signature = Request.Signature("DPoP", placeholder: "DPoP") {
            [self] (method, url, headers) throws(WebServiceError) -> String? in
            let credentials = headers[.authorization] ?? ""
            let token = credentials.hasPrefix("DPoP ") ? String(credentials.dropFirst(5)) : nil
            return try proof(method.rawValue, url, token: token, nonce: nonce, date: clock.date, id: .random(16))
        }
        return request.signed(by: signature, for: [origin])
    }

    /// Returns a proof (RFC 9449, section 4.2).
    func proof(
        _ method: String, _ url: String, token: String?, nonce: String?, date: Date, id: Data
    ) throws(WebServiceError) -> String {
        let target = url.utf8.prefix { !"?#".utf8.contains($0) }
        var claims: [String: JSONValue] = [
            "jti": .string(id.base64URL), "htm": .string(method), "htu": .string(String(Substring(target))),
            "iat": JSONValue(Int(date.timeIntervalSince1970)),
        ]
        if let token { claims["ath"] = .string(Data(token.utf8).sha256.base64URL) }
        if let nonce { claims["nonce"] = .string(nonce) }
        return try key.key.token(
            header: ["typ": .string("dpop+jwt"), "jwk": .object(key.publicJWK.mapValues(JSONValue.string))],
            claims: claims)
    }
}
