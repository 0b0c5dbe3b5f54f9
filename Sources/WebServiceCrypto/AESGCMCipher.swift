public import Foundation
import WebServiceCore
public import WebServiceStorage

/// A cipher that uses AES-256-GCM (NIST SP 800-38D) with a random nonce of 96 bits for each entry.
///
/// ```swift
/// // Create the key once, and store it in a key store.
/// let key = Data((0..<32).map { _ in UInt8.random(in: .min ... .max) })
/// let cipher = try AESGCMCipher(key: key)
/// ```
/// The encrypted data consists of the nonce (12 bytes), the ciphertext, which has the same length
/// as the data, and the tag (16 bytes). A key is suitable for at most 2³² entries. After that, use
/// a new key, and pass the previous one in `earlierKeys`. No description of the cipher contains a
/// key.
///
/// The encryption is implemented by libcrypto (OpenSSL), or by CryptoKit on Apple platforms.
public struct AESGCMCipher: StorageCipher {
    /// The key that encrypts, followed by the earlier keys.
    private let keys: [Data]

    /// Creates a cipher.
    ///
    /// - Parameters:
    ///   - key: The key, which must consist of 32 random bytes. It must not be a password.
    ///   - earlierKeys: Keys that are tried in this order for data that `key` cannot decrypt. Each
    ///     attempt takes additional time. Defaults to none.
    /// - Throws: `WebServiceError.Code.storage` if a key does not consist of 32 bytes.
    public init(key: Data, earlierKeys: [Data] = []) throws {
        keys = [key] + earlierKeys
        if let key = keys.first(where: { $0.count != 32 }) {
            throw WebServiceError(
                .storage,
                "a key for AES-256 must have 32 bytes, not \(key.count); create it from 32 random bytes, or derive it "
                    + "with a key derivation function")
        }
    }

    /// Returns the data, encrypted and authenticated with the key.
    ///
    /// - Throws: An error if the library fails, for example because there is not enough memory.
    public func seal(_ data: Data, authenticating context: Data) throws -> Data {
        try seal(data, authenticating: context, nonce: nil)
    }

    /// - Parameter nonce: A nonce of 12 bytes, which must be used only once with the key; `nil` for
    ///   a random nonce.
    func seal(_ data: Data, authenticating context: Data, nonce: Data?) throws -> Data {
        guard let key = keys.first else { return Data() }  // there is always a key
        return try GCM.seal(data, authenticating: context, key: key, nonce: nonce)
    }

    /// Returns the original data if one of the keys encrypted it.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the data or the context was changed, or if the
    ///   data was encrypted with another key. Also throws an error if the library fails.
    public func open(_ sealed: Data, authenticating context: Data) throws -> Data {
        for key in keys {
            if let data = try GCM.open(sealed, authenticating: context, key: key) { return data }
        }
        throw WebServiceError(
            .storage,
            "a stored entry was changed, moved, or encrypted with another key, and counts as absent; if the key was "
                + "replaced, add the old one to earlierKeys")
    }
}

/// AES-256-GCM. The result begins with a nonce of 12 bytes and ends with a tag of 16 bytes.
enum GCM {}

extension AESGCMCipher: CustomStringConvertible, CustomReflectable {
    /// The name of the cipher, without its keys.
    public var description: String { "AES-256-GCM" }

    /// A mirror without the keys.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
