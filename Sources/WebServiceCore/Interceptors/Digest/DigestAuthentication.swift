import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension Interceptor where Self == Never {
    /// Returns an interceptor that adds Digest credentials (RFC 7616), over every session.
    ///
    /// The first request is sent without credentials. After a response with the status 401 and a
    /// challenge, the request is sent again with credentials. Later requests are sent with
    /// credentials immediately, with the same nonce and a counter. A nonce that the server reports
    /// as stale is replaced. A second 401 is returned as the response. The password is never sent,
    /// and no description contains it.
    ///
    /// The algorithms are SHA-256 and MD5, each with or without `-sess`, and the quality of
    /// protection is `auth`. For other challenges, the 401 is returned as the response. The body is
    /// sent again as well; a request whose body can be read only once fails with
    /// ``WebServiceError/Code/bodyNotReplayable``. A request that already has the field
    /// `Authorization` is sent unchanged.
    ///
    /// - Parameters:
    ///   - user: The name of the user.
    ///   - password: The password.
    ///   - origins: The origins, in addition to that of the base URL, that credentials are sent to.
    ///     They are removed if a redirect, a later interceptor or the delegate changes the URL to
    ///     another origin. Defaults to none.
    /// - Throws: ``WebServiceError/Code/encoding`` for a user name with a colon, and for control
    ///   characters in either.
    public static func digest(
        user: String, password: String, origins: Set<Origin> = []
    ) throws -> some Interceptor {
        _ = try Credential.basic(user: user, password: password)  // the same characters are valid
        return DigestAuthentication(DigestAccount(user: user, password: password), origins: origins)
    }
}

/// Sends requests again with the credentials that a challenge requires.
struct DigestAuthentication: Interceptor {
    private let account: DigestAccount
    private let origins: Set<Origin>

    init(_ account: DigestAccount, origins: Set<Origin>) {
        self.account = account
        self.origins = origins
    }

    func intercept(_ request: Request, next: Next) async throws -> Response {
        let origins = origins.union([next.context.service.baseOrigin].compactMap(\.self))
        guard let origin = request.url.flatMap(Origin.init), origins.contains(origin),
            request.headers[.authorization] == nil
        else { return try await next(request) }
        let signed = request.signed(by: account.signature, for: origins)
        var used = account.challenge(for: origin)
        var response = try await next(signed)
        // The first request has no credentials, and the nonce of the second can be stale.
        for _ in 0..<2 {
            guard response.status == 401, request.template?.httpBodyStream == nil,
                (response.redirects + [response.url].compactMap(\.self)).allSatisfy({ Origin($0) == origin }),
                let challenge = DigestChallenge.strongest(
                    in: response.head?.values(for: Headers.Name("WWW-Authenticate")) ?? []),
                used == nil || challenge.isStale || challenge.realm != used?.realm
            else { return response }
            guard request.canSendBody else {
                throw WebServiceError.bodyNotReplayable(request, after: .success(response))
            }
            account.adopt(challenge, for: origin)
            used = challenge
            next.record(.retry, "with Digest credentials")
            response = try await next(signed)
        }
        return response
    }
}

/// An account and the last challenge of each origin.
final class DigestAccount: Sendable {
    private struct State {
        var challenge: DigestChallenge
        /// The number of requests with the nonce.
        var count: UInt32 = 0
    }

    private let user: String
    private let password: String
    private let states = Mutex<[Origin: State]>([:])

    init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// The credential of a request. The placeholder differs between users, so that a cache
    /// separates their responses.
    var signature: Request.Signature {
        Request.Signature(placeholder: "Digest " + ASCII.hexadecimal(SHA2.sha256.hash(Data(user.utf8)))) {
            self.credentials(method: $0, url: $1)
        }
    }

    func challenge(for origin: Origin) -> DigestChallenge? { states.withLock { $0[origin]?.challenge } }

    func adopt(_ challenge: DigestChallenge, for origin: Origin) {
        states.withLock { states in
            // Another request may have received the same challenge. Its count must not be repeated.
            if states[origin]?.challenge.nonce != challenge.nonce { states[origin] = State(challenge: challenge) }
        }
    }

    /// Returns the value of the field; `nil` before the first challenge.
    private func credentials(method: Request.Method, url: String) -> String? {
        guard let origin = Origin(url) else { return nil }
        let state = states.withLock { states -> State? in
            states[origin]?.count &+= 1
            return states[origin]
        }
        guard let state else { return nil }
        var generator = SystemRandomNumberGenerator()
        let random = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let value = state.challenge.credentials(
            (user, password), (method.rawValue, Self.target(of: url)), count: state.count,
            clientNonce: ASCII.hexadecimal(random))
        return ASCII.isFieldValue(value.utf8) ? value : nil
    }

    /// Returns the path and the query.
    private static func target(of url: String) -> String {
        let authority = url.utf8.firstRange(of: "://".utf8)?.upperBound ?? url.startIndex
        let rest = url.utf8[authority...].drop { !"/?#".utf8.contains($0) }.prefix { $0 != UInt8(ascii: "#") }
        let target = String(Substring(rest))
        return target.utf8.first == UInt8(ascii: "/") ? target : "/" + target
    }
}
