public import Foundation

/// A credential for a server: a header field and its value.
///
/// The descriptions of a credential omit its value.
public struct Credential: Sendable, Hashable {
    /// The name of the header field. Defaults to `Authorization`.
    public var header: Headers.Name
    /// The value of the field.
    public var value: String
    /// The expiry date; `nil` if it is unknown.
    public var expires: Date?

    /// Creates a credential with a field name, a field value and an expiry date.
    public init(header: Headers.Name = .authorization, value: String, expires: Date? = nil) {
        self.header = header
        self.value = value
        self.expires = expires
    }

    /// Creates a credential that expires after a duration, for example after the `expires_in` of a
    /// token response (RFC 6749, section 5.1).
    ///
    /// - Parameters:
    ///   - header: The name of the header field. Defaults to `Authorization`.
    ///   - value: The value of the field.
    ///   - lifetime: The duration; `nil` if it is unknown. A negative duration counts as zero.
    ///   - date: The date at which the duration begins. Pass ``WebService/date``.
    public init(header: Headers.Name = .authorization, value: String, expiresIn lifetime: Duration?, from date: Date) {
        let expires = lifetime.map { date.addingTimeInterval(max($0, .zero).inSeconds) }
        self.init(header: header, value: value, expires: expires)
    }

    /// Returns a credential with a bearer token: `Authorization: Bearer …` (RFC 6750).
    public static func bearer(_ token: String, expires: Date? = nil) -> Credential {
        Credential(value: "Bearer \(token)", expires: expires)
    }

    /// Returns a credential with a bearer token that expires after a duration; see
    /// ``init(header:value:expiresIn:from:)``.
    public static func bearer(_ token: String, expiresIn lifetime: Duration?, from date: Date) -> Credential {
        Credential(value: "Bearer \(token)", expiresIn: lifetime, from: date)
    }

    /// Returns a credential with a user name and a password in UTF-8: `Authorization: Basic …` (RFC
    /// 7617).
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` if the user name contains a colon, or if either
    ///   string contains control characters.
    public static func basic(user: String, password: String) throws -> Credential {
        guard !user.utf8.contains(UInt8(ascii: ":")) else {
            throw WebServiceError(
                .encoding, "the user name for Basic or Digest authentication must not contain a colon")
        }
        guard (user + password).utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw WebServiceError(
                .encoding, "credentials for Basic or Digest authentication must not contain control characters")
        }
        return Credential(value: "Basic " + Data("\(user):\(password)".utf8).base64EncodedString())
    }
}

extension Credential: RedactedReflectable {
    /// The name of the field, without its value.
    public var description: String { "\(header.rawValue): [redacted]" }
}

/// A source of credentials for ``Authentication``.
///
/// Its methods are called concurrently for several exchanges.
///
/// ``TokenSource`` implements this protocol with closures.
public protocol TokenProvider: Sendable {
    /// Returns the credential to send, or `nil` to send none.
    ///
    /// This method is called before each request, unless a refresh or an update has provided a
    /// newer credential. It is also called during a refresh; return the earlier credential until
    /// the new one can be used.
    ///
    /// - Throws: An error that becomes the error of the request.
    func credential() async throws -> Credential?

    /// Returns a new credential to replace one that was rejected or is about to expire.
    ///
    /// ``Authentication`` starts a refresh only after the previous one has ended or was cancelled.
    ///
    /// Requests that the refresh sends through a service with the same ``Authentication`` are sent
    /// without credentials and trigger no refresh. By default, a redirect that would send the body
    /// of such a request to another origin is refused, so that a refresh token is not sent
    /// elsewhere.
    ///
    /// - Returns: `nil` if no refresh is possible. The response with status 401 is then the result.
    /// - Throws: An error that the requests that fail with
    ///   ``WebServiceError/Code/authenticationFailed`` have as their underlying error.
    func refresh(_ rejected: Credential?) async throws -> Credential?
}

extension TokenProvider {
    /// Returns `nil`: no refresh is possible.
    public func refresh(_ rejected: Credential?) async throws -> Credential? { nil }
}

/// A ``TokenProvider`` with a fixed credential or closures.
public struct TokenSource: TokenProvider {
    private let read: @Sendable () async throws -> Credential?
    private let renew: (@Sendable (Credential?) async throws -> Credential?)?

    /// Creates a source of a credential that never changes.
    public init(_ credential: Credential) {
        self.init { credential }
    }

    /// Creates a source that reads the credential before each request.
    ///
    /// - Parameters:
    ///   - read: A closure that returns the credential to send, or `nil` to send none.
    ///   - refresh: A closure that returns a new credential to replace a rejected one, or `nil` if
    ///     that is impossible. Defaults to `nil`: no refresh.
    public init(
        _ read: @escaping @Sendable () async throws -> Credential?,
        refresh: (@Sendable (_ rejected: Credential?) async throws -> Credential?)? = nil
    ) {
        self.read = read
        renew = refresh
    }

    /// Creates a source that refreshes the credential with a callback.
    ///
    /// The credential is read before each request.
    ///
    /// - Parameters:
    ///   - read: A closure that returns the credential to send, or `nil` to send none.
    ///   - refresh: A closure that obtains a new credential and calls the completion handler with
    ///     the result. The handler must be called once, on any thread, possibly before the closure
    ///     returns; later calls are ignored. If the handler is never called,
    ///     ``Authentication/refreshLimit`` ends the wait. If the handler is deallocated without a
    ///     call, the refresh fails. A request that the closure sends from a Dispatch queue through
    ///     a service with the same ``Authentication`` must be resumed inside
    ///     ``Authentication/bypassing(_:)``.
    public init(
        _ read: @escaping @Sendable () async throws -> Credential?,
        refreshWithCallback refresh:
            @escaping @Sendable (
                _ rejected: Credential?, _ completion: @escaping @Sendable (Result<Credential, any Error>) -> Void
            ) -> Void
    ) {
        self.init(read) { rejected in
            let result = Once<Result<Credential, any Error>>()
            Self.start(refresh, rejected, result)
            return try await result.value.get()
        }
    }

    /// Starts a refresh. Only its completion handler retains the callback.
    private static func start(
        _ refresh: (Credential?, @escaping @Sendable (Result<Credential, any Error>) -> Void) -> Void,
        _ rejected: Credential?, _ result: Once<Result<Credential, any Error>>
    ) {
        let callback = RefreshCallback(result)
        refresh(rejected) { callback.result.set($0) }
    }

    /// Returns the result of the closure.
    public func credential() async throws -> Credential? { try await read() }

    /// Returns the result of the closure, or `nil` if there is no closure.
    public func refresh(_ rejected: Credential?) async throws -> Credential? { try await renew?(rejected) }
}

/// The callback of a refresh. The refresh fails if the callback is deallocated without a call.
private final class RefreshCallback: Sendable {
    let result: Once<Result<Credential, any Error>>

    init(_ result: Once<Result<Credential, any Error>>) {
        self.result = result
    }

    deinit {
        let message = "the refresh did not call its completion handler; call the handler exactly once"
        result.set(.failure(WebServiceError(.authenticationFailed, message)))
    }
}
