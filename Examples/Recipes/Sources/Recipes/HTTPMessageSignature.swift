import Foundation
import WebServiceCore
import WebServiceFields

/// An interceptor that signs requests with HTTP Message Signatures (RFC 9421).
///
/// Install it as the last interceptor, and `.contentDigest()` of WebServiceFields as the first one:
/// the signature then covers the digest of the body, which may be a file.
public struct HTTPMessageSigner: Interceptor {
    let label: String
    let keyID: String
    let components: [String]
    let now: @Sendable () -> Date
    let sign: @Sendable (_ base: Data) async throws -> Data

    /// Creates an interceptor.
    ///
    /// - Parameters:
    ///   - label: The name of the signature in its fields.
    ///   - keyID: The name by which the server finds the key.
    ///   - components: The parts of the request that the signature covers: names of header fields in
    ///     lower case, and derived components such as `@method` (RFC 9421, section 2.2). A field that
    ///     a request does not have, such as the digest of no body, is omitted.
    ///   - now: Returns the current date.
    ///   - sign: Returns the signature of the bytes that it receives.
    public init(
        label: String = "sig1", keyID: String, components: [String] = ["@method", "@target-uri", "content-digest"],
        now: @escaping @Sendable () -> Date = { Date() }, sign: @escaping @Sendable (_ base: Data) async throws -> Data
    ) {
        (self.label, self.keyID, self.components, self.now, self.sign) = (label, keyID, components, now, sign)
    }

    /// Adds the fields `Signature-Input` and `Signature`, and sends the request.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        var request = request
        let encoded = try request.urlRequest()
        guard let url = encoded.url, let parts = URLComponents(url: url, resolvingAgainstBaseURL: false) else {
            throw URLError(.badURL)
        }
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        let query = parts.percentEncodedQuery.map { "?\($0)" }
        let host = (parts.host ?? "").lowercased()
        let derived = [
            "@method": request.method.rawValue, "@target-uri": url.absoluteString, "@scheme": parts.scheme ?? "",
            "@authority": parts.port.map { "\(host):\($0)" } ?? host, "@path": path, "@query": query ?? "?",
            "@request-target": path + (query ?? ""), "content-length": request.content.length.map { "\($0)" } ?? "0",
        ]
        var items: [StructuredField.Item] = []
        var lines = ""
        for name in components {
            guard let value = derived[name] ?? encoded.value(forHTTPHeaderField: name) else { continue }
            items.append(.init(.string(name)))
            lines += "\"\(name)\": \(value.trimmingCharacters(in: .whitespaces))\n"
        }
        let list = StructuredField.InnerList(
            items, parameters: ["created": .integer(Int64(now().timeIntervalSince1970)), "keyid": .string(keyID)])
        let parameters = try StructuredField.serialized([.innerList(list)]) ?? ""
        let base = lines + "\"@signature-params\": \(parameters)"
        let signature = try await sign(Data(base.utf8))
        try request.headers.setStructuredDictionary([label: .innerList(list)], for: "Signature-Input")
        try request.headers.setStructuredDictionary([label: .item(.byteSequence(signature))], for: "Signature")
        return try await next(request)
    }
}
