public import Foundation
import SystemCrypto
public import WebServiceCore

extension OAuth {
    /// A private key on the curve P-256, for signatures with ES256 (RFC 7518, section 3.4).
    ///
    /// CryptoKit signs on Apple platforms, and the system's libcrypto (OpenSSL 1.1.1 or 3) on
    /// Linux. The description of this type omits the key.
    public struct SigningKey: Sendable, Hashable {
        let key: P256Key

        /// Creates a random key.
        ///
        /// - Throws: `WebServiceError.Code.encoding` if libcrypto is missing.
        public init() throws { key = try P256Key() }

        /// Creates a key from its ``rawRepresentation``.
        ///
        /// - Throws: `WebServiceError.Code.encoding` if the bytes are not a key, or if libcrypto
        ///   is missing.
        public init(rawRepresentation: Data) throws { key = try P256Key(privateKey: rawRepresentation) }

        /// Creates a key from PEM without a password, in PKCS #8 (`BEGIN PRIVATE KEY`) or SEC 1
        /// (`BEGIN EC PRIVATE KEY`).
        ///
        /// - Throws: The same errors as ``init(rawRepresentation:)``.
        public init(pem: String) throws { key = try P256Key(pem: pem) }

        /// The private key as 32 bytes. Store it like a password.
        public var rawRepresentation: Data { key.privateKey }

        /// The members of the public key as a JSON Web Key (RFC 7517), for registering the key.
        public var publicJWK: [String: String] { key.publicJWK }
    }
}

extension OAuth.SigningKey: RedactedReflectable {
    /// The name of the curve.
    public var description: String { "a key on P-256" }
}
