import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension Error {
    /// Whether the work was cancelled, which is not shown to users.
    var isCancellation: Bool { self is CancellationError || (self as? URLError)?.code == .cancelled }

    /// A sentence for users.
    var messageForUsers: String {
        if (self as? URLError)?.isConnectionFailure == true { return "You are offline." }
        if let title = (self as? WebServiceError)?.problem?.title { return title }
        return "Something went wrong. Please try again."
    }
}
