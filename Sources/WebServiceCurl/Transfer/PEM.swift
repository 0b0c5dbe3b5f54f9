import CCurl
import Foundation

/// The textual encoding of certificates and keys (RFC 7468).
enum PEM {
    struct Block {
        /// The label, such as `CERTIFICATE`.
        let label: String
        /// Whether the bytes are encrypted.
        let isEncrypted: Bool
        /// The decoded bytes; `nil` if the block is incomplete or not Base64.
        let bytes: Data?
    }

    /// Returns the blocks of a text. Other lines are ignored.
    static func blocks(of text: Data) -> [Block] {
        var blocks: [Block] = []
        var label: String?
        var isEncrypted = false
        var base64 = Data()
        func finish(_ bytes: Data?) {
            guard let found = label else { return }
            blocks.append(Block(label: found, isEncrypted: isEncrypted, bytes: bytes))
            label = nil
        }
        for line in [UInt8](text).split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            if line.starts(with: "-----BEGIN ".utf8) {
                finish(nil)
                let name = String(decoding: line.dropFirst(11).prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)
                (label, isEncrypted, base64) = (name, name.hasPrefix("ENCRYPTED"), Data())
            } else if line.starts(with: "-----END ".utf8) {
                finish(Data(base64Encoded: base64))
            } else if line.contains(UInt8(ascii: ":")) {  // a field of RFC 1421
                if String(decoding: line, as: UTF8.self).hasSuffix("ENCRYPTED") { isEncrypted = true }
            } else {
                base64 += line.filter { $0 != 0x20 && $0 != 0x09 }
            }
        }
        finish(nil)
        return blocks
    }

    /// Returns the PEM block of a certificate in DER.
    static func encoding(_ certificate: Data) -> Data {
        let base64 = certificate.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return Data("-----BEGIN CERTIFICATE-----\n\(base64)\n-----END CERTIFICATE-----\n".utf8)
    }
}

/// Certificates and keys that are encrypted with a password (RFC 7292).
enum PKCS12 {
    enum Result { case valid, wrongPassword, damaged, unknown }

    /// Returns whether the password is correct for the data.
    ///
    /// Only OpenSSL can verify the password, so the result is `unknown` if libcurl uses another TLS
    /// library.
    static func check(_ data: Data, password: String?) -> Result {
        let result: CInt = data.withUnsafeBytes { bytes in
            ccurl_check_pkcs12(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, password)
        }
        switch result {
        case CInt(CCURL_PKCS12_VALID): return .valid
        case CInt(CCURL_PKCS12_WRONG_PASSWORD): return .wrongPassword
        case CInt(CCURL_PKCS12_DAMAGED): return .damaged
        default: return .unknown
        }
    }
}
