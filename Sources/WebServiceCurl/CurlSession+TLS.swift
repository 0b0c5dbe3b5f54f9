extension CurlSession {
    /// The TLS configuration of a session. Server certificates are always verified.
    public struct TLS: Sendable {
        /// The path of a PEM file with the trusted certificates; `nil` trusts those of the system.
        ///
        /// A changed file, the system's included, is read again after at most five minutes.
        /// Defaults to `nil`.
        public var trustedCertificatesFile: String?

        /// The certificate to present to servers that request one. Defaults to `nil`.
        public var clientCertificate: ClientCertificate?

        /// The pins of the accepted public keys, required in addition to a trusted certificate.
        ///
        /// A pin is `sha256//` followed by the base64 of the SHA-256 of the key's
        /// `SubjectPublicKeyInfo` (RFC 7469, section 2.4). An empty array accepts every key.
        /// Another key fails with `URLError.serverCertificateUntrusted`, whose `pinnedKeyMismatch`
        /// contains it.
        /// Defaults to an empty array.
        public var pinnedPublicKeys: [String] = []

        /// The minimum TLS version. Defaults to ``Version/tls12``.
        public var minimumVersion = Version.tls12

        /// Creates a configuration with the default values.
        public init() {}

        /// A version of TLS.
        public enum Version: Sendable, Hashable {
            /// TLS 1.2 (RFC 5246).
            case tls12
            /// TLS 1.3 (RFC 8446).
            case tls13
        }

        /// A client certificate and its private key, in PEM files.
        public struct ClientCertificate: Sendable {
            /// The path of the certificate file.
            public var certificateFile: String
            /// The path of the private key file.
            public var keyFile: String
            /// The password of the private key; `nil` when the key is not encrypted.
            public var keyPassword: String?

            /// Creates a client certificate.
            public init(certificateFile: String, keyFile: String, keyPassword: String? = nil) {
                self.certificateFile = certificateFile
                self.keyFile = keyFile
                self.keyPassword = keyPassword
            }
        }
    }
}

extension CurlSession.TLS.ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The paths, without the password; safe to log.
    public var description: String { "certificate \(certificateFile), key \(keyFile)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The paths, and whether a password is set.
    public var customMirror: Mirror {
        let children: [(String?, Any)] =
            [("certificateFile", certificateFile), ("keyFile", keyFile), ("hasKeyPassword", keyPassword != nil)]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
