import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOAuth

/// A document or a callback of a hostile or careless server, while everything else in the log-in is
/// correct.
private struct HostileDocument: Decodable, Sendable {
    let name: String
    let at: String
    let status: Int
    let headers: [String: String]
    let body: String?
    let callback: String?
    let expect: String
    let why: String

    /// The documents of `Hostile/documents.json`, with the placeholders of a server.
    static func all(at place: String) throws -> [HostileDocument] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Hostile/documents.json")
        return try JSONDecoder().decode([HostileDocument].self, from: Data(contentsOf: file)).filter { $0.at == place }
    }

    /// Returns a text in which the placeholders are replaced.
    static func filled(_ text: String, _ values: [String: String] = [:]) -> String {
        let fixed = [
            "issuer": FakeServer.issuer, "redirect": FakeServer.redirect, "resource": "\(FakeServer.api)/mcp",
            "client_id": "client", "device_code": "\(FakeServer.mark)-device",
        ]
        return fixed.merging(values) { $1 }.reduce(text) { $0.replacingOccurrences(of: "{\($1.key)}", with: $1.value) }
    }

    var response: MockResponse {
        var response = MockResponse(statusCode: status, data: Data(Self.filled(body ?? "").utf8))
        response.headers = Headers(headers.sorted { $0.key < $1.key }.map { ($0.key, Self.filled($0.value)) })
        return response
    }

    /// Runs the log-in or the registration.
    func run() async throws {
        let server = FakeServer()
        switch FakeServer.Place(rawValue: at) {
        case .authorizationServerMetadata:
            server.replace(.authorizationServerMetadata, response)
            try await server.logIn()
        case .protectedResourceMetadata:
            server.replace(.protectedResourceMetadata, response)
            let resource = try await OAuth.ProtectedResource.discover(
                server.url("\(FakeServer.api)/mcp"), service: server.mock.service)
            guard try resource.authorizationServers.contains(server.issuer) else {
                throw WebServiceError(.invalidServerMetadata, "another authorization server")
            }
            try await server.logIn()
        case .token:
            server.replace(.token, response)
            try await server.logIn()
        case .deviceAuthorization:
            server.replace(.deviceAuthorization, response)
            _ = try await server.logInOnDevice()
        case .deviceToken:
            server.replace(.deviceToken, response)
            _ = try await server.logInOnDevice()
        case .registration:
            server.replace(.registration, response)
            _ = try await server.register()
        default:
            try await server.logIn { try callback(server.callback(to: $0)) }
        }
    }

    private func callback(_ honest: URL) throws -> URL {
        let items = URLComponents(url: honest, resolvingAgainstBaseURL: false)?.queryItems ?? []
        func value(_ name: String) -> String { items.first { $0.name == name }?.value ?? "" }
        let (state, code) = (value("state"), value("code"))
        let swapped = String(state.map { Character($0.isUppercase ? $0.lowercased() : $0.uppercased()) })
        let text = Self.filled(
            callback ?? "",
            [
                "state": state, "code": code, "state_cut": String(state.dropLast()), "state_swapcase": swapped,
                "code_cut": String(code.dropLast()),
            ])
        guard let url = URL(string: text) else { throw WebServiceError(.invalidAuthorization, "not a URL") }
        return url
    }
}

/// Documents that were written without knowledge of the implementation.
@Suite("Hostile documents", .permit)
struct HostileDocumentTests {
    private static let places = [
        "authorizationServerMetadata", "protectedResourceMetadata", "callback", "token", "deviceAuthorization",
        "deviceToken", "registration",
    ]

    /// The documents whose result differs from the expectation, and why.
    private static let exceptions: Set<String> = []

    @Test("No token is obtained with a wrong document, and each correct one is accepted", arguments: places)
    func documents(place: String) async throws {
        let documents = try HostileDocument.all(at: place)
        var differences: [String] = []
        for document in documents {
            var failure: (any Error)?
            do { try await document.run() } catch { failure = error }
            if (failure == nil) != (document.expect == "accepted") {
                differences.append(
                    "\(document.expect): \(document.name) (\(document.why)): \(failure.map { "\($0)" } ?? "")")
            }
            if let failure {
                #expect(failure is WebServiceError, "\(document.name): \(failure)")
                let texts = ["\(failure)", String(reflecting: failure), failure.localizedDescription]
                let secrets = [FakeServer.mark, "2YotnFZFEjr1zCsicMWpAA", "tGzv3JOkF0XG5Qx2TlKWIA"]
                #expect(
                    !texts.contains { text in secrets.contains { text.contains($0) } }, "\(document.name): \(failure)")
            }
        }
        #expect(differences.filter { !Self.exceptions.contains($0) } == [])
        #expect(documents.count >= 60)
    }
}
