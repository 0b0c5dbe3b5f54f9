package import Foundation
package import WebServiceCore

extension P256Key {
    /// The members of the public key as a JSON Web Key (RFC 7517).
    package var publicJWK: [String: String] {
        ["kty": "EC", "crv": "P-256", "x": publicKey.prefix(32).base64URL, "y": publicKey.suffix(32).base64URL]
    }

    /// Returns the thumbprint of a public key (RFC 7638).
    package static func thumbprint(of key: [String: String]) -> String {
        // The members are in the required order, and their values need no escaping.
        let members = key.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\"\($0.value)\"" }
        return Data("{\(members.joined(separator: ","))}".utf8).sha256.base64URL
    }

    /// Returns a JSON Web Token (RFC 7519) that is signed with the key.
    package func token(header: [String: JSONValue], claims: [String: JSONValue]) throws(WebServiceError) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let header = header.merging(["alg": .string("ES256")]) { $1 }
        guard let parts = try? [encoder.encode(header), encoder.encode(claims)] else {
            throw WebServiceError(
                .encoding, "the claims of the token cannot be encoded; remove numbers that JSON cannot represent")
        }
        let content = parts.map(\.base64URL).joined(separator: ".")
        return "\(content).\(try signature(of: Data(content.utf8)).base64URL)"
    }
}

extension Data {
    /// The bytes in URL-safe Base64, without padding (RFC 7636, appendix A).
    package var base64URL: String {
        let text = base64EncodedString().utf8.compactMap { byte -> UInt8? in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            case UInt8(ascii: "="): nil
            default: byte
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The SHA-256 hash of the bytes.
    package var sha256: Data { Data(SHA2.sha256.hash(self)) }

    /// Returns random bytes.
    package static func random(_ count: Int) -> Data {
        var generator = SystemRandomNumberGenerator()
        return Data((0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }
}
