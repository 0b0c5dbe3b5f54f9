#if !canImport(CryptoKit)
import CCrypto
import Foundation
import WebServiceCore

#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The functions of libcrypto that the cipher uses.
///
/// The library is loaded when it is first used, and not linked: the libcurl of a program may
/// contain another version of OpenSSL, whose functions have the same names.
struct Libcrypto: Sendable {
    typealias Bytes = UnsafeMutablePointer<UInt8>
    typealias MakeContext = @Sendable @convention(c) () -> OpaquePointer?
    typealias ReleaseContext = @Sendable @convention(c) (OpaquePointer) -> Void
    typealias Begin =
        @Sendable @convention(c) (
            OpaquePointer, OpaquePointer?, OpaquePointer?, UnsafePointer<UInt8>, UnsafePointer<UInt8>, CInt
        ) -> CInt
    typealias Update =
        @Sendable @convention(c) (OpaquePointer, Bytes?, UnsafeMutablePointer<CInt>, UnsafePointer<UInt8>?, CInt) ->
        CInt
    typealias Finish = @Sendable @convention(c) (OpaquePointer, Bytes, UnsafeMutablePointer<CInt>) -> CInt
    typealias Control = @Sendable @convention(c) (OpaquePointer, CInt, CInt, UnsafeMutableRawPointer?) -> CInt
    typealias Randomize = @Sendable @convention(c) (Bytes?, CInt) -> CInt
    typealias NextError = @Sendable @convention(c) () -> UInt
    typealias ErrorText = @Sendable @convention(c) (UInt, UnsafeMutablePointer<CChar>, Int) -> Void
    typealias Clear = @Sendable @convention(c) () -> Void

    let makeContext: MakeContext
    let releaseContext: ReleaseContext
    let aes256GCM: MakeContext
    let begin: Begin
    let update: Update
    let finish: Finish
    let control: Control
    let randomize: Randomize
    let nextError: NextError
    let errorText: ErrorText
    let clearErrors: Clear

    /// The library of the system.
    private static let system = Libcrypto(String(cString: WEBSERVICE_LIBCRYPTO))

    /// The library of the system.
    ///
    /// - Throws: `WebServiceError.Code.storage` if it is missing.
    static func loaded() throws(WebServiceError) -> Libcrypto {
        guard let system else {
            throw WebServiceError(
                .storage, "\(String(cString: WEBSERVICE_LIBCRYPTO)) cannot be loaded; install OpenSSL (libssl3)")
        }
        return system
    }

    /// - Returns: `nil` if the library or one of its functions is missing.
    private init?(_ name: String) {
        guard let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
        func load<Function>(_ name: String, as type: Function.Type) -> Function? {
            dlsym(handle, name).map { unsafeBitCast($0, to: type) }
        }
        guard let makeContext = load("EVP_CIPHER_CTX_new", as: MakeContext.self),
            let releaseContext = load("EVP_CIPHER_CTX_free", as: ReleaseContext.self),
            let aes256GCM = load("EVP_aes_256_gcm", as: MakeContext.self),
            let begin = load("EVP_CipherInit_ex", as: Begin.self),
            let update = load("EVP_CipherUpdate", as: Update.self),
            let finish = load("EVP_CipherFinal_ex", as: Finish.self),
            let control = load("EVP_CIPHER_CTX_ctrl", as: Control.self),
            let randomize = load("RAND_bytes", as: Randomize.self),
            let nextError = load("ERR_get_error", as: NextError.self),
            let errorText = load("ERR_error_string_n", as: ErrorText.self),
            let clearErrors = load("ERR_clear_error", as: Clear.self)
        else { return nil }
        (self.makeContext, self.releaseContext, self.aes256GCM) = (makeContext, releaseContext, aes256GCM)
        (self.begin, self.update, self.finish) = (begin, update, finish)
        (self.control, self.randomize) = (control, randomize)
        (self.nextError, self.errorText, self.clearErrors) = (nextError, errorText, clearErrors)
    }

    /// Returns the error of a function that has failed.
    func failure(_ function: String) -> WebServiceError {
        var name = [CChar](repeating: 0, count: 256)
        errorText(nextError(), &name, name.count)
        clearErrors()
        let text = name.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return WebServiceError(.storage, "libcrypto failed in \(function): \(text)")
    }
}
#endif
