import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceOffline
import WebServiceStorage

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

// Every snippet about outboxes and accounts of Guide.md, Cookbook.md and the articles of the modules,
// with its expected behavior. `DocumentationTests` verifies that none is missing.

@Suite("Snippets about outboxes", .permit)
struct OutboxSnippets {
    private let clock = TestClock()
    private let folder = TemporaryFolder.forTest().url

    @Test("A change is sent again when there is a connection")
    func cookbook() async throws {
        struct Todo: Encodable { var title: String }
        let mock = MockService(clock: clock)
        let service = mock.service
        mock.on(.PUT, "/todos/7", [.error(URLError(.notConnectedToInternet)), .status(204)])
        let todo = Todo(title: "Tap")
        let outbox = try service.outbox(in: folder) { failure in
            failure.kind == .status(404) ? .drop : .keep
        }
        var request = service.request(.PUT, path: "/todos/7")
        request.content = .json(todo)
        try await outbox.submit(request, entity: "todo/7")
        await clock.advance(by: .seconds(1))
        #expect(mock.receivedRequests.map(\.body) == Array(repeating: Data(#"{"title":"Tap"}"#.utf8), count: 2))
        #expect(await outbox.entries == [])
    }

    @Test("A photo is copied, and sent when there is a connection")
    func photo() async throws {
        let mock = MockService(clock: clock)
        let service = mock.service
        mock.on(.PUT, "/photos/7", [.error(URLError(.notConnectedToInternet)), .status(204)])
        let photo = try TemporaryFolder.forTest().file("photo", Data([1, 2]))
        let outbox = try service.outbox(in: folder)
        do {
            var request = service.request(.PUT, path: "/photos/7")
            request.content = .file(photo, contentType: "image/jpeg")
            try await outbox.submit(request, entity: "photo/7", replacing: "photo")
            try FileManager.default.removeItem(at: photo)
        }
        await clock.advance(by: .seconds(1))
        #expect(mock.receivedRequests.map(\.body) == [Data([1, 2]), Data([1, 2])])
        mock.on(.PUT, "/photos/7", .status(204))
        try Data([3]).write(to: photo)
        var request = service.request(.PUT, path: "/photos/7")
        request.content = .file(photo, contentType: "image/jpeg")
        try await outbox.submit(request, entity: "photo/7")
        try FileManager.default.removeItem(at: photo)
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.last?.body == Data([3]))
        #expect(await outbox.entries == [])
    }

    @Test("An outbox and an account let the requests in flight end")
    func shutdown() async throws {
        let mock = MockService(clock: clock)
        let service = mock.service
        mock.on(.PUT, "/todos/7", .status(204))
        let outbox = try service.outbox(in: folder.appendingPathComponent("outbox"))
        try await outbox.submit(service.request(.PUT, path: "/todos/7"))
        await clock.advance(by: .zero)
        if await !outbox.finish(within: .seconds(20)) { print("requests were cancelled") }
        let error = await #expect(throws: WebServiceError.self) {
            try await outbox.submit(service.request(.PUT, path: "/todos/7"))
        }
        #expect(error?.code == .outboxClosed)

        let account = try Account(in: folder.appendingPathComponent("ann"))
        await account.finish(within: .seconds(20))
        try account.writeCookies()
        #expect(!account.isLoggedOut)
    }

    @Test("A request is stored and sent")
    func overview() async throws {
        let mock = MockService(clock: clock)
        let service = mock.service
        mock.on(.DELETE, "/todos/7", .status(204))
        let outbox = try service.outbox(in: folder)
        try await outbox.submit(service.request(.DELETE, path: "/todos/7"), entity: "todo/7")
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.count == 1)
    }

    private final class Network: Sendable {
        private let state = Mutex(false)
        let changes: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation

        init() { (changes, continuation) = AsyncStream.makeStream() }

        var isUnmetered: Bool { state.withLock(\.self) }

        func becomeUnmetered() {
            state.withLock { $0 = true }
            continuation.yield()
            continuation.finish()
        }
    }

    @Test("A request that waits for a condition is sent when it has changed")
    func condition() async throws {
        let mock = MockService(clock: clock)
        let service = mock.service
        mock.on(.PUT, "/photo", .status(204))
        let network = Network()
        var options = Outbox.Options()
        options.canSend = { entry in entry.entity != "photo" || network.isUnmetered }
        let outbox = try service.outbox(in: folder, options: options)
        try await outbox.submit(service.request(.PUT, path: "/photo"), entity: "photo")
        await clock.advance(by: .seconds(1))
        #expect(mock.receivedRequests.count == 0)
        network.becomeUnmetered()
        for await _ in network.changes { outbox.reevaluate() }
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.count == 1)
    }

    private actor Drafts {
        private(set) var ids: [UUID: Int] = [:]
        func setID(_ id: Int, ofDraft draft: UUID) throws { ids[draft] = id }
    }

    @Test("The ID that the server assigned is stored, and its response is removed")
    func assignedID() async throws {
        struct Draft: Encodable {
            var title: String
            var submission: UUID?
        }
        struct Todo: Decodable { var id: Int }
        let mock = MockService(clock: clock)
        let service = mock.service
        mock.on(.POST, "/todos", .json(["id": 7], status: 201))
        let outbox = try service.outbox(in: folder)
        let database = Drafts()
        var draft = Draft(title: "Tap")
        var request = service.request(.POST, path: "/todos")
        request.content = .json(draft)
        draft.submission = try await outbox.submit(request, entity: "draft/1", storesResponse: true)
        let id = try #require(draft.submission)
        let reader = Task(executorPreference: clock.executor) {
            for try await stored in outbox.responses {
                let todo = try stored.response.decode(Todo.self)
                try await database.setID(todo.id, ofDraft: stored.id)
                try await outbox.removeResponse(of: stored.id)
            }
        }
        await clock.advance(by: .zero)
        await eventually { (try? await outbox.response(of: id)) ?? nil == nil }
        #expect(await database.ids == [id: 7])
        await outbox.close()
        try await reader.value
    }

    #if WEBSERVICE_SQLITE
    @Test("A request is stored in a database and sent")
    func database() async throws {
        let mock = MockService(clock: clock)
        let service = mock.service
        mock.on(.DELETE, "/todos/7", .status(204))
        let outbox = try service.outbox(inDatabase: folder.appendingPathComponent("outbox.sqlite"))
        try await outbox.submit(service.request(.DELETE, path: "/todos/7"), entity: "todo/7")
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.count == 1)
    }
    #endif

    @Test("A log-out leaves no folder, and sends nothing")
    func account() async throws {
        let mock = MockService(clock: clock)
        mock.on(.PUT, "/todos/7", .error(URLError(.notConnectedToInternet))).optional()
        let service = mock.service
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        do {
            let account = try Account(in: folder.appendingPathComponent("ann"))
            let annsService = account.service(like: service)
            annsService.interceptors = [.bearer("token")]
            annsService.storages = [account.storage(try FileStorage(folder: account.file("responses")))]
            let annsOutbox = try annsService.outbox(in: account.file("outbox"))
            try await annsOutbox.submit(annsService.request(.PUT, path: "/todos/7"), entity: "todo/7")
            try await account.logOut()
            print(FileManager.default.fileExists(atPath: account.folder.path))  // false
        }
        try Account.finishLogOuts(in: folder)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names == [])
    }
}
