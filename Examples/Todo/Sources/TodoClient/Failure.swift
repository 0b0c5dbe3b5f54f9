import Foundation
import WebServiceCore

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
        case noPermission = 77
    }

    let status: Status
    let reason: String

    init(_ status: Status = .failure, _ reason: String) {
        (self.status, self.reason) = (status, reason)
    }

    /// Returns a failure for wrong arguments.
    static func usage(_ reason: String) -> Failure { Failure(.usage, "\(reason); 'todo --help' lists the commands") }

    init(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as URLError where error.isConnectionFailure || error.code == .timedOut:
            self.init(.unavailable, "the server cannot be reached")
        case let error as WebServiceError where [401, 403].contains(error.status):
            self.init(.noPermission, "the user name or the password is wrong")
        case let error as WebServiceError where error.code == .authenticationFailed:
            self =
                (error.underlying as? URLError).map(Failure.init)
                ?? Failure(.noPermission, "the log-in is no longer valid; log in again")
        default: self.init(.failure, error.localizedDescription)
        }
    }
}
