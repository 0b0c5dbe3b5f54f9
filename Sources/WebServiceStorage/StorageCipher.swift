public import Foundation
import WebServiceCore

/// A cipher for the entries of an `EncryptedStorage`.
///
/// Use an `AESGCMCipher` of `WebServiceCrypto` or a custom type, for example one whose keys remain
/// in hardware.
///
/// The cipher must provide authenticated encryption: ``open(_:authenticating:)`` throws an error
/// unless it receives an unchanged result of ``seal(_:authenticating:)`` together with the same
/// context. Both methods may be called from any thread at any time.
public protocol StorageCipher: Sendable {
    /// Encrypts data and returns the result. The result authenticates the data together with a
    /// context.
    ///
    /// Two calls with the same arguments return different bytes.
    ///
    /// - Parameters:
    ///   - data: The data to encrypt.
    ///   - context: Data that is authenticated, but neither encrypted nor included in the result.
    func seal(_ data: Data, authenticating context: Data) throws -> Data

    /// Decrypts a result of ``seal(_:authenticating:)`` and returns the original data.
    ///
    /// - Parameters:
    ///   - sealed: The result of ``seal(_:authenticating:)``, which may be damaged or forged.
    ///   - context: The context that ``seal(_:authenticating:)`` received.
    /// - Throws: Any error if the sealed data, the context or the key is not the right one.
    func open(_ sealed: Data, authenticating context: Data) throws -> Data
}
