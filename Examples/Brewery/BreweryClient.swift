import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What the brewery's API offers.
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

    /// The specials are behind the counter: they need a token, and the counter is busy at first.
    func specials() -> TypedTask<[Brewer]> {
        webService.GET("/specials").decode([Brewer].self)
    }

    /// All brewers there ever were, page by page.
    func archive() -> Paginator<Brewer, Int> {
        .offset(itemsPerPage: 20, end: .shortPage) { [webService] offset, limit in
            webService.GET("/archive").setQueryParameters(["offset": offset, "limit": limit]).decode([Brewer].self)
        }
    }

    func menu() -> ServiceTask {
        webService.GET("/menu")
    }
}

/// The brewery's API at some address.
struct BreweryClient: BreweryAPI {
    let webService: WebService
}

/// The list as a typed request, kept for the time when there is no server.
struct BrewersRequest: HTTPServiceRequest, EmptyServiceRequest, ValueStorableRequest, Hashable {
    typealias Output = [Brewer]

    var storageIdentifier: String? { "brewers" }

    func request(for service: WebService) -> Request {
        service.request(.GET, path: "/brewers")
    }
}

/// What can be wrong with an answer of the brewery.
enum BreweryError: Error {
    case status(Int)
    case unexpectedJSON
}

extension ServiceTask {
    /// Fails unless the status is in the two hundreds.
    func requireSuccess() -> Self {
        response { _, response in
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            guard (200...299).contains(status) else { throw BreweryError.status(status) }
        }
    }

    /// Decodes the answer and hands it over on the main queue.
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

    /// Decodes the answer and hands it over on the main queue.
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
        guard let name = json["name"] as? String, let state = json["state"] as? String else { throw BreweryError.unexpectedJSON }
        self.init(id: json["id"] as? Int, name: name, state: state)
    }
}
