import Foundation
import WebServiceCore

/// The public key of a certificate (RFC 5280, section 4.1).
enum CertificateKey {
    /// Returns the pin of the key (RFC 7469, section 2.4).
    ///
    /// - Parameter pem: The certificate in the format of RFC 7468.
    /// - Returns: `nil` if the text is not a certificate.
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
        // These are the serial number, the signature, the issuer, the validity and the subject.
        for _ in 0..<5 where element(of: &fields) == nil { return nil }
        return element(of: &fields)?.bytes
    }

    /// Removes and returns the first element of a DER encoding (ITU-T X.690).
    static func element(
        of rest: inout ArraySlice<UInt8>
    ) -> (bytes: ArraySlice<UInt8>, content: ArraySlice<UInt8>)? {
        let start = rest
        guard let length = length(of: &rest), rest.count >= length else { return nil }
        let content = rest.prefix(length)
        rest = rest.dropFirst(length)
        return (start.prefix(start.count - rest.count), content)
    }

    /// Returns the bytes after the tag and the length of an element, which may be incomplete.
    static func content(_ element: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        // In an encoding that is not DER, the length can be indefinite.
        if element.dropFirst().first == 0x80 { return element.dropFirst(2) }
        var rest = element
        return length(of: &rest).map { rest.prefix($0) }
    }

    /// Removes the tag and the length of an element, and returns the length.
    private static func length(of rest: inout ArraySlice<UInt8>) -> Int? {
        guard rest.popFirst() != nil, let first = rest.popFirst() else { return nil }
        guard first >= 0x80 else { return Int(first) }
        let count = Int(first & 0x7F)
        guard (1...4).contains(count), rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
    }
}
