import Foundation
import WebServiceCore
import WebServiceStorage

private struct Renewed: Decodable, Sendable {
    var access_token: String
    var refresh_token: String
}

/// Sends requests to a server on this computer that rejects each token after a few requests.
///
/// - Returns: The exit status: 0 if each request has succeeded after some attempts, or else 4.
func send(_ count: Int, tokensIn file: URL, port: Int) async throws -> Int32 {
    let address = "http://127.0.0.1:\(port)"
    let logins = WebService(baseURLString: address)
    let tokens = try TokenFile(file) { old in
        let refresh = logins.POST("/token").setFormParameters(["refresh_token": old.refreshToken])
        let new = try await refresh.decode(Renewed.self).value
        return .init(.bearer(new.access_token), refreshToken: new.refresh_token)
    }
    let service = WebService(baseURLString: address)
    service.interceptors = [Authentication(tokens, maximumRefreshes: .max)]
    for _ in 0..<count {
        var attempts = 0
        // The other process may use the new token up before this one sends it.
        while try await service.GET("/me").data().validate(statuses: 200...499).response.status != 200 {
            attempts += 1
            guard attempts < 100 else { return 4 }
        }
    }
    return 0
}

/// Stores the tokens of many log-ins, and prints `ack N` after each.
func store(_ count: Int, tokensIn file: URL) async throws {
    let tokens = try TokenFile(file)
    for number in 0..<count {
        let padding = String(repeating: "x", count: 5_000 + number % 7)
        try await tokens.store(.init(.bearer("\(number).\(padding)"), refreshToken: "\(number)"))
        tell("ack \(number)")
    }
}
