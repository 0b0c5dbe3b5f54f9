import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLError {
    /// Creates a `URLError` without the failing URL, which may contain secrets; `nil` for an error
    /// of another domain. A ``URLError/PinnedKeyMismatch`` and the code of an underlying POSIX
    /// error are preserved.
    init?(transport error: any Error) {
        if error is CancellationError {
            self.init(.cancelled)
            return
        }
        let error = error as NSError
        let code: Code? = error.domain == NSPOSIXErrorDomain ? Self.code(posix: error.code) : Code(rawValue: error.code)
        guard error.domain == NSURLErrorDomain || error.domain == NSPOSIXErrorDomain, let code else { return nil }
        var information: [String: Any] = [NSLocalizedDescriptionKey: error.localizedDescription]
        let underlying = error.userInfo[NSUnderlyingErrorKey]
        if let mismatch = underlying as? URLError.PinnedKeyMismatch {
            information[NSUnderlyingErrorKey] = mismatch
        } else if let cause = error.domain == NSPOSIXErrorDomain ? error : underlying as? NSError,
            cause.domain == NSPOSIXErrorDomain
        {
            information[NSUnderlyingErrorKey] = NSError(domain: NSPOSIXErrorDomain, code: cause.code)
        }
        self.init(code, userInfo: information)
    }

    private static func code(posix code: Int) -> Code {
        switch POSIXErrorCode(rawValue: Int32(truncatingIfNeeded: code)) {
        case .ECONNREFUSED, .EHOSTUNREACH, .EHOSTDOWN: .cannotConnectToHost
        case .ECONNRESET, .EPIPE, .ECONNABORTED, .ENOTCONN: .networkConnectionLost
        case .ETIMEDOUT: .timedOut
        case .ENETUNREACH, .ENETDOWN: .notConnectedToInternet
        case .ECANCELED: .cancelled
        default: .unknown
        }
    }
}

extension ResponseHead {
    /// Returns whether the status and the fields decide the outcome if the body ends with an error:
    /// if the status is not 200 to 299, and the request was not cancelled.
    func outlasts(_ error: any Error) -> Bool {
        isHTTP && !(200..<300).contains(status) && (error as? URLError)?.code != .cancelled
    }
}
