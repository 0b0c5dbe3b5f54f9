public import Foundation
import WebServiceCore

/// A cipher for the entries of an `EncryptedStorage`.
///
/// Use an `AESGCMCipher` of `WebServiceCrypto`, or a custom type, for example one whose keys remain
/// in hardware.
///
/// The cipher must be an authenticated one: ``open(_:authenticating:)`` throws an error unless it
/// receives the result of a call of ``seal(_:authenticating:)`` and the context of that call, both
/// unchanged. Both methods may be called from any thread at any time.
public protocol StorageCipher: Sendable {
    /// Encrypts data, and returns the result, which is authenticated together with a context.
    ///
    /// Two calls with the same arguments return different bytes.
    ///
    /// - Parameters:
    ///   - data: The data to encrypt.
    ///   - context: Data that is authenticated, but neither encrypted nor included in the result.
    func seal(_ data: Data, authenticating context: Data) throws -> Data

    /// Decrypts data, and returns the data that ``seal(_:authenticating:)`` received.
    ///
    /// - Parameters:
    ///   - sealed: The result of ``seal(_:authenticating:)``, which may be damaged or forged.
    ///   - context: The context that ``seal(_:authenticating:)`` received.
    /// - Throws: Any error if the data, the context or the key differs.
    func open(_ sealed: Data, authenticating context: Data) throws -> Data
}
