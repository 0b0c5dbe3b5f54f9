import Foundation
import WebServiceCore
import WebServiceOAuth

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The exit status of an error, and a reason for the user.
struct Failure: Error {
    /// The exit statuses, as in `sysexits.h`.
    enum Status: Int32 {
        case failure = 1
        case usage = 64
        case unavailable = 69
        /// The tool may or may not have taken effect.
        case unknown = 75
        case noPermission = 77
        case interrupted = 130
    }

    let status: Status
    let reason: String

    init(_ status: Status, _ reason: String) {
        (self.status, self.reason) = (status, reason)
    }

    /// Returns a failure for wrong arguments.
    static func usage(_ reason: String) -> Failure { Failure(.usage, reason) }

    init(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as RemoteError: self.init(.failure, "the server reports error \(error.code): \(error.message)")
        case let error as ResultUnknown:
            let cause = error.underlying.map { ": \($0.localizedDescription)" } ?? ""
            self.init(.unknown, "there is no result, and the call may have taken effect\(cause)")
        case is CancellationError: self.init(.interrupted, "interrupted")
        case let error as URLError where error.code == .cancelled: self.init(.interrupted, "interrupted")
        case let error as URLError where error.isConnectionFailure:
            self.init(.unavailable, "the server cannot be reached: \(error.localizedDescription)")
        case let error as TimedOut: self.init(.unavailable, error.localizedDescription)
        case let error as WebServiceError where [.authorizationRefused, .authorizationExpired].contains(error.code):
            self.init(.noPermission, error.localizedDescription)
        case let error as WebServiceError where [401, 403].contains(error.status):
            let command = "'mcp-client login URL'\(Self.scopes(of: error))"
            self.init(.noPermission, "the server requires a log-in; run \(command)")
        case let error as WebServiceError where error.code == .authenticationFailed && error.underlying != nil:
            self = error.underlying.map(Failure.init) ?? Failure(.failure, error.localizedDescription)
        default: self.init(.failure, error.localizedDescription)
        }
    }

    /// Returns the option with the scopes that the server requires. Scopes with other characters are
    /// omitted, because a user may copy the option into a shell.
    private static func scopes(of error: WebServiceError) -> String {
        let scopes = (error.response.map(OAuth.Challenge.all)?.flatMap(\.scopes) ?? []).filter { scope in
            scope.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || ":/._-".contains($0)) }
        }
        return scopes.isEmpty ? "" : " with --scope '\(scopes.joined(separator: " "))'"
    }
}
