public import Foundation

extension CurlSession {
    /// The TLS configuration of a session, of one of its hosts or of its proxy. Server certificates
    /// are always verified.
    ///
    /// The session reads and checks all files when it is created. If a file is missing or does not
    /// have the described format, the session cannot be created.
    public struct TLS: Sendable {
        /// The path of a PEM or DER file with the trusted certificates.
        ///
        /// If a PEM file, including the system's, changes, it is read again within five minutes. A
        /// DER file is read only once, as is a PEM file that is combined with
        /// ``trustedCertificates`` or ``includesSystemCertificates``. Defaults to `nil`.
        public var trustedCertificatesFile: String?

        /// The trusted certificates in PEM or DER, in addition to those of
        /// ``trustedCertificatesFile``.
        ///
        /// If both are `nil`, the system's certificates are trusted. Each new connection parses the
        /// certificates. Defaults to `nil`.
        public var trustedCertificates: Data?

        /// Whether the system's certificates are trusted in addition to ``trustedCertificatesFile``
        /// and ``trustedCertificates``.
        ///
        /// Unless a system directory contains all of the system's certificates, as on Debian, each
        /// new connection parses them, which takes about 17 ms of processor time. Defaults to
        /// `false`.
        public var includesSystemCertificates = false

        /// The certificate to present to servers that request one. Defaults to `nil`.
        public var clientCertificate: ClientCertificate?

        /// The pins of the accepted public keys. A server also needs a trusted certificate.
        ///
        /// A pin is `sha256//` followed by the Base64-encoded SHA-256 hash of the key's
        /// `SubjectPublicKeyInfo` (RFC 7469, section 2.4). If no pin matches the server's key, the
        /// request fails with `URLError.serverCertificateUntrusted`, whose `pinnedKeyMismatch`
        /// contains the pin of that key if the TLS library reports it. Defaults to an empty array,
        /// which accepts every key.
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

        /// A client certificate and its private key.
        ///
        /// The certificate is in PEM, DER or PKCS #12, and the key in PEM or DER. A PEM certificate
        /// may be followed by the certificates of its issuers.
        public struct ClientCertificate: Sendable {
            enum Source: Sendable {
                case file(String)
                case data(Data)
            }

            let certificate: Source
            /// `nil` if ``certificate`` contains the key.
            let key: Source?
            let password: String?

            /// Creates a client certificate from files, which each new connection reads.
            ///
            /// - Parameters:
            ///   - certificateFile: The path of the certificate.
            ///   - keyFile: The path of the private key. Defaults to `nil`: the file of the
            ///     certificate, in PEM or PKCS #12, also contains the key.
            ///   - keyPassword: The password of the private key or of the PKCS #12 file. Defaults
            ///     to `nil`: the key is not encrypted.
            public init(certificateFile: String, keyFile: String? = nil, keyPassword: String? = nil) {
                certificate = .file(certificateFile)
                key = keyFile.map { .file($0) }
                password = keyPassword
            }

            /// Creates a client certificate from data in memory.
            ///
            /// If libcurl uses a TLS library that reads certificates only from files, such as
            /// GnuTLS, a session with this certificate cannot be created.
            ///
            /// - Parameters:
            ///   - certificate: The certificate.
            ///   - key: The private key. Defaults to `nil`: the certificate, in PEM or PKCS #12,
            ///     also contains the key.
            ///   - keyPassword: The password of the private key or of the PKCS #12 data. Defaults
            ///     to `nil`: the key is not encrypted.
            public init(certificate: Data, key: Data? = nil, keyPassword: String? = nil) {
                self.certificate = .data(certificate)
                self.key = key.map { .data($0) }
                password = keyPassword
            }
        }
    }
}

extension CurlSession.TLS.ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A description that is safe to log: the paths, without the password and without data in
    /// memory.
    public var description: String { "certificate \(certificate.name), key \((key ?? certificate).name)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The paths, and whether a password is set.
    public var customMirror: Mirror {
        let children: [(String?, Any)] = [
            ("certificate", certificate.name), ("key", (key ?? certificate).name),
            ("hasKeyPassword", password != nil),
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}

extension CurlSession.TLS.ClientCertificate.Source {
    fileprivate var name: String { if case .file(let path) = self { path } else { "in memory" } }

    /// The path of the file; `nil` for data in memory.
    var path: String? { if case .file(let path) = self { path } else { nil } }
}
