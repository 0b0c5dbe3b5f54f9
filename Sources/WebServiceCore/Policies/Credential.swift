public import Foundation

/// What proves to a server who asks: a header field and its value.
///
/// Its descriptions hide the value.
public struct Credential: Sendable, Hashable {
    /// The header field, `Authorization` by default.
    public var header: Headers.Name
    /// The value of the field.
    public var value: String
    /// When it ceases to be accepted; `nil` when that is not known.
    public var expires: Date?

    /// Makes a credential.
    public init(header: Headers.Name = .authorization, value: String, expires: Date? = nil) {
        self.header = header
        self.value = value
        self.expires = expires
    }

    /// `Authorization: Bearer …` (RFC 6750).
    public static func bearer(_ token: String, expires: Date? = nil) -> Credential {
        Credential(value: "Bearer \(token)", expires: expires)
    }

    /// `Authorization: Basic …` in UTF-8 (RFC 7617).
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` for a user name with a colon, and for control characters in either.
    public static func basic(user: String, password: String) throws -> Credential {
        guard !user.utf8.contains(UInt8(ascii: ":")) else {
            throw WebServiceError(.encoding, "a user name with a colon cannot be sent by Basic authentication")
        }
        guard (user + password).utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw WebServiceError(.encoding, "control characters cannot be sent by Basic authentication")
        }
        return Credential(value: "Basic " + Data("\(user):\(password)".utf8).base64EncodedString())
    }
}

extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name of the field, without its value.
    public var description: String { "\(header.rawValue): [redacted]" }
    /// The same as ``description``.
    public var debugDescription: String { description }
    /// What `dump` shows: the same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["header": header.rawValue], displayStyle: .struct) }
}

/// Knows the credential of an account, and how to get a new one. A source for ``Authentication``; called from several exchanges at once.
///
/// ``TokenSource`` makes one of closures.
public protocol TokenProvider: Sendable {
    /// The credential to send now, asked for before each request unless a refresh has given a newer one; `nil` to send none.
    ///
    /// - Throws: What becomes the error of the request.
    func credential() async throws -> Credential?

    /// Gets a new credential in place of one that was refused or is about to expire. ``Authentication`` calls it once at a time.
    ///
    /// Requests that it sends through a service with the same ``Authentication`` pass without credentials and are not refreshed, and redirects
    /// of a request with a body to other origins are refused, so that a refresh token stays where it belongs.
    ///
    /// - Returns: `nil` when there is no way to get one; the refusal is the answer then.
    /// - Throws: What everybody who waits gets as the underlying error of ``WebServiceError/Code/authenticationFailed``.
    func refresh(_ rejected: Credential?) async throws -> Credential?
}

extension TokenProvider {
    /// No way to get a new one.
    public func refresh(_ rejected: Credential?) async throws -> Credential? { nil }
}

/// A ``TokenProvider`` made of a fixed credential or of closures.
public struct TokenSource: TokenProvider {
    private let read: @Sendable () async throws -> Credential?
    private let renew: (@Sendable (Credential?) async throws -> Credential?)?

    /// A credential that never changes.
    public init(_ credential: Credential) {
        self.init { credential }
    }

    /// Reads the credential before each request.
    ///
    /// - Parameters:
    ///   - read: The credential to send now; `nil` for none.
    ///   - refresh: Gets a new one in place of one that was refused; `nil` when there is no way.
    public init(
        _ read: @escaping @Sendable () async throws -> Credential?,
        refresh: (@Sendable (_ rejected: Credential?) async throws -> Credential?)? = nil
    ) {
        self.read = read
        renew = refresh
    }

    /// Reads the credential before each request, and refreshes it by code that calls back.
    ///
    /// - Parameters:
    ///   - read: Gives the current credential; `nil` when there is none.
    ///   - refresh: Gets a new one and calls the closure with it, once, on any thread, also at once; later calls are ignored. If it
    ///     never calls, ``Authentication/refreshLimit`` ends the wait; if it lets go of the closure, the refresh has failed. A request that it sends
    ///     from a Dispatch queue through a service with the same ``Authentication`` has to be resumed inside ``Authentication/bypassing(_:)``.
    public init(
        _ read: @escaping @Sendable () async throws -> Credential?,
        refreshWithCallback refresh:
            @escaping @Sendable (
                _ rejected: Credential?, _ completion: @escaping @Sendable (Result<Credential, any Error>) -> Void
            ) -> Void
    ) {
        self.init(read) { rejected in
            try await withCheckedThrowingContinuation { continuation in
                let forgotten = WebServiceError(.authenticationFailed, "the refresh has let go of its completion without calling it")
                let waiter = OneTimeContinuation(continuation, forgotten: forgotten)
                refresh(rejected) { waiter.resume(with: $0) }
            }
        }
    }

    /// Calls the closure.
    public func credential() async throws -> Credential? { try await read() }

    /// Calls the closure.
    public func refresh(_ rejected: Credential?) async throws -> Credential? { try await renew?(rejected) }
}
