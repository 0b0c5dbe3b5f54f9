import Foundation

/// The encoded form contains all attributes. Decoding applies the checks of
/// ``init(name:value:domain:path:expires:isSecure:isHostOnly:isHTTPOnly:)``.
extension Cookie: Codable {
    private enum CodingKeys: String, CodingKey {
        case name, value, domain, path, expires, isSecure, isHostOnly, isHTTPOnly
    }

    /// Encodes the cookie, including its value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(value, forKey: .value)
        try container.encode(domain, forKey: .domain)
        try container.encode(path, forKey: .path)
        try container.encodeIfPresent(expires, forKey: .expires)
        try container.encode(isSecure, forKey: .isSecure)
        try container.encode(isHostOnly, forKey: .isHostOnly)
        try container.encode(isHTTPOnly, forKey: .isHTTPOnly)
    }

    /// Decodes a cookie.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if the cookie is invalid.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        do {
            try self.init(
                name: container.decode(String.self, forKey: .name),
                value: container.decode(String.self, forKey: .value),
                domain: container.decode(String.self, forKey: .domain),
                path: container.decode(String.self, forKey: .path),
                expires: container.decodeIfPresent(Date.self, forKey: .expires),
                isSecure: container.decode(Bool.self, forKey: .isSecure),
                isHostOnly: container.decode(Bool.self, forKey: .isHostOnly),
                isHTTPOnly: container.decode(Bool.self, forKey: .isHTTPOnly))
        } catch let error as WebServiceError {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: error.message))
        }
    }
}
