import Foundation
import WebServiceCore

/// The public key of a certificate (RFC 5280, section 4.1).
enum CertificateKey {
    /// Returns the pin of the key (RFC 7469, section 2.4).
    ///
    /// - Parameter pem: The certificate in the format of RFC 7468.
    /// - Returns: `nil` if it is not a certificate.
    static func pin(ofCertificate pem: String) -> String? {
        let lines = pem.split(whereSeparator: \.isNewline)
        guard let begin = lines.firstIndex(where: { $0.hasSuffix("-----BEGIN CERTIFICATE-----") }) else { return nil }
        let base64 = lines[begin...].dropFirst().prefix { !$0.hasPrefix("-----") }.joined()
        guard let certificate = Data(base64Encoded: base64), let key = publicKey(of: Array(certificate)) else {
            return nil
        }
        return "sha256//" + Data(SHA2.sha256.hash(Data(key))).base64EncodedString()
    }

    /// Returns the DER encoding of the `SubjectPublicKeyInfo`.
    static func publicKey(of certificate: [UInt8]) -> ArraySlice<UInt8>? {
        var rest = certificate[...]
        guard var fields = element(of: &rest)?.content else { return nil }
        guard var fields = element(of: &fields)?.content else { return nil }
        let version: UInt8 = 0xA0
        if fields.first == version { _ = element(of: &fields) }
        // Serial number, signature, issuer, validity, subject.
        for _ in 0..<5 where element(of: &fields) == nil { return nil }
        return element(of: &fields)?.bytes
    }

    /// Removes and returns the first element of a DER encoding (ITU-T X.690).
    private static func element(
        of rest: inout ArraySlice<UInt8>
    ) -> (bytes: ArraySlice<UInt8>, content: ArraySlice<UInt8>)? {
        let start = rest
        guard rest.popFirst() != nil, let first = rest.popFirst() else { return nil }
        var length = Int(first)
        if first >= 0x80 {
            let count = Int(first & 0x7F)
            guard (1...4).contains(count), rest.count >= count else { return nil }
            length = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(count)
        }
        guard rest.count >= length else { return nil }
        let content = rest.prefix(length)
        rest = rest.dropFirst(length)
        return (start.prefix(start.count - rest.count), content)
    }
}
