import Foundation
import WebServiceCore
import WebServiceOAuth
import WebServiceStorage

/// The user's log-in at a server, in two files of a folder: the registered client and its tokens.
struct LogIn {
    /// The registration of this program at the server's authorization server.
    private struct Registration: Codable {
        var issuer: URL
        var resource: URL
        var client: OAuth.RegisteredClient
    }

    private let url: URL
    private let service: WebService
    private let file: URL
    /// Only a server on this machine may use http.
    private var allowsLoopbackHTTP: Bool { url.scheme == "http" }

    /// - Parameters:
    ///   - url: The URL of the server.
    ///   - service: The service for the authorization server.
    ///   - folder: The folder.
    init(at url: URL, over service: WebService, in folder: URL) throws {
        (self.url, self.service) = (url, service)
        let name = url.absoluteString.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        guard name.utf8.count <= 240 else { throw Failure.usage("the URL is too long") }
        file = folder.appendingPathComponent(name)
    }

    /// The authentication with the stored tokens; `nil` without a log-in.
    var authentication: Authentication? {
        get throws {
            guard FileManager.default.fileExists(atPath: registrationFile.path) else { return nil }
            return Authentication(try tokens())
        }
    }

    private var registrationFile: URL { file.appendingPathExtension("json") }

    /// Returns the client of the stored registration.
    private func oauth() throws -> OAuth {
        let stored = try JSONDecoder().decode(Registration.self, from: Data(contentsOf: registrationFile))
        return OAuth(
            issuer: stored.issuer, client: stored.client.client, resources: [stored.resource], service: service,
            allowsLoopbackHTTP: allowsLoopbackHTTP)
    }

    /// Returns the file of tokens, which several processes may use at once. A refresh reads the
    /// registration again, because another process may have replaced both.
    private func tokens() throws -> TokenFile {
        try TokenFile(file.appendingPathExtension("tokens")) { try await oauth().refresh($0) }
    }

    /// Logs in with the user's browser.
    ///
    /// - Parameters:
    ///   - response: The response of the server that requires the log-in.
    ///   - scopes: The scopes; `nil` for those that the server requires.
    ///   - open: Opens a URL in a browser.
    func begin(after response: Response?, scopes: [String]?, open: (URL) async throws -> Void) async throws {
        let challenges = response.map(OAuth.Challenge.all) ?? []
        let challenge = challenges.first { $0.resourceMetadata != nil } ?? challenges.first { $0.scheme == "bearer" }
        let resource = try await OAuth.ProtectedResource.discover(
            url, challenge: challenge, service: service, allowsLoopbackHTTP: allowsLoopbackHTTP)
        guard let issuer = resource.authorizationServers.first else {
            throw Failure(.noPermission, "the server publishes no authorization server")
        }
        let metadata = try await OAuth.ServerMetadata.discover(
            issuer, service: service, allowsLoopbackHTTP: allowsLoopbackHTTP)
        let receiver = try LoopbackReceiver()
        var registration = OAuth.Registration(name: "mcp-client", redirects: [receiver.redirect])
        registration.members = ["application_type": "native"]
        let client = try await OAuth.register(
            registration, metadata: metadata, service: service, allowsLoopbackHTTP: allowsLoopbackHTTP)
        let oauth = OAuth(
            metadata: metadata, client: client.client, resources: [resource.resource], service: service,
            allowsLoopbackHTTP: allowsLoopbackHTTP)
        let required = challenge.map(\.scopes) ?? []
        let tokens = try await oauth.logIn(
            scopes: scopes ?? (required.isEmpty ? resource.scopes : required), receiver: receiver, open: open)
        // At any time, the stored tokens are those of the stored registration, and of its issuer.
        let file = try self.tokens()
        try await file.remove()  // also creates the folder
        let stored = Registration(issuer: metadata.issuer, resource: resource.resource, client: client)
        try JSONEncoder().encode(stored).write(to: registrationFile, options: .atomic)
        try await file.store(tokens)
    }

    /// Removes the log-in from this machine, and then revokes its tokens.
    func end() async throws {
        guard FileManager.default.fileExists(atPath: registrationFile.path) else { return }
        let oauth = try oauth()
        let file = try tokens()
        let tokens = try await file.tokens()
        try await file.remove()
        try FileManager.default.removeItem(at: registrationFile)
        do {
            if let tokens { try await oauth.revoke(tokens) }
        } catch {
            throw Failure(.failure, "the log-in is removed, but the server has not ended it: \(Failure(error).reason)")
        }
    }
}
