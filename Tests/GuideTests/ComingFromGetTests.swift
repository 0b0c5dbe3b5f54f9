import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

// Every snippet of Documentation/Migrating-from-Get.md, with its expected behavior.
// `DocumentationTests` verifies that none is missing.

struct Repository: Codable, Equatable, Sendable {
    var name: String
}

extension WebService {
    func repositories(of name: String) -> TypedTask<[Repository]> {
        GET("/users/{name}/repos", pathParameters: ["name": name])
            .setQueryParameters(["per_page": 5]).decode([Repository].self)
    }
}

@Suite("Coming from Get", .permit)
struct ComingFromGetTests {
    private let mock = MockService()
    private var service: WebService { mock.service }

    @Test("A value is decoded, and a body is JSON")
    func requests() async throws {
        mock.on(.url("https://api.github.com/user"), .json(User(name: "ann")))
        mock.on(.path("/user/emails") && .method(.POST), .status(201))
        let session = mock.session
        func WebService(baseURLString: String) -> WebServiceCore.WebService {
            let service = WebServiceCore.WebService(baseURLString: baseURLString)
            service.session = session
            return service
        }
        let service = WebService(baseURLString: "https://api.github.com")
        let user = try await service.GET("/user").decode(User.self).value
        try await service.POST("/user/emails").setJSON(["ann@example.com"]).empty().value
        #expect(user.name == "ann")
        #expect(mock.receivedRequests.last?.body == Data(#"["ann@example.com"]"#.utf8))
    }

    @Test("A function of an extension describes a request")
    func functions() async throws {
        mock.on(.path("/users/ann/repos") && .query("per_page", "5"), .json([Repository(name: "ale")]))
        let repositories = try await service.repositories(of: "ann").value
        #expect(repositories == [Repository(name: "ale")])
    }

    @Test("A rejected token is refreshed, and the request is sent again")
    func authentication() async throws {
        let tokens = Tokens()
        mock.on(.GET, "/me", .status(401))
        mock.on(.path("/me") && .header("Authorization", "Bearer new"), .text("ann"))
        let authentication = Authentication(
            TokenSource({ .bearer(tokens.current) }) { rejected in .bearer(try await tokens.renew()) }
        )
        service.interceptors = [.retry(), authentication]
        #expect(try await service.GET("/me").string().value == "ann")
    }

    @Test("The status and the value belong to one exchange")
    func status() async throws {
        mock.on(.GET, "/user", .json(User(name: "ann")))
        let task = service.GET("/user").decode(User.self)
        print(try await task.response.status, try await task.value.name)
        #expect(mock.receivedRequests.count == 1)
    }
}
