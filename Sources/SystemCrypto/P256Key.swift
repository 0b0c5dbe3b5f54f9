package import Foundation
package import WebServiceCore

#if canImport(CryptoKit)
import CryptoKit
#endif

/// A private key for ECDSA signatures with the curve P-256 and SHA-256 (the algorithm `ES256` of
/// RFC 7518).
///
/// CryptoKit creates the signatures on Apple platforms, and libcrypto on all others.
package struct P256Key: Sendable, Hashable {
    /// The private key: a number of 32 bytes, with the most significant byte first.
    package let privateKey: Data
    /// The coordinates x and y of the public key, with 32 bytes each.
    package let publicKey: Data

    /// Creates a random key.
    ///
    /// - Throws: ``WebServiceError`` with the code `encoding` if libcrypto is missing.
    package init() throws(WebServiceError) {
        var bytes = Data.random(32)
        while !Self.isInRange(Array(bytes)) { bytes = .random(32) }  // fewer than one in 2³² numbers are out of range
        try self.init(privateKey: bytes)
    }

    /// The order of the curve (SEC 2, section 2.4.2).
    private static let order: [UInt8] =
        [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]
        + [0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51]

    /// Returns whether 32 bytes represent a number from 1 to the order of the curve minus 1.
    static func isInRange(_ bytes: [UInt8]) -> Bool {
        bytes.count == 32 && bytes.contains { $0 != 0 } && bytes.lexicographicallyPrecedes(order)
    }

    static let invalidKey = WebServiceError(
        .encoding, "the key is not a private key on the curve P-256; pass 32 bytes, or PEM without a password")
}

#if canImport(CryptoKit)

// This part has not been built, because the package has not been built for Apple platforms.

extension P256Key {
    /// Creates a key from its bytes.
    package init(privateKey: Data) throws(WebServiceError) {
        guard let key = try? P256.Signing.PrivateKey(rawRepresentation: privateKey) else { throw Self.invalidKey }
        (self.privateKey, publicKey) = (key.rawRepresentation, key.publicKey.rawRepresentation)
    }

    /// Creates a key from PEM, either PKCS #8 or SEC 1.
    package init(pem: String) throws(WebServiceError) {
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) else { throw Self.invalidKey }
        (privateKey, publicKey) = (key.rawRepresentation, key.publicKey.rawRepresentation)
    }

    /// Returns a signature, which consists of the numbers r and s with 32 bytes each.
    package func signature(of data: Data) throws(WebServiceError) -> Data {
        guard let key = try? P256.Signing.PrivateKey(rawRepresentation: privateKey),
            let signature = try? key.signature(for: data)
        else { throw Self.invalidKey }
        return signature.rawRepresentation
    }

    /// Returns whether a signature is valid for a public key.
    package static func isValid(_ signature: Data, of data: Data, publicKey: Data) -> Bool {
        guard let key = try? P256.Signing.PublicKey(rawRepresentation: publicKey),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
        else { return false }
        return key.isValidSignature(signature, for: data)
    }
}

#else

extension P256Key {
    /// The encoding of a public key up to its coordinates, with the algorithm and the curve (RFC
    /// 5480).
    private static let publicKeyHeader: [UInt8] =
        [0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        + [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04]
    /// The encoding of the curve of a private key (RFC 5915).
    private static let curve: [UInt8] = [0xA0, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
    /// The encoding of the version, and the header of the private key (RFC 5915).
    private static let version: [UInt8] = [0x02, 0x01, 0x01, 0x04, 0x20]

    /// Creates a key from its bytes.
    package init(privateKey: Data) throws(WebServiceError) {
        guard Self.isInRange(Array(privateKey)) else { throw Self.invalidKey }
        let der = [0x30, 0x31] + Self.version + Array(privateKey) + Self.curve
        try self.init(der: der)
    }

    /// Creates a key from PEM, either PKCS #8 or SEC 1.
    package init(pem: String) throws(WebServiceError) {
        let lines = pem.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
        guard let start = lines.firstIndex(where: { $0.hasPrefix("-----BEGIN ") && $0.hasSuffix("PRIVATE KEY-----") }),
            let end = lines[start...].firstIndex(where: { $0.hasPrefix("-----END ") }),
            let der = Data(base64Encoded: lines[(start + 1)..<end].joined())
        else { throw Self.invalidKey }
        try self.init(der: Array(der))
    }

    private init(der: [UInt8]) throws(WebServiceError) {
        let library = try SignatureLibrary.loaded()
        let key = try library.privateKey(der)
        defer { library.releaseKey(key) }
        let secret = library.encoding(key, by: library.encodePrivateKey).dropFirst(2)
        let shared = library.encoding(key, by: library.encodePublicKey)
        guard secret.starts(with: Self.version), secret.count >= Self.version.count + 32,
            shared.starts(with: Self.publicKeyHeader), shared.count == Self.publicKeyHeader.count + 64
        else { throw Self.invalidKey }
        privateKey = Data(secret.dropFirst(Self.version.count).prefix(32))
        publicKey = Data(shared.suffix(64))
    }

    /// Returns a signature, which consists of the numbers r and s with 32 bytes each.
    package func signature(of data: Data) throws(WebServiceError) -> Data {
        let library = try SignatureLibrary.loaded()
        let point = [0xA1, 0x44, 0x03, 0x42, 0x00, 0x04] + Array(publicKey)
        let key = try library.privateKey([0x30, 0x77] + Self.version + Array(privateKey) + Self.curve + point)
        defer { library.releaseKey(key) }
        guard let der = library.sign(Array(data), with: key), let numbers = Self.numbers(der) else {
            throw WebServiceError(.encoding, "libcrypto could not compute a signature with the key")
        }
        return Data(numbers)
    }

    /// Returns whether a signature is valid for a public key.
    package static func isValid(_ signature: Data, of data: Data, publicKey: Data) -> Bool {
        guard let library = SignatureLibrary.shared, signature.count == 64,
            let key = library.publicKey(publicKeyHeader + Array(publicKey))
        else { return false }
        defer { library.releaseKey(key) }
        let numbers = [signature.prefix(32), signature.suffix(32)].flatMap { number -> [UInt8] in
            let digits = Array(number.drop { $0 == 0 })
            let positive = (digits.first.map { $0 >= 0x80 } ?? true) ? [0] + digits : digits
            return [0x02, UInt8(positive.count)] + positive
        }
        return library.verify([0x30, UInt8(numbers.count)] + numbers, of: Array(data), with: key)
    }

    /// Returns the numbers r and s of a signature in DER, with 32 bytes each.
    private static func numbers(_ der: [UInt8]) -> [UInt8]? {
        var rest = der.dropFirst(2)
        var numbers: [UInt8] = []
        for _ in 0..<2 {
            guard rest.popFirst() == 0x02, let count = rest.popFirst(), rest.count >= count else { return nil }
            let digits = rest.prefix(Int(count)).drop { $0 == 0 }
            guard digits.count <= 32 else { return nil }
            numbers += Array(repeating: 0, count: 32 - digits.count) + digits
            rest = rest.dropFirst(Int(count))
        }
        return numbers
    }
}

/// The functions of libcrypto for signatures. They exist in OpenSSL 1.1.1 and 3.
private struct SignatureLibrary: Sendable {
    typealias Release = @Sendable @convention(c) (OpaquePointer) -> Void
    typealias Bytes = UnsafePointer<UInt8>
    typealias Decode =
        @Sendable @convention(c) (OpaquePointer?, UnsafeMutablePointer<Bytes?>, CLong) -> OpaquePointer?
    typealias DecodeOfType =
        @Sendable @convention(c) (CInt, OpaquePointer?, UnsafeMutablePointer<Bytes?>, CLong) -> OpaquePointer?
    typealias Encode =
        @Sendable @convention(c) (OpaquePointer, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt
    typealias Begin =
        @Sendable @convention(c) (
            OpaquePointer, OpaquePointer?, OpaquePointer?, OpaquePointer?, OpaquePointer
        ) -> CInt
    typealias Sign =
        @Sendable @convention(c) (
            OpaquePointer, UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<Int>, Bytes, Int
        ) -> CInt
    typealias Verify = @Sendable @convention(c) (OpaquePointer, Bytes, Int, Bytes, Int) -> CInt

    let base: Libcrypto
    let releaseKey: Release
    let encodePrivateKey: Encode
    let encodePublicKey: Encode
    private let decodePrivateKey: DecodeOfType
    private let decodePublicKey: Decode
    private let beginSigning: Begin
    private let sign: Sign
    private let beginVerifying: Begin
    private let verify: Verify

    static let shared = Libcrypto.shared.flatMap(SignatureLibrary.init)

    static func loaded() throws(WebServiceError) -> SignatureLibrary {
        guard let shared else {
            throw WebServiceError(.encoding, "libcrypto cannot be loaded; install OpenSSL 1.1.1 or 3 (libssl3)")
        }
        return shared
    }

    private init?(_ base: Libcrypto) {
        guard let releaseKey = base.function("EVP_PKEY_free", as: Release.self),
            let encodePrivateKey = base.function("i2d_PrivateKey", as: Encode.self),
            let encodePublicKey = base.function("i2d_PUBKEY", as: Encode.self),
            let decodePrivateKey = base.function("d2i_PrivateKey", as: DecodeOfType.self),
            let decodePublicKey = base.function("d2i_PUBKEY", as: Decode.self),
            let beginSigning = base.function("EVP_DigestSignInit", as: Begin.self),
            let sign = base.function("EVP_DigestSign", as: Sign.self),
            let beginVerifying = base.function("EVP_DigestVerifyInit", as: Begin.self),
            let verify = base.function("EVP_DigestVerify", as: Verify.self)
        else { return nil }
        self.base = base
        (self.releaseKey, self.encodePrivateKey, self.encodePublicKey) = (releaseKey, encodePrivateKey, encodePublicKey)
        (self.decodePrivateKey, self.decodePublicKey) = (decodePrivateKey, decodePublicKey)
        (self.beginSigning, self.sign, self.beginVerifying, self.verify) = (beginSigning, sign, beginVerifying, verify)
    }

    /// The value of `EVP_PKEY_EC`, which is the same in all versions.
    private static let ellipticCurve: CInt = 408

    /// Returns a key, which the caller must release.
    func privateKey(_ der: [UInt8]) throws(WebServiceError) -> OpaquePointer {
        guard let key = decode(der, by: { decodePrivateKey(Self.ellipticCurve, $0, $1, $2) }) else {
            throw P256Key.invalidKey
        }
        return key
    }

    /// Returns a key, which the caller must release, or `nil` if the bytes are not a key.
    func publicKey(_ der: [UInt8]) -> OpaquePointer? { decode(der, by: decodePublicKey) }

    private func decode(
        _ der: [UInt8], by decode: (OpaquePointer?, UnsafeMutablePointer<Bytes?>, CLong) -> OpaquePointer?
    ) -> OpaquePointer? {
        let key = der.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            return decode(nil, &start, bytes.count)
        }
        if key == nil { base.clearErrors() }
        return key
    }

    /// Returns a key in DER, or an empty array if the key cannot be encoded.
    func encoding(_ key: OpaquePointer, by encode: Encode) -> [UInt8] {
        let count = Int(encode(key, nil))
        guard count > 0 else {
            base.clearErrors()
            return []
        }
        return [UInt8](unsafeUninitializedCapacity: count) { bytes, initialized in
            var end = bytes.baseAddress
            initialized = Int(encode(key, &end))
        }
    }

    /// Returns a signature in DER, or `nil` if it cannot be computed.
    func sign(_ data: [UInt8], with key: OpaquePointer) -> [UInt8]? {
        withHash { context, sha256 in
            var count = 128
            var signature = [UInt8](repeating: 0, count: count)
            guard beginSigning(context, nil, sha256, nil, key) == 1,
                sign(context, &signature, &count, data, data.count) == 1
            else { return nil }
            return Array(signature.prefix(count))
        }
    }

    func verify(_ signature: [UInt8], of data: [UInt8], with key: OpaquePointer) -> Bool {
        withHash { context, sha256 in
            beginVerifying(context, nil, sha256, nil, key) == 1
                && verify(context, signature, signature.count, data, data.count) == 1 ? true : nil
        } ?? false
    }

    private func withHash<Result>(_ body: (_ context: OpaquePointer, _ sha256: OpaquePointer?) -> Result?) -> Result? {
        guard let context = base.makeHash() else { return nil }
        defer { base.releaseHash(context) }
        let result = body(context, base.hashFunctions[.sha256]?())
        if result == nil { base.clearErrors() }
        return result
    }
}

#endif
