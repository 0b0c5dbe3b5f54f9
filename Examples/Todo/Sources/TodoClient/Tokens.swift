import Foundation
import WebServiceCore

/// The tokens that the server issues.
struct Tokens: Codable, Sendable {
    var access: String
    var refresh: String
}

/// What a log-in stores in the folder of the account.
struct LogIn: Codable, Sendable {
    static let fileName = "log-in.json"

    var server: String
    var tokens: Tokens

    init(server: String, tokens: Tokens) {
        (self.server, self.tokens) = (server, tokens)
    }

    init(from file: URL) throws {
        self = try JSONDecoder().decode(LogIn.self, from: Data(contentsOf: file))
    }

    func write(to file: URL) throws {
        try JSONEncoder().encode(self).write(to: file, options: .atomic)
    }
}

/// Reads the access token from the file, and replaces it when the server rejects it.
///
/// The refresh token remains valid, so a process that is killed during a refresh loses nothing.
struct TokenFile: TokenProvider {
    let file: URL
    /// The service for refreshes, without the authentication.
    let service: WebService

    func credential() async throws -> Credential? { .bearer(try LogIn(from: file).tokens.access) }

    func refresh(_ rejected: Credential?) async throws -> Credential? {
        var logIn = try LogIn(from: file)
        logIn.tokens = try await service.POST("/token").setFormParameters(["refresh_token": logIn.tokens.refresh])
            .decode(Tokens.self).value
        try logIn.write(to: file)
        return .bearer(logIn.tokens.access)
    }
}
