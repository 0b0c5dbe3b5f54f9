import Foundation
import WebServiceCore

/// The functions of the system's OpenSSL, loaded when they are first used.
struct TLSLibrary: Sendable {
    typealias Object = UnsafeMutableRawPointer
    typealias Make = @Sendable @convention(c) (Object?) -> Object?
    typealias MakeMethod = @Sendable @convention(c) () -> Object?
    typealias Release = @Sendable @convention(c) (Object?) -> Void
    typealias UseChain = @Sendable @convention(c) (Object, UnsafePointer<CChar>) -> CInt
    typealias UseKey = @Sendable @convention(c) (Object, UnsafePointer<CChar>, CInt) -> CInt
    typealias SetStreams = @Sendable @convention(c) (Object, Object, Object) -> Void
    typealias Step = @Sendable @convention(c) (Object) -> CInt
    typealias Read = @Sendable @convention(c) (Object, UnsafeMutableRawPointer, CInt) -> CInt
    typealias Write = @Sendable @convention(c) (Object, UnsafeRawPointer, CInt) -> CInt
    typealias Failure = @Sendable @convention(c) (Object, CInt) -> CInt
    typealias Clear = @Sendable @convention(c) () -> Void

    let serverMethod: MakeMethod
    let makeContext: Make
    let releaseContext: Release
    let useCertificate: UseChain
    let useKey: UseKey
    let makeConnection: Make
    let releaseConnection: Release
    let memory: MakeMethod
    let makeStream: Make
    let setStreams: SetStreams
    let accept: Step
    let shutDown: Step
    let read: Read
    let write: Write
    let readStream: Read
    let writeStream: Write
    let failure: Failure
    let clearErrors: Clear
    /// The functions for client certificates; `nil` if one of them is missing.
    let certificates: TLSCertificates?

    /// The library of the system; `nil` if it is missing.
    static let system = ["libssl.so.3", "libssl.so.1.1", "libssl.3.dylib"].lazy.compactMap(TLSLibrary.init).first

    /// Loads a library by its file name.
    ///
    /// - Returns: `nil` if the library or one of its functions is missing.
    init?(_ name: String) {
        guard let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
        func load<Function>(_ name: String, as type: Function.Type) -> Function? {
            dlsym(handle, name).map { unsafeBitCast($0, to: type) }
        }
        guard let serverMethod = load("TLS_server_method", as: MakeMethod.self),
            let makeContext = load("SSL_CTX_new", as: Make.self),
            let releaseContext = load("SSL_CTX_free", as: Release.self),
            let useCertificate = load("SSL_CTX_use_certificate_chain_file", as: UseChain.self),
            let useKey = load("SSL_CTX_use_PrivateKey_file", as: UseKey.self),
            let makeConnection = load("SSL_new", as: Make.self),
            let releaseConnection = load("SSL_free", as: Release.self),
            let memory = load("BIO_s_mem", as: MakeMethod.self), let makeStream = load("BIO_new", as: Make.self),
            let setStreams = load("SSL_set_bio", as: SetStreams.self),
            let accept = load("SSL_accept", as: Step.self), let shutDown = load("SSL_shutdown", as: Step.self),
            let read = load("SSL_read", as: Read.self), let write = load("SSL_write", as: Write.self),
            let readStream = load("BIO_read", as: Read.self), let writeStream = load("BIO_write", as: Write.self),
            let failure = load("SSL_get_error", as: Failure.self),
            let clearErrors = load("ERR_clear_error", as: Clear.self)
        else { return nil }
        (self.serverMethod, self.makeContext, self.releaseContext) = (serverMethod, makeContext, releaseContext)
        (self.useCertificate, self.useKey) = (useCertificate, useKey)
        (self.makeConnection, self.releaseConnection) = (makeConnection, releaseConnection)
        (self.memory, self.makeStream, self.setStreams) = (memory, makeStream, setStreams)
        (self.accept, self.shutDown, self.read, self.write) = (accept, shutDown, read, write)
        (self.readStream, self.writeStream) = (readStream, writeStream)
        (self.failure, self.clearErrors) = (failure, clearErrors)
        certificates = TLSCertificates { dlsym(handle, $0) }
    }
}
