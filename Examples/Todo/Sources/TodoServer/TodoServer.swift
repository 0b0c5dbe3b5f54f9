import Foundation
import Synchronization
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// A to-do, as the API transfers it.
struct Todo: Codable, Hashable, Sendable {
    var id: String
    var text: String
    var isDone: Bool
    /// The time of its creation, in milliseconds since 1970.
    var created: Int
}

/// A to-do server on this machine. Each user has a separate list.
///
/// A change with an `Idempotency-Key` that the server has seen before has no second effect and
/// receives the same response. The keys are stored together with the lists, in one write.
final class TodoServer: Sendable {
    /// A change of a list.
    struct Change: Codable, Hashable, Sendable {
        var id: String
        /// The new to-do; `nil` if it was removed.
        var todo: Todo?
    }

    private struct List: Codable {
        var todos: [String: Todo] = [:]
        /// All changes, in order. Their number is the version of the list.
        var changes: [Change] = []
        /// The change that each key identifies.
        var keys: [String: Change] = [:]

        var sorted: [Todo] { todos.values.sorted { ($0.created, $0.id) < ($1.created, $1.id) } }
    }

    private struct State: Codable {
        var lists: [String: List] = [:]
        /// The user of each refresh token.
        var refreshTokens: [String: String] = [:]
    }

    private struct Access {
        var user: String
        var end: Date
    }

    /// Processes a request, or replaces its processing, for tests.
    typealias Processing =
        @Sendable (
            _ request: ReceivedRequest, _ process: () throws -> MockResponse
        ) throws -> MockResponse

    let server: MockServer
    private let passwords: [String: String]
    private let file: URL?
    private let processing: Processing
    private let state: Mutex<State>
    /// The access tokens, which are valid for five minutes and not after a restart.
    private let access = Mutex<[String: Access]>([:])

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - passwords: The password of each user.
    ///   - port: The port; 0 lets the system select one.
    ///   - file: The file for the lists; `nil` to store them in memory.
    init(
        passwords: [String: String], port: Int = 0, file: URL? = nil,
        processing: @escaping Processing = { try $1() }
    ) throws {
        self.passwords = passwords
        self.file = file
        self.processing = processing
        var stored = State()
        if let file, FileManager.default.fileExists(atPath: file.path) {
            stored = try JSONDecoder().decode(State.self, from: Data(contentsOf: file))
        }
        state = Mutex(stored)
        server = try MockServer(port: port)
        addRoutes()
    }

    var address: String { server.baseURLString }

    /// Returns the changes of a user's list, in the order of their effect.
    func changes(of user: String) -> [Change] { state.withLock { $0.lists[user]?.changes ?? [] } }

    /// Returns the to-dos of a user.
    func todos(of user: String) -> [Todo] { state.withLock { ($0.lists[user] ?? List()).sorted } }

    /// Invalidates all access tokens.
    func expireTokens() { access.withLock { $0 = [:] } }

    /// Invalidates the refresh tokens of a user, and all access tokens.
    func revokeTokens(of user: String) throws {
        expireTokens()
        try change { $0.refreshTokens = $0.refreshTokens.filter { $1 != user } }
    }

    /// The number of log-ins that can obtain an access token.
    var logInCount: Int { state.withLock(\.refreshTokens.count) }

    func stop() { server.stop() }

    // MARK: Routes

    private func addRoutes() {
        route(.POST, "/session") { this, request in
            struct LogIn: Decodable { var name, password: String }
            let logIn = try request.decode(LogIn.self)
            guard let password = this.passwords[logIn.name], password == logIn.password else { return .status(401) }
            let refresh = UUID().uuidString
            try this.change { $0.refreshTokens[refresh] = logIn.name }
            return .json(["access": this.newAccess(for: logIn.name), "refresh": refresh])
        }
        route(.POST, "/token") { this, request in
            let token = request.formItems.first { $0.name == "refresh_token" }?.value ?? ""
            guard let user = this.state.withLock({ $0.refreshTokens[token] }) else { return .status(401) }
            return .json(["access": this.newAccess(for: user), "refresh": token])
        }
        route(.POST, "/revoke") { this, request in
            let token = request.formItems.first { $0.name == "token" }?.value ?? ""
            try this.change { $0.refreshTokens[token] = nil }
            return .status(200)
        }
        route(.GET, "/todos") { this, request in
            guard let user = this.user(of: request) else { return .status(401) }
            let list = this.state.withLock { $0.lists[user] ?? List() }
            let version = "\"\(list.changes.count)\""
            let headers: Headers = ["ETag": version, "Cache-Control": "private, no-cache"]
            guard request.headers["If-None-Match"] != version else { return .status(304).headers(headers) }
            return .json(list.sorted).headers(headers)
        }
        route(.PUT, "/todos/{id}") { this, request in
            try this.change(try request.decode(Todo.self), request)
        }
        route(.DELETE, "/todos/{id}") { this, request in
            try this.change(nil, request)
        }
    }

    private func route(
        _ method: Request.Method, _ path: String,
        _ handler: @escaping @Sendable (TodoServer, ReceivedRequest) throws -> MockResponse
    ) {
        server.on(.method(method) && .path(path)) { [weak self] request in
            guard let self else { return .status(503) }
            return try processing(request) { try handler(self, request) }
        }
    }

    private func newAccess(for user: String) -> String {
        let token = UUID().uuidString
        access.withLock { $0[token] = Access(user: user, end: Date(timeIntervalSinceNow: 300)) }
        return token
    }

    private func user(of request: ReceivedRequest) -> String? {
        let token = String((request.headers[.authorization] ?? "").dropFirst("Bearer ".count))
        return access.withLock { $0[token] }.flatMap { $0.end > Date() ? $0.user : nil }
    }

    private func change(_ todo: Todo?, _ request: ReceivedRequest) throws -> MockResponse {
        guard let user = user(of: request) else { return .status(401) }
        let change = Change(id: request.pathParameters["id"] ?? "", todo: todo)
        guard let key = request.headers["Idempotency-Key"] else {
            return .problem(400, title: "The header field Idempotency-Key is missing")
        }
        guard todo.map({ $0.id == change.id && !$0.text.isEmpty && $0.text.utf8.count <= 1_000 }) ?? true else {
            return .problem(422, title: "A to-do has a text of at most 1,000 bytes")
        }
        return try self.change { state in
            var list = state.lists[user] ?? List()
            if let earlier = list.keys[key] {
                return earlier == change ? .status(204) : .problem(422, title: "The key belongs to another request")
            }
            list.keys[key] = change
            list.changes.append(change)
            list.todos[change.id] = todo
            state.lists[user] = list
            return .status(204)
        }
    }

    /// Changes the state and writes it to the file, or does neither.
    private func change<Result>(_ body: (inout State) throws -> Result) throws -> Result {
        try state.withLock { state in
            var changed = state
            let result = try body(&changed)
            if let file { try JSONEncoder().encode(changed).write(to: file, options: .atomic) }
            state = changed
            return result
        }
    }
}
