import Foundation
import WebServiceCore
import WebServiceEndpoints
import WebServicePagination
import WebServiceStorage

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The requests of the brewery API.
protocol BreweryAPI {
    var webService: WebService { get }
}

extension BreweryAPI {
    func brewers() -> ServiceTask {
        webService.GET("/brewers")
    }

    func brewers(inState state: String) -> ServiceTask {
        webService.GET("/brewers").setQueryParameters(["state": state])
    }

    func brewer(_ id: Int) -> ServiceTask {
        webService.GET("/brewers/{id}", pathParameters: ["id": id])
    }

    func add(_ brewer: Brewer) -> ServiceTask {
        webService.POST("/brewers").setJSON(brewer)
    }

    func rename(_ id: Int, to name: String) -> ServiceTask {
        webService.PUT("/brewers/{id}", pathParameters: ["id": id]).setFormParameters(["name": name])
    }

    func delete(_ id: Int) -> ServiceTask {
        webService.DELETE("/brewers/{id}", pathParameters: ["id": id])
    }

    /// Requires a token. The server responds with a 503 to every other request that has one.
    func specials() -> TypedTask<[Brewer]> {
        webService.GET("/specials").decode([Brewer].self)
    }

    /// The archive, page by page.
    func archive() -> Paginator<Brewer, Int> {
        .offset(itemsPerPage: 20, end: .shortPage) { [webService] offset, limit in
            webService.GET("/archive").setQueryParameters(["offset": offset, "limit": limit]).decode([Brewer].self)
        }
    }

    /// The reply to a question, token by token.
    func chat(_ question: String) -> ServerSentEvent.Stream<Chat.Token> {
        webService.POST("/chat").setJSON(["question": question]).events(Chat.Token.self) { $0.data == "[DONE]" }
    }

    func menu() -> ServiceTask {
        webService.GET("/menu")
    }
}

/// The brewery API at a base URL.
struct BreweryClient: BreweryAPI {
    let webService: WebService
}

/// The list as a typed request, stored so that it can be read when the server cannot be reached.
struct BrewersRequest: HTTPServiceRequest, EmptyServiceRequest, ValueStorableRequest, Hashable {
    typealias Output = [Brewer]

    var storageIdentifier: String? { "brewers" }

    func request(for service: WebService) -> Request {
        service.request(.GET, path: "/brewers")
    }
}

/// The reason why a response of the brewery cannot be used.
enum BreweryError: Error {
    case status(Int)
    case unexpectedJSON
}

extension ServiceTask {
    /// Fails unless the status is in the range 200 to 299.
    func requireSuccess() -> Self {
        response { _, response in
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            guard (200...299).contains(status) else { throw BreweryError.status(status) }
        }
    }

    /// Decodes the response and passes it to `handler` on the main actor.
    func responseAsBrewers(handler: @escaping @MainActor @Sendable ([Brewer]) -> Void) -> Self {
        requireSuccess()
            .responseJSON { json, _ in
                guard let list = json as? [[String: Any]] else { return .failure(BreweryError.unexpectedJSON) }
                return .value(try list.map(Brewer.init(json:)))
            }
            .updateUI { value in
                if let brewers = value as? [Brewer] { handler(brewers) }
            }
    }

    /// Decodes the response and passes it to `handler` on the main actor.
    func responseAsBrewer(handler: @escaping @MainActor @Sendable (Brewer) -> Void) -> Self {
        requireSuccess()
            .responseJSON { json, _ in
                guard let object = json as? [String: Any] else { return .failure(BreweryError.unexpectedJSON) }
                return .value(try Brewer(json: object))
            }
            .updateUI { value in
                if let brewer = value as? Brewer { handler(brewer) }
            }
    }
}

extension Brewer {
    init(json: [String: Any]) throws {
        guard let name = json["name"] as? String, let state = json["state"] as? String else {
            throw BreweryError.unexpectedJSON
        }
        self.init(id: json["id"] as? Int, name: name, state: state)
    }
}
