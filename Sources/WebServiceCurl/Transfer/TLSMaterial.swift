import Foundation
import WebServiceCore

/// Certificates or a private key, with the format of their bytes.
struct TLSMaterial: Sendable {
    typealias Source = CurlSession.TLS.ClientCertificate.Source

    /// The encoding of certificates and keys: RFC 7468, ITU-T X.690 or RFC 7292.
    enum Format: Sendable {
        case pem, der, pkcs12

        /// The name of the format in libcurl.
        var name: String {
            switch self {
            case .pem: "PEM"
            case .der: "DER"
            case .pkcs12: "P12"
            }
        }
    }

    let source: Source
    let bytes: Data
    let format: Format
    /// The purpose and, for a file, the path, for errors.
    let name: String

    /// Reads a file or data and detects its format.
    ///
    /// - Throws: `WebServiceError.Code.curl`.
    init(_ source: Source, _ purpose: String) throws(WebServiceError) {
        self.source = source
        switch source {
        case .file(let path):
            name = "the file of \(purpose), '\(path)',"
            do { bytes = try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
                let isMissing = (error as? CocoaError)?.code == .fileReadNoSuchFile
                let advice = isMissing ? "does not exist; correct its path" : "could not be read; check its permissions"
                throw WebServiceError(.curl, "\(name) \(advice)")
            }
        case .data(let data):
            name = "the data of \(purpose)"
            bytes = data
        }
        guard let format = Self.format(of: bytes) else {
            throw WebServiceError(.curl, "\(name) is not in PEM, DER or PKCS #12; convert it to PEM")
        }
        self.format = format
    }

    private static func format(of bytes: Data) -> Format? {
        if bytes.firstRange(of: Data("-----BEGIN ".utf8)) != nil { return .pem }
        guard bytes.first == 0x30 else { return nil }
        // A certificate begins with a sequence, and a key with version 0 or 1.
        var fields = CertificateKey.content([UInt8](bytes.prefix(64))[...]) ?? []
        return fields.first == 0x02 && CertificateKey.element(of: &fields)?.content == [3] ? .pkcs12 : .der
    }

    // MARK: Trusted certificates

    /// Returns the certificates in PEM.
    ///
    /// - Throws: `WebServiceError.Code.curl` unless each certificate can be parsed.
    func certificates() throws(WebServiceError) -> Data {
        switch format {
        case .pem:
            try checkCertificates(in: PEM.blocks(of: bytes))
            return bytes + Data("\n".utf8)
        case .der:
            var rest = [UInt8](bytes)[...]
            var text = Data()
            repeat {
                guard let element = CertificateKey.element(of: &rest)?.bytes,
                    CertificateKey.publicKey(of: [UInt8](element)) != nil
                else {
                    throw WebServiceError(.curl, "\(name) is not a DER certificate; pass a certificate in PEM or DER")
                }
                text += PEM.encoding(Data(element))
            } while !rest.isEmpty
            return text
        case .pkcs12:
            throw WebServiceError(.curl, "\(name) is in PKCS #12; use PEM or DER for trusted certificates")
        }
    }

    private func checkCertificates(in blocks: [PEM.Block]) throws(WebServiceError) {
        let certificates = blocks.filter { $0.label.hasSuffix("CERTIFICATE") }
        guard !certificates.isEmpty else {
            throw WebServiceError(.curl, "\(name) contains no certificate; pass at least one")
        }
        for (index, block) in certificates.enumerated() {
            guard let bytes = block.bytes, CertificateKey.publicKey(of: [UInt8](bytes)) != nil else {
                throw WebServiceError(.curl, "certificate \(index + 1) in \(name) is damaged; replace it")
            }
        }
    }

    // MARK: Client certificates

    /// Verifies a client certificate.
    ///
    /// - Parameter containsKey: Whether the certificate must also contain the key.
    /// - Throws: `WebServiceError.Code.curl`.
    func checkIdentity(password: String?, containsKey: Bool) throws(WebServiceError) {
        switch format {
        case .pem: try checkCertificates(in: PEM.blocks(of: bytes))
        case .der:
            guard CertificateKey.publicKey(of: [UInt8](bytes)) != nil else {
                throw WebServiceError(.curl, "\(name) is not a DER certificate; pass a certificate in PEM or DER")
            }
        case .pkcs12: return try checkPassword(password)
        }
        if containsKey { try checkKey(password: password) }
    }

    /// Verifies that the bytes contain a private key.
    ///
    /// An encrypted key without a password is rejected, because TLS libraries would read the
    /// password from the terminal.
    ///
    /// - Throws: `WebServiceError.Code.curl`.
    func checkKey(password: String?) throws(WebServiceError) {
        var isEncrypted = false
        switch format {
        case .pem:
            guard let key = PEM.blocks(of: bytes).first(where: { $0.label.hasSuffix("PRIVATE KEY") }) else {
                throw WebServiceError(
                    .curl, "\(name) contains no private key; pass the private key as keyFile or 'key'")
            }
            isEncrypted = key.isEncrypted
        case .der:
            guard CertificateKey.publicKey(of: [UInt8](bytes)) == nil else {
                throw WebServiceError(
                    .curl,
                    "\(name) contains a certificate, but no private key; pass the private key as keyFile or 'key'")
            }
        case .pkcs12:
            throw WebServiceError(
                .curl, "\(name) is in PKCS #12; pass it as the certificate, and do not set the key separately")
        }
        guard !isEncrypted || password != nil else {
            throw WebServiceError(.curl, "the private key in \(name) is encrypted; set keyPassword")
        }
    }

    private func checkPassword(_ password: String?) throws(WebServiceError) {
        switch PKCS12.check(bytes, password: password) {
        case .valid, .unknown: return
        case .damaged: throw WebServiceError(.curl, "\(name) is in PKCS #12 but is damaged; export it again")
        case .wrongPassword:
            let advice =
                password == nil
                ? "is encrypted; set keyPassword"
                : "has a different password; correct keyPassword"
            throw WebServiceError(.curl, "\(name) \(advice)")
        }
    }
}
