#if canImport(CryptoKit)
import CryptoKit
import Foundation

// This file has not been built, because the package has not been built for Apple platforms.

extension GCM {
    /// - Parameter nonce: The nonce; `nil` for a random nonce.
    static func seal(_ data: Data, authenticating context: Data, key: Data, nonce: Data?) throws -> Data {
        let nonce = try nonce.map { try AES.GCM.Nonce(data: $0) } ?? AES.GCM.Nonce()
        let box = try AES.GCM.seal(data, using: SymmetricKey(data: key), nonce: nonce, authenticating: context)
        return Data(box.nonce) + box.ciphertext + box.tag
    }

    /// - Returns: `nil` if the data is not authentic.
    static func open(_ sealed: Data, authenticating context: Data, key: Data) throws -> Data? {
        do {
            let box = try AES.GCM.SealedBox(combined: sealed)
            return try AES.GCM.open(box, using: SymmetricKey(data: key), authenticating: context)
        } catch CryptoKitError.authenticationFailure, CryptoKitError.incorrectParameterSize {
            return nil
        }
    }
}
#endif
