import Foundation
import Hummingbird
import HummingbirdTesting
import Testing
import WebServiceCore
import WebServiceMocking

@testable import HummingbirdRecipe

@Suite("Recipe with Hummingbird", .timeLimit(.minutes(2)))
struct HummingbirdRecipeTests {
    let mock = MockService()

    @Test("A handler calls another service and returns its values")
    func values() async throws {
        mock.on(.path("/brewers") && .query("state", "vermont"), .json([["name": "Long Trail"]]))
        try await Application(router: breweryProxy(service: mock.service)).test(.router) { client in
            try await client.execute(uri: "/states/vermont/brewers", method: .get) { response in
                #expect(response.status == .ok)
                #expect(String(buffer: response.body) == #"["Long Trail"]"#)
            }
        }
    }

    @Test("A failure of the other service is a 502")
    func failure() async throws {
        mock.on(.GET, "/brewers", .status(500))
        try await Application(router: breweryProxy(service: mock.service)).test(.router) { client in
            try await client.execute(uri: "/states/vermont/brewers", method: .get) { response in
                #expect(response.status == .badGateway)
            }
        }
    }

    @Test("The body of the other service passes through")
    func stream() async throws {
        mock.on(.GET, "/log", .text("first\nsecond\n"))
        try await Application(router: breweryProxy(service: mock.service)).test(.router) { client in
            try await client.execute(uri: "/log", method: .get) { response in
                #expect(String(buffer: response.body) == "first\nsecond\n")
            }
        }
    }
}
