import Foundation
import TestSupport
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOAuth

extension FakeServer {
    static let redirect = "http://127.0.0.1:54321/callback"

    /// Runs a body while the clock advances, and returns its result.
    func advancing<Value: Sendable>(
        by duration: Duration, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let task = Task(executorPreference: clock.executor) { try await body() }
        await clock.advance(by: duration)
        return try await task.value
    }

    /// Logs in with an authorization code.
    ///
    /// - Parameter callback: Returns the callback for the URL that the browser opens. Defaults to an
    ///   honest one.
    @discardableResult
    func logIn(_ oauth: OAuth? = nil, callback: ((URL) throws -> URL)? = nil) async throws -> OAuth.Tokens {
        let oauth = try oauth ?? self.oauth()
        let authorization = try await oauth.authorization(redirect: url(Self.redirect), scopes: ["read"])
        let url = authorization.url
        return try await authorization.tokens(from: try callback?(url) ?? self.callback(to: url))
    }

    /// Logs in on a device, while the clock advances by two hours.
    func logInOnDevice() async throws -> OAuth.Tokens {
        let oauth = try oauth()
        return try await advancing(by: .seconds(7200)) { try await oauth.deviceAuthorization().tokens() }
    }

    /// Registers a client with a secret.
    func register() async throws -> OAuth.RegisteredClient {
        var registration = OAuth.Registration(name: "Test", redirects: [try url(Self.redirect)])
        registration.authentication = .basic
        let metadata = try await OAuth.ServerMetadata.discover(issuer, service: mock.service)
        return try await OAuth.register(registration, metadata: metadata, service: mock.service)
    }
}
