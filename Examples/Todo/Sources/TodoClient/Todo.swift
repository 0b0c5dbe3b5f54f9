import Foundation
import WebServiceCore
import WebServiceEndpoints
import WebServiceStorage

/// A to-do.
struct Todo: Codable, Hashable, Sendable, Identifiable {
    var id = UUID().uuidString.lowercased()
    var text: String
    var isDone = false
    /// The time of its creation, in milliseconds since 1970.
    var created = Int(Date().timeIntervalSince1970 * 1_000)
}

/// A change of one to-do, which is a request of the API.
enum Change: Hashable, Sendable {
    case put(Todo)
    case remove(id: String)

    var id: String {
        switch self {
        case .put(let todo): todo.id
        case .remove(let id): id
        }
    }

    /// Returns the request that makes the change. It contains the whole to-do, so that it does not
    /// depend on other requests.
    func request(for service: WebService) -> Request {
        switch self {
        case .put(let todo):
            var request = service.request(.PUT, path: "/todos/{id}", pathParameters: ["id": id])
            request.content = .json(todo)
            return request
        case .remove:
            return service.request(.DELETE, path: "/todos/{id}", pathParameters: ["id": id])
        }
    }

    /// Creates the change that a request makes; `nil` if the request changes no to-do.
    init?(_ request: Request) {
        guard let url = request.url, url.deletingLastPathComponent().lastPathComponent == "todos" else { return nil }
        switch request.method {
        case .PUT:
            guard let body = request.body, let todo = try? JSONDecoder().decode(Todo.self, from: body) else {
                return nil  // not a to-do of this version
            }
            self = .put(todo)
        case .DELETE: self = .remove(id: url.lastPathComponent)
        default: return nil
        }
    }
}

extension Change {
    /// Applies the change to a list. Applying it again has no effect.
    func apply(to todos: inout [String: Todo]) {
        switch self {
        case .put(let todo): todos[todo.id] = todo
        case .remove(let id): todos[id] = nil
        }
    }
}

/// The request for the list, whose response is stored.
struct TodosRequest: HTTPServiceRequest, ValueStorableRequest, Hashable {
    typealias Output = [Todo]

    static let identifier = "todos"
    var storageIdentifier: String? { Self.identifier }

    func request(for service: WebService) -> Request { service.request(.GET, path: "/todos") }
}
