import Foundation
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceOffline
import WebServiceStorage

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// The to-dos of one user: the last known list of the server, and the changes in the outbox.
///
/// A change consists of one durable write: that of its request to the outbox. There is no second
/// write that could be missing after the process was killed.
///
/// 1. The server makes the change, once, because of the `Idempotency-Key`.
/// 2. ``StoredList`` applies it to the stored list.
/// 3. The outbox removes the request.
///
/// If the process is killed in between, the request is sent again, and each step has no further
/// effect.
struct TodoAccount: Sendable {
    let account: Account
    let outbox: Outbox
    private let service: WebService
    private let cache: ResponseCache
    private let list: StoredList

    /// Opens the account in a folder.
    ///
    /// - Parameters:
    ///   - template: The service whose session is used. Defaults to one for the server of the
    ///     log-in.
    ///   - onRejection: Receives the status when the server rejects a change, which is then removed.
    init(
        in folder: URL, like template: WebService? = nil,
        onRejection: @escaping @Sendable (_ status: Int) -> Void = { _ in }
    ) throws {
        account = try Account(in: folder)
        let file = account.file(LogIn.fileName)
        guard let logIn = try? LogIn(from: file) else {
            throw Failure(.noPermission, "the log-in was not completed; log in again")
        }
        let template = try template ?? Self.service(for: logIn.server)
        service = account.service(like: template)
        // The list must not be older than the removal of a request, not even after a power failure.
        let storage = account.storage(try FileStorage(folder: account.file("list"), durability: .power))
        list = StoredList(storage: storage)
        // With the entity tag of the last response, an unchanged list is not transferred again.
        let user = folder.lastPathComponent
        cache = ResponseCache(
            storage: account.storage(try FileStorage(folder: account.file("cache"))), account: { user })
        service.storages = [storage]
        let tokens = TokenFile(file: file, service: account.service(like: template))
        service.interceptors = [list, Authentication(tokens), cache]
        var options = Outbox.Options()
        options.maximumConcurrentRequests = 1  // StoredList reads, changes and writes one list
        outbox = try service.outbox(in: account.file("outbox"), options: options) { failure in
            // A redirect or a page is not that of this server, but that of a log-in or of a
            // network.
            guard case .status(let status) = failure.kind, status >= 400, status != 401 else { return .keep }
            onRejection(status)
            return .drop
        }
    }

    /// Logs in, and stores the tokens in a folder.
    static func logIn(_ name: String, password: String, server: String, folder: URL) async throws {
        let tokens = try await service(for: server).POST("/session")
            .setJSON(["name": name, "password": password]).decode(Tokens.self).value
        try LogIn(server: server, tokens: tokens).write(to: Account(in: folder).file(LogIn.fileName))
    }

    /// Returns a service that belongs to no account.
    private static func service(for server: String) throws -> WebService {
        let service = WebService(baseURLString: server)
        #if WEBSERVICE_CURL
        service.session = try CurlSession()
        #endif
        return service
    }

    /// Stores a change, which is sent later. It is part of ``todos`` when the method returns.
    func submit(_ change: Change) async throws {
        try await outbox.submit(change.request(for: service), entity: change.id)
    }

    /// The to-dos with all changes, in the order of their creation, and the identifiers of those
    /// with changes that the server may not have.
    var todos: (all: [Todo], pending: Set<String>) {
        get async throws {
            var changes: [Change] = []
            for entry in await outbox.entries {
                guard let request = try await outbox.request(of: entry.id) else { continue }
                if let change = Change(request) { changes.append(change) }
            }
            // The list is read last: a change that was sent in the meantime is part of it.
            var todos = try await list.todos
            for change in changes { change.apply(to: &todos) }
            return (todos.values.sorted { ($0.created, $0.id) < ($1.created, $1.id) }, Set(changes.map(\.id)))
        }
    }

    /// Sends all changes, and then reads the list.
    ///
    /// The list is read only when the outbox is empty. Otherwise, an older response could replace a
    /// list that already contains a change that was sent in the meantime.
    func synchronize() async throws {
        let updates = outbox.updates
        let entries = await outbox.entries
        for entry in entries { try entry.checkProgress() }
        var remaining = Set(entries.map(\.id))
        if !remaining.isEmpty {
            for await case .entry(let entry) in updates {
                try entry.checkProgress()
                if entry.state == .sent || entry.state == .removed { remaining.remove(entry.id) }
                if remaining.isEmpty { break }
            }
        }
        _ = try await service.perform(TodosRequest(), fetchPolicy: .serverOnly).value
        await service.finishStoring()
        await cache.finishStoring()
    }

    /// Logs out: removes everything of the user from this machine, and then revokes the token.
    func logOut() async throws {
        let logIn = try LogIn(from: account.file(LogIn.fileName))
        try await account.logOut()
        // Without a connection, the token remains valid, but it no longer exists on this machine.
        let service = try Self.service(for: logIn.server)
        _ = try? await service.POST("/revoke").setFormParameters(["token": logIn.tokens.refresh]).empty().value
    }
}

/// The last known list of the server.
///
/// As an interceptor, it applies each change that the server has confirmed to the list, before the
/// outbox removes the request.
struct StoredList: Interceptor {
    let storage: any ResponseStorage
    private let key = StorageKey(identifier: TodosRequest.identifier)

    init(storage: any ResponseStorage) { self.storage = storage }

    var todos: [String: Todo] {
        get async throws {
            guard let data = try await storage.entry(for: key)?.data else { return [:] }
            let todos = try JSONDecoder().decode([Todo].self, from: data)
            return Dictionary(todos.map { ($0.id, $0) }) { $1 }
        }
    }

    func intercept(_ request: Request, next: Next) async throws -> Response {
        let response = try await next(request)
        guard (200...299).contains(response.status), let change = Change(request) else { return response }
        var todos = try await todos
        change.apply(to: &todos)
        let data = try JSONEncoder().encode(Array(todos.values))
        try await storage.store(StorageEntry(.value(data), date: Date()), for: key)
        return response
    }
}

extension Outbox.Entry {
    /// Throws an error if the entry will not be sent soon.
    fileprivate func checkProgress() throws {
        switch (state, lastFailure) {
        case (.pausing, .transport(let code)):
            throw Failure(.unavailable, "the server cannot be reached (\(code.rawValue)); the changes are sent later")
        case (.pausing, let failure?) where attempts >= 5:
            throw Failure(.unavailable, "the server does not accept the changes (\(failure)); they are sent later")
        case (.blocked, _):
            throw Failure(.noPermission, "the log-in is no longer valid; log in again")
        default: break
        }
    }
}
