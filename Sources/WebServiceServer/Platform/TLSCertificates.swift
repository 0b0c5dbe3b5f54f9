import Foundation
import WebServiceCore

/// The functions of OpenSSL for client certificates.
struct TLSCertificates: Sendable {
    typealias Object = TLSLibrary.Object
    typealias LoadAuthorities = @Sendable @convention(c) (Object, UnsafePointer<CChar>, UnsafePointer<CChar>?) -> CInt
    typealias LoadNames = @Sendable @convention(c) (UnsafePointer<CChar>) -> Object?
    typealias SetNames = @Sendable @convention(c) (Object, Object) -> Void
    typealias SetVerification = @Sendable @convention(c) (Object, CInt, Object?) -> Void
    typealias SetIdentifier = @Sendable @convention(c) (Object, UnsafePointer<UInt8>, CUnsignedInt) -> CInt
    typealias Part = @Sendable @convention(c) (Object) -> Object?
    typealias Encode = @Sendable @convention(c) (Object, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt
    typealias Print = @Sendable @convention(c) (Object, Object, CInt, CUnsignedLong) -> CInt
    typealias ReleaseStream = @Sendable @convention(c) (Object) -> CInt

    let loadAuthorities: LoadAuthorities
    let loadNames: LoadNames
    let setNames: SetNames
    let setVerification: SetVerification
    let setIdentifier: SetIdentifier
    let peer: Part
    let releaseCertificate: TLSLibrary.Release
    let encode: Encode
    let subjectName: Part
    let printName: Print
    let releaseStream: ReleaseStream

    /// - Parameter load: A closure that returns the address of a function; `nil` if it is missing.
    /// - Returns: `nil` if a function is missing.
    init?(_ load: (String) -> UnsafeMutableRawPointer?) {
        func function<Function>(_ name: String, as type: Function.Type) -> Function? {
            load(name).map { unsafeBitCast($0, to: type) }
        }
        guard let loadAuthorities = function("SSL_CTX_load_verify_locations", as: LoadAuthorities.self),
            let loadNames = function("SSL_load_client_CA_file", as: LoadNames.self),
            let setNames = function("SSL_CTX_set_client_CA_list", as: SetNames.self),
            let setVerification = function("SSL_CTX_set_verify", as: SetVerification.self),
            let setIdentifier = function("SSL_CTX_set_session_id_context", as: SetIdentifier.self),
            // The second name is that of OpenSSL 1.1.
            let peer = function("SSL_get1_peer_certificate", as: Part.self)
                ?? function("SSL_get_peer_certificate", as: Part.self),
            let releaseCertificate = function("X509_free", as: TLSLibrary.Release.self),
            let encode = function("i2d_X509", as: Encode.self),
            let subjectName = function("X509_get_subject_name", as: Part.self),
            let printName = function("X509_NAME_print_ex", as: Print.self),
            let releaseStream = function("BIO_free", as: ReleaseStream.self)
        else { return nil }
        (self.loadAuthorities, self.loadNames, self.setNames) = (loadAuthorities, loadNames, setNames)
        (self.setVerification, self.setIdentifier) = (setVerification, setIdentifier)
        (self.peer, self.releaseCertificate) = (peer, releaseCertificate)
        (self.encode, self.subjectName, self.printName) = (encode, subjectName, printName)
        self.releaseStream = releaseStream
    }

    /// Configures a context to request and verify the certificates of clients.
    ///
    /// - Returns: `false` if the file has no certificate.
    func configure(_ context: Object, _ clients: TLSContext.Clients) -> Bool {
        guard loadAuthorities(context, clients.authorities, nil) == 1, let names = loadNames(clients.authorities) else {
            return false
        }
        setNames(context, names)  // the context releases them
        let (verifies, requires): (CInt, CInt) = (1, 2)
        setVerification(context, clients.requiresCertificate ? verifies | requires : verifies, nil)
        // Without an identifier, a client cannot resume a TLS session.
        return setIdentifier(context, Array("MockServer".utf8), 10) == 1
    }

    /// Returns the verified certificate of the client of a connection; `nil` if there is none.
    func client(of connection: Object, _ library: TLSLibrary) -> (subject: String, der: Data)? {
        guard let certificate = peer(connection) else { return nil }
        defer { releaseCertificate(certificate) }
        let size = encode(certificate, nil)
        guard size > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(size))
        bytes.withUnsafeMutableBufferPointer { bytes in
            var end = bytes.baseAddress
            _ = encode(certificate, &end)
        }
        return (subject(of: certificate, library), Data(bytes))
    }

    /// Returns the subject as text (RFC 4514).
    private func subject(of certificate: Object, _ library: TLSLibrary) -> String {
        guard let name = subjectName(certificate), let stream = library.makeStream(library.memory()) else { return "" }
        defer { _ = releaseStream(stream) }
        // XN_FLAG_RFC2253 without ASN1_STRFLGS_ESC_MSB, so that only ASCII is escaped.
        guard printName(stream, name, 0, 0x111_0313) >= 0 else { return "" }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 10)
        while true {
            let count = buffer.withUnsafeMutableBytes { room in
                room.baseAddress.map { Int(library.readStream(stream, $0, CInt(room.count))) } ?? 0
            }
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += buffer[..<count]
        }
    }
}
