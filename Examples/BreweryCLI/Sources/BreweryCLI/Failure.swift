import ArgumentParser
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension ExitCode {
    /// `EX_UNAVAILABLE` of sysexits.h: the server cannot be reached.
    static let unavailable = ExitCode(69)
    /// `EX_NOPERM` of sysexits.h: the token is missing or rejected.
    static let noPermission = ExitCode(77)
    /// The status of a process that SIGINT has ended.
    static let interrupted = ExitCode(130)
}

/// The exit code of an error, and a reason for the user.
struct Failure: Error {
    let exitCode: ExitCode
    let reason: String

    init(exitCode: ExitCode, reason: String) {
        self.exitCode = exitCode
        self.reason = reason
    }

    init(_ error: any Error) {
        switch error {
        case let failure as Failure:
            self = failure
        case is CancellationError:
            self.init(exitCode: .interrupted, reason: "interrupted")
        case let error as URLError where error.isConnectionFailure || error.code == .timedOut:
            self.init(
                exitCode: .unavailable, reason: "the server cannot be reached: \(error.localizedDescription)")
        case let error as WebServiceError where [401, 403].contains(error.status):
            self.init(exitCode: .noPermission, reason: "the token was rejected")
        default:
            // The text of a response's error contains its status and its problem details (RFC 9457).
            self.init(exitCode: .failure, reason: error.localizedDescription)
        }
    }
}
