#if !canImport(CryptoKit)
import Foundation

/// The functions of OpenSSL's libcrypto that this package uses.
///
/// The library is loaded when it is first used, and is not linked. The libcurl of a program may
/// contain another version of OpenSSL with functions of the same names. If a second version were
/// linked, its functions would call those of the first version.
package struct Libcrypto: Sendable {
    package typealias Bytes = UnsafeMutablePointer<UInt8>
    package typealias Make = @Sendable @convention(c) () -> OpaquePointer?
    package typealias Release = @Sendable @convention(c) (OpaquePointer) -> Void
    package typealias Begin =
        @Sendable @convention(c) (
            OpaquePointer, OpaquePointer?, OpaquePointer?, UnsafePointer<UInt8>, UnsafePointer<UInt8>, CInt
        ) -> CInt
    package typealias Update =
        @Sendable @convention(c) (OpaquePointer, Bytes?, UnsafeMutablePointer<CInt>, UnsafePointer<UInt8>?, CInt) ->
        CInt
    package typealias Finish = @Sendable @convention(c) (OpaquePointer, Bytes, UnsafeMutablePointer<CInt>) -> CInt
    package typealias Control = @Sendable @convention(c) (OpaquePointer, CInt, CInt, UnsafeMutableRawPointer?) -> CInt
    package typealias Randomize = @Sendable @convention(c) (Bytes?, CInt) -> CInt
    package typealias NextError = @Sendable @convention(c) () -> UInt
    package typealias ErrorText = @Sendable @convention(c) (UInt, UnsafeMutablePointer<CChar>, Int) -> Void
    package typealias Clear = @Sendable @convention(c) () -> Void
    typealias BeginHash = @Sendable @convention(c) (OpaquePointer, OpaquePointer, OpaquePointer?) -> CInt
    typealias UpdateHash = @Sendable @convention(c) (OpaquePointer, UnsafeRawPointer?, Int) -> CInt
    typealias FinishHash = @Sendable @convention(c) (OpaquePointer, Bytes, UnsafeMutablePointer<CUnsignedInt>) -> CInt

    package let makeContext: Make
    package let releaseContext: Release
    package let aes256GCM: Make
    package let begin: Begin
    package let update: Update
    package let finish: Finish
    package let control: Control
    package let randomize: Randomize
    package let nextError: NextError
    package let errorText: ErrorText
    package let clearErrors: Clear
    /// The address of the loaded library, which is never unloaded.
    private let handle: Int
    let makeHash: Make
    let releaseHash: Release
    let hashFunctions: [HashFunction: Make]
    let beginHash: BeginHash
    let updateHash: UpdateHash
    let finishHash: FinishHash

    /// The library that the program already contains, for example as a part of libcurl, or
    /// otherwise that of the system; `nil` if it or one of its functions is missing.
    package static let shared =
        dlsym(nil, "EVP_DigestInit_ex") != nil
        ? Libcrypto(nil) : ["libcrypto.so.3", "libcrypto.so.1.1"].lazy.compactMap(Libcrypto.init).first

    /// Loads a library.
    ///
    /// - Parameter name: The file name; `nil` for the library that the program already contains.
    /// - Returns: `nil` if the library or one of its functions is missing.
    init?(_ name: String?) {
        guard let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
        func load<Function>(_ name: String, as type: Function.Type) -> Function? {
            dlsym(handle, name).map { unsafeBitCast($0, to: type) }
        }
        self.handle = Int(bitPattern: handle)
        guard let makeContext = load("EVP_CIPHER_CTX_new", as: Make.self),
            let releaseContext = load("EVP_CIPHER_CTX_free", as: Release.self),
            let aes256GCM = load("EVP_aes_256_gcm", as: Make.self),
            let begin = load("EVP_CipherInit_ex", as: Begin.self),
            let update = load("EVP_CipherUpdate", as: Update.self),
            let finish = load("EVP_CipherFinal_ex", as: Finish.self),
            let control = load("EVP_CIPHER_CTX_ctrl", as: Control.self),
            let randomize = load("RAND_bytes", as: Randomize.self),
            let nextError = load("ERR_get_error", as: NextError.self),
            let errorText = load("ERR_error_string_n", as: ErrorText.self),
            let clearErrors = load("ERR_clear_error", as: Clear.self),
            let makeHash = load("EVP_MD_CTX_new", as: Make.self),
            let releaseHash = load("EVP_MD_CTX_free", as: Release.self),
            let sha1 = load("EVP_sha1", as: Make.self), let sha256 = load("EVP_sha256", as: Make.self),
            let sha512 = load("EVP_sha512", as: Make.self),
            let beginHash = load("EVP_DigestInit_ex", as: BeginHash.self),
            let updateHash = load("EVP_DigestUpdate", as: UpdateHash.self),
            let finishHash = load("EVP_DigestFinal_ex", as: FinishHash.self)
        else { return nil }
        (self.makeContext, self.releaseContext, self.aes256GCM) = (makeContext, releaseContext, aes256GCM)
        (self.begin, self.update, self.finish) = (begin, update, finish)
        (self.control, self.randomize) = (control, randomize)
        (self.nextError, self.errorText, self.clearErrors) = (nextError, errorText, clearErrors)
        (self.makeHash, self.releaseHash) = (makeHash, releaseHash)
        (self.beginHash, self.updateHash, self.finishHash) = (beginHash, updateHash, finishHash)
        hashFunctions = [.sha1: sha1, .sha256: sha256, .sha512: sha512]
    }

    /// Returns another function of the library, or `nil` if it is missing.
    func function<Function>(_ name: String, as type: Function.Type) -> Function? {
        dlsym(UnsafeMutableRawPointer(bitPattern: handle), name).map { unsafeBitCast($0, to: type) }
    }
}
#endif
