public import Foundation

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

        /// The pin of the key in the server's certificate: `sha256//` and a base64 string (RFC
        /// 7469, section 2.4).
        ///
        /// `nil` if the TLS library does not report the certificate.
        public let presented: String?

        /// Creates a mismatch.
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
    /// `nil` for every other error, such as that of an untrusted certificate.
    public var pinnedKeyMismatch: PinnedKeyMismatch? {
        (self as NSError).userInfo[NSUnderlyingErrorKey] as? PinnedKeyMismatch
    }
}
