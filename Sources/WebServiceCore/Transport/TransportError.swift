public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLError {
    /// Creates a `URLError` without the failing URL, which may contain secrets; `nil` for an error
    /// that is neither a URL error, a POSIX error nor a `CancellationError`. A
    /// ``URLError/PinnedKeyMismatch``, the code of an underlying POSIX error and
    /// ``requestWasNotSent`` are preserved. An error that describes its request is returned
    /// unchanged.
    init?(transport error: any Error) {
        if let error = error as? URLError, error.describesRequest {
            self = error
            return
        }
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
        information[Self.notSentKey] = error.userInfo[Self.notSentKey]
        self.init(code, userInfo: information)
    }

    private static let notSentKey = "WebService.requestWasNotSent"

    /// Whether it is certain that no byte of the request was sent, so the request can be sent again
    /// with any method.
    ///
    /// `CurlSession` sets this flag if the exchange ends before any byte of the request is sent,
    /// for example because the host or the proxy cannot be found or connected to, a proxy refuses
    /// the tunnel, a TLS handshake fails, or the idle timeout expires before the connection is
    /// established. ``FoundationSession`` on Linux sets the flag if the host cannot be found or
    /// connected to and the session has had no connection before and has no other request in
    /// flight, because Foundation does not report whether it has sent the request on an earlier
    /// connection. Other sessions of Foundation do not set the flag.
    public var requestWasNotSent: Bool { (self as NSError).userInfo[Self.notSentKey] as? Bool == true }

    /// Returns the error with ``requestWasNotSent``, for a custom session or a stub.
    public func markingRequestNotSent() -> URLError {
        var information = (self as NSError).userInfo
        information[Self.notSentKey] = true
        return URLError(code, userInfo: information)
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
    /// Returns whether the response remains the result if its body ends with an error. This is the
    /// case if the status is not 200 to 299 and the request was not cancelled.
    func outlasts(_ error: any Error) -> Bool {
        isHTTP && !(200..<300).contains(status) && (error as? URLError)?.code != .cancelled
    }
}

/// The reason why a closed session refuses a request.
package struct SessionClosure: Refusal {
    /// The instant of the system clock at which the session cancelled its requests; `nil` if the
    /// session did not cancel them.
    ///
    /// A task that was resumed before that instant ends with `URLError.cancelled`, even if its
    /// request reaches the session later. The system clock is used because all instants of a test
    /// clock could be equal.
    let cancellation: UInt64?

    package init(cancellation: UInt64?) { self.cancellation = cancellation }
}

extension URLError {
    /// The cause of a `URLError.serverCertificateUntrusted` if the certificate is trusted, but its
    /// public key is not pinned.
    ///
    /// ```swift
    /// catch let error as URLError where error.pinnedKeyMismatch != nil { … }
    /// ```
    public struct PinnedKeyMismatch: Error, Sendable, Hashable, CustomStringConvertible {
        /// The accepted pins, as configured.
        public let expected: [String]

        /// The pin of the key in the server's certificate: `sha256//` and the SHA-256 hash of the
        /// key in Base64 (RFC 7469, section 2.4).
        ///
        /// The value is `nil` if the TLS library does not report the certificate.
        public let presented: String?

        /// Creates a mismatch between the accepted pins and the presented pin.
        public init(expected: [String], presented: String?) {
            self.expected = expected
            self.presented = presented
        }

        /// The presented pin and the accepted ones.
        public var description: String {
            let pins = expected.joined(separator: ", ")
            return "the server's public key \(presented ?? "(unknown)") is not one of the pinned keys \(pins)"
        }
    }
}

extension URLError {
    /// The mismatch of pinned keys that caused the error.
    ///
    /// The value is `nil` for every other error, such as that of an untrusted certificate.
    public var pinnedKeyMismatch: PinnedKeyMismatch? {
        (self as NSError).userInfo[NSUnderlyingErrorKey] as? PinnedKeyMismatch
    }
}
