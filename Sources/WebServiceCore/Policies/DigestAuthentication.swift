import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension Interceptor where Self == DigestAuthentication {
    /// Returns an interceptor that adds Digest credentials (RFC 7616), over any session.
    ///
    /// The first request is sent without credentials. After a response with status 401 and a
    /// challenge, the request is sent again with credentials. Later requests are sent with
    /// credentials immediately, with the same nonce and a counter. The request is sent once more
    /// with the new challenge if the server names another realm, reports a nonce as stale, or
    /// replaces the nonce of an earlier exchange (RFC 7616, section 3.6). Any other response with
    /// status 401 to a request with credentials is returned. The password is never sent, and no
    /// description contains it.
    ///
    /// The algorithms are SHA-256 and MD5, each with or without `-sess`, and the quality of
    /// protection is `auth` or, without `-sess`, not specified. After any other challenge, the
    /// response with status 401 is returned. The body is sent again together with the request. If
    /// the body can be read only once, the request fails with
    /// ``WebServiceError/Code/bodyNotReplayable``. If the body is an `httpBodyStream`, the response
    /// with status 401 is returned. A request that already has the field `Authorization` is sent
    /// unchanged. A later interceptor that would set this field, such as
    /// ``Interceptor/bearer(_:)``, has no effect, even on the request without credentials.
    ///
    /// - Parameters:
    ///   - user: The user name.
    ///   - password: The password.
    ///   - origins: The origins to which credentials are sent, in addition to the origin of the
    ///     base URL. The credentials are removed if a redirect, a later interceptor or the delegate
    ///     changes the URL to another origin. Defaults to none.
    /// - Returns: The interceptor. If the user name contains a colon, or if either string contains
    ///   control characters, requests to these origins fail with ``WebServiceError/Code/encoding``.
    public static func digest(user: String, password: String, origins: Set<Origin> = []) -> DigestAuthentication {
        DigestAuthentication(DigestAccount(user: user, password: password), origins: origins)
    }
}

/// An interceptor that sends requests again with the credentials that a challenge requires. It is
/// created by ``Interceptor/digest(user:password:origins:)``.
public struct DigestAuthentication: Interceptor {
    private let account: DigestAccount
    private let origins: Set<Origin>

    init(_ account: DigestAccount, origins: Set<Origin>) {
        self.account = account
        self.origins = origins
    }

    /// Returns the response to the last request.
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` if the credentials cannot be sent,
    ///   ``WebServiceError/Code/bodyNotReplayable``, and any error of the requests.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let origins = origins.union([next.task.service.baseOrigin].compactMap(\.self))
        guard let origin = request.url.flatMap(Origin.init), origins.contains(origin),
            request.headers[.authorization] == nil
        else { return try await next(request) }
        try account.check()
        let signed = request.signed(by: account.signature, for: origins)
        let known = account.challenge(for: origin)
        var used = known
        var response = try await next(signed)
        // The first request has no credentials, or it has a nonce of an earlier exchange. The nonce
        // of the second request can be stale.
        for repetition in 0..<2 {
            guard response.status == 401, request.template?.httpBodyStream == nil,
                (response.redirects + [response.url].compactMap(\.self)).allSatisfy({ Origin($0) == origin }),
                let challenge = DigestChallenge.strongest(
                    in: response.head?.values(for: Headers.Name("WWW-Authenticate")) ?? []),
                used == nil || challenge.isStale || challenge.realm != used?.realm
                    || repetition == 0 && challenge.nonce != used?.nonce
            else { break }
            guard request.canSendBody else {
                throw WebServiceError.bodyNotReplayable(request, after: .success(response))
            }
            let renewed = request.signed(by: account.adopt(challenge, for: origin), for: origins)
            used = challenge
            next.record(.retry, "with Digest credentials")
            guard let repeated = await next.again(withCredentials: renewed) else { return response }
            response = try repeated.get()
        }
        // The password is probably wrong. The next exchange starts without credentials, so that it
        // tries the password only once.
        if response.status == 401, let used, used != known { account.forget(used, for: origin) }
        return response
    }
}

/// An account and the last challenge of each origin.
final class DigestAccount: Sendable {
    /// A challenge and the number of requests with its nonce.
    private final class Nonce: Sendable {
        let challenge: DigestChallenge
        private let count = Mutex<UInt32>(0)

        init(_ challenge: DigestChallenge) {
            self.challenge = challenge
        }

        /// Returns the count of the next request.
        func next() -> UInt32 {
            count.withLock { count in
                count &+= 1
                return count
            }
        }
    }

    private let user: String
    private let password: String
    private let failure: (any Error)?
    private let nonces = Mutex<[Origin: Nonce]>([:])

    init(user: String, password: String) {
        self.user = user
        self.password = password
        // The characters that are valid in Basic credentials are also valid here.
        do { (failure, _) = (nil, try Credential.basic(user: user, password: password)) } catch { failure = error }
    }

    /// Throws an error for characters that credentials must not contain.
    func check() throws {
        if let failure { throw failure }
    }

    /// The credential of a request, with the last challenge of its origin.
    var signature: Request.Signature { credential { self.turn(at: $0) } }

    func challenge(for origin: Origin) -> DigestChallenge? { nonces.withLock { $0[origin]?.challenge } }

    /// Stores a challenge.
    ///
    /// - Returns: The credential of the request that is sent again. The credential has this
    ///   challenge even if another request replaces the stored one. Its count is reserved for this
    ///   request, because a server may accept each count only once.
    func adopt(_ challenge: DigestChallenge, for origin: Origin) -> Request.Signature {
        let (nonce, count) = nonces.withLock { nonces -> (Nonce, UInt32) in
            // Another request may have received the same challenge. Its count must not be repeated.
            if let nonce = nonces[origin], nonce.challenge.nonce == challenge.nonce { return (nonce, nonce.next()) }
            let nonce = Nonce(challenge)
            nonces[origin] = nonce
            return (nonce, nonce.next())
        }
        let reserved = Mutex<UInt32?>(count)
        return credential { target in
            guard target == origin else { return self.turn(at: target) }
            return (nonce.challenge, reserved.withLock { $0.take() } ?? nonce.next())
        }
    }

    func forget(_ challenge: DigestChallenge, for origin: Origin) {
        nonces.withLock { nonces in
            if nonces[origin]?.challenge == challenge { nonces[origin] = nil }
        }
    }

    /// Returns the last challenge of an origin and the next count; `nil` before the first
    /// challenge.
    private func turn(at origin: Origin) -> (DigestChallenge, UInt32)? {
        nonces.withLock { $0[origin] }.map { ($0.challenge, $0.next()) }
    }

    /// Returns a credential. The placeholder differs between users, so that a cache separates their
    /// responses.
    ///
    /// - Parameter turn: A closure that returns the challenge and the count for a request to an
    ///   origin, or `nil` to send no credential.
    private func credential(
        _ turn: @escaping @Sendable (Origin) -> (DigestChallenge, UInt32)?
    ) -> Request.Signature {
        Request.Signature(placeholder: "Digest " + ASCII.hexadecimal(SHA2.sha256.hash(Data(user.utf8)))) {
            method, url, _ in
            guard let origin = Origin(url), let (challenge, count) = turn(origin) else { return nil }
            return self.credentials((method, url), challenge, count)
        }
    }

    /// Returns the value of the field.
    private func credentials(
        _ request: (method: Request.Method, url: String), _ challenge: DigestChallenge, _ count: UInt32
    ) -> String? {
        var generator = SystemRandomNumberGenerator()
        let random = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let value = challenge.credentials(
            (user, password), (request.method.rawValue, Self.target(of: request.url)), count: count,
            clientNonce: ASCII.hexadecimal(random))
        return ASCII.isFieldValue(value.utf8) ? value : nil
    }

    /// Returns the path and the query of a URL.
    private static func target(of url: String) -> String {
        let authority = url.utf8.firstRange(of: "://".utf8)?.upperBound ?? url.startIndex
        let rest = url.utf8[authority...].drop { !"/?#".utf8.contains($0) }.prefix { $0 != UInt8(ascii: "#") }
        let target = String(Substring(rest))
        return target.utf8.first == UInt8(ascii: "/") ? target : "/" + target
    }
}
