import Foundation
import Testing
import WebServiceCore
import WebServiceMocking

/// The files in `Tests/Corpora`.
enum SecretCorpus {
    /// A secret in a part of an exchange.
    struct Secret: Decodable, Sendable {
        let id: String
        let place: String
        let contentType: String?
        let name: String?
        let text: String?
        let base64: Data?
        let secret: String
        let contentEncoding: String?

        /// The bytes of a body.
        var data: Data { base64 ?? Data((text ?? "").utf8) }

        /// Whether bodies of the type may be refused.
        var isUnknown: Bool {
            // The messages of the Connect protocol are framed in binary.
            if contentType?.hasPrefix("application/connect+") == true { return true }
            let known = ["text", "json", "form", "xml", "html", "yaml", "toml", "graphql", "script", "jwt", "pem"]
            return !known.contains { contentType?.lowercased().contains($0) == true }
        }

        var request: Request {
            get throws {
                let isBody = place.hasSuffix("Body")
                let url = place == "url" ? text : nil
                var request = Request(isBody ? .POST : .GET, url: url ?? "https://h.example.com/a")
                if place == "requestBody" {
                    request.content = .data(data, contentType: contentType)
                    if let contentEncoding { request.headers["Content-Encoding"] = contentEncoding }
                }
                if place == "requestHeader" { request.headers[Headers.Name(try #require(name))] = text }
                return request
            }
        }

        var response: MockResponse {
            get throws {
                guard place.hasPrefix("response") else { return .status(204) }
                var response = MockResponse(statusCode: 200, data: place == "responseBody" ? data : Data())
                if place == "responseHeader" { response.headers[Headers.Name(try #require(name))] = text }
                if place == "responseBody", let contentType { response.headers[.contentType] = contentType }
                if place == "responseBody", let contentEncoding {
                    response.headers["Content-Encoding"] = contentEncoding
                }
                return response
            }
        }
    }

    struct Harmless: Decodable, Sendable {
        let id: String
        let contentType: String?
        let text: String
    }

    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Corpora")

    /// Returns the names of the files with a prefix; that of the first one also if there is none.
    static func names(_ prefix: String) -> [String] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
        return (names ?? ["\(prefix).json"]).filter { $0.hasPrefix(prefix) && $0.hasSuffix(".json") }.sorted()
    }

    static func entries<Entry: Decodable>(_ name: String) throws -> [Entry] {
        try JSONDecoder().decode([Entry].self, from: Data(contentsOf: folder.appendingPathComponent(name)))
    }

    /// Returns all strings of JSON, and the bytes of those that are named `base64`.
    static func strings(_ json: Data) throws -> String {
        var strings: [String] = []
        func add(_ value: Any, _ name: String = "") {
            if let text = value as? String {
                strings.append(text)
                if name == "base64", let bytes = Data(base64Encoded: text) {
                    strings.append(String(decoding: bytes, as: UTF8.self))
                }
            }
            for value in value as? [Any] ?? [] { add(value) }
            for (name, value) in value as? [String: Any] ?? [:] { add(value, name) }
        }
        add(try JSONSerialization.jsonObject(with: json))
        return strings.joined(separator: "\n")
    }
}
