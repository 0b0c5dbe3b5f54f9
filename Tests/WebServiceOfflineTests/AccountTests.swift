import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceServer
import WebServiceSockets
import WebServiceStorage
import WebServiceTransfers

@testable import WebServiceOffline

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("An account logs out", .permit)
struct AccountTests {
    private let mock = MockService()
    private let parent = TemporaryFolder.forTest().url
    private var folder: URL { parent.appendingPathComponent("anna", isDirectory: true) }

    /// Waits until the mock has received a request.
    private func received(_ path: String) async {
        await eventually("\(path) arrives") { mock.receivedRequests.contains { $0.path == path } }
    }

    private func code<Value>(_ work: () async throws -> Value) async -> WebServiceError.Code? {
        do { _ = try await work() } catch { return (error as? WebServiceError)?.code }
        return nil
    }

    private func isCancelled<Value>(_ task: Task<Value, any Error>) async -> Bool {
        do { _ = try await task.value } catch { return (error as? URLError)?.code == .cancelled }
        return false
    }

    // MARK: Requests

    @Test("A request in flight is cancelled, and no further one is sent, also by clones")
    func requests() async throws {
        mock.on(.GET, "/slow", .status(200).after(.seconds(100_000)))
        mock.on(.GET, "/later", .status(200)).optional()
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let clone = service.clone()
        let slow = Task { try await service.GET("/slow").data().response }
        let slowOfClone = Task { try await clone.GET("/slow").data().response }
        await eventually { mock.receivedRequests.count == 2 }
        try await account.logOut()
        #expect(await isCancelled(slow))
        #expect(await isCancelled(slowOfClone))
        #expect(await code { try await service.GET("/later").data().response } == .serviceInvalidated)
        #expect(await code { try await clone.GET("/later").data().response } == .serviceInvalidated)
        #expect(await code { try await service.clone().GET("/later").data().response } == .serviceInvalidated)
        let late = account.service(like: mock.service)
        #expect(await code { try await late.GET("/later").data().response } == .serviceInvalidated)
        #expect(mock.receivedRequests.count == 2)
    }

    @Test("A request that another service sends over an invalidated one fails")
    func session() async throws {
        mock.on(.GET, "/later", .status(200)).optional()
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let other = WebService(baseURLString: mock.service.baseURLString)
        other.session = service
        try await account.logOut()
        #expect(await code { try await other.GET("/later").data().response } == .serviceInvalidated)
        #expect(mock.receivedRequests.isEmpty)
    }

    @Test("A log-out also waits for a session that a service has used before")
    func formerSession() async throws {
        let session = SettledSession()
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        service.session = session
        let task = Task { try await service.GET("/").data().response }
        await eventually { session.hand.exchanges.values.count == 1 }
        service.session = mock.service.session
        try await account.logOut()
        #expect(session.settlements.values.count == 1)
        #expect(await isCancelled(task))
    }

    @Test("A stream, an event stream and an upload end")
    func streams() async throws {
        let server = try MockServer()
        defer { server.stop() }
        let goesOn = Gate()
        defer { goesOn.open() }
        server.on(.GET, "/stream") { _ in
            MockResponse(statusCode: 200) { body in
                try body.write(Data("data: a\n\n".utf8))
                goesOn.wait()
            }
            .header(.contentType, "text/event-stream")
        }
        server.on(.PUT, "/file") { _ in
            goesOn.wait()
            return MockResponse(statusCode: 204)
        }
        let account = try Account(in: folder)
        let service = account.service(like: WebService(baseURLString: server.baseURLString))
        let file = parent.appendingPathComponent("upload.bin")
        try Data(count: 100_000).write(to: file)
        let stream = try await service.GET("/stream").stream().value
        let events = Task { for try await _ in service.GET("/stream").events() {} }
        let upload = Task { try await service.PUT("/file").setBody(file: file).upload(resuming: .draft).value }
        await eventually { server.receivedRequests.count == 3 }
        try await account.logOut()
        let error = await #expect(throws: URLError.self) { for try await _ in stream.body {} }
        #expect(error?.code == .cancelled)
        #expect(await isCancelled(events))
        #expect(await isCancelled(upload))
        #expect(try names(in: parent) == ["upload.bin"])
    }

    @Test("A WebSocket connection is closed")
    func webSocket() async throws {
        let received = Collected<WebSocketMessage>()
        mock.on(
            .GET, "/socket",
            .webSocket { socket in
                while let message = try await socket.next() { received.add(message) }
            })
        let account = try Account(in: folder)
        let socket = try await account.service(like: mock.service).webSocket("/socket")
        try await socket.send("x")
        try await account.logOut()
        try? await socket.send("late")  // whether it fails depends on whether the end was noticed
        await #expect(throws: (any Error).self) { for try await _ in socket.messages {} }
        #expect(!received.values.contains(.text("late")))
    }

    @Test("An interceptor that ignores cancellation delays nothing, and sends nothing later")
    func interceptor() async throws {
        mock.on(.GET, "/", .status(200)).optional()
        let gate = Once<Bool>()
        let (isWaiting, isOver) = (Collected<Void>(), Collected<String>())
        let account = try Account(in: folder, logOutLimit: .seconds(100))
        let service = account.service(like: mock.service)
        service.interceptors = [
            ClosureInterceptor { request, next in
                isWaiting.add(())
                _ = await gate.value
                do {
                    let response = try await next(request)
                    isOver.add("status \(response.status)")
                    return response
                } catch {
                    isOver.add("\((error as? URLError)?.code == .cancelled)")
                    throw error
                }
            }
        ]
        let task = Task { try await service.GET("/").data().response }
        await eventually { isWaiting.values.count == 1 }
        try await account.logOut()
        #expect(await isCancelled(task))
        gate.set(true)
        await eventually { !isOver.values.isEmpty }
        #expect(isOver.values == ["true"])
        #expect(mock.receivedRequests.isEmpty)
    }

    @Test("A refresh is cancelled, and the credential is released")
    func refresh() async throws {
        mock.on(.GET, "/", .status(401))
        mock.on(.POST, "/token", .status(200).after(.seconds(100_000)))
        let account = try Account(in: folder)
        let (service, tokens) = (account.service(like: mock.service), account.service(like: mock.service))
        var authentication: Authentication? = Authentication(
            TokenSource({ .bearer("old") }) { _ in
                _ = try await tokens.POST("/token").data().response
                return .bearer("new")
            })
        weak let released = authentication
        service.interceptors = [try #require(authentication)]
        authentication = nil
        let task = Task { try await service.GET("/").data().response }
        await received("/token")
        try await account.logOut()
        _ = await task.result
        #expect(mock.receivedRequests.map(\.path) == ["/", "/token"])
        #expect(service.interceptors.isEmpty)
        await eventually { released == nil }
    }

    // MARK: Data

    @Test("Cookies are read and written, and ignored after the log-out")
    func cookies() async throws {
        mock.on(.GET, "/", .status(200).header("Set-Cookie", "id=1; Max-Age=1000"))
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        _ = try await service.GET("/").data().response
        try account.writeCookies()
        let again = try Account(in: folder)
        #expect(again.cookieJar.cookies.map(\.name) == ["id"])
        try await account.logOut()
        #expect(account.cookieJar.cookies.isEmpty)
        let url = try #require(URL(string: mock.service.baseURLString))
        account.cookieJar.store(["id=2; Max-Age=1000"], from: url)
        #expect(account.cookieJar.cookies.isEmpty)
        #expect(await code { try account.writeCookies() } == .loggedOut)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    @Test("A store in progress is awaited before the storage is emptied, and a later one fails")
    func stores() async throws {
        let gate = Once<Bool>()
        let hand = HandStorage(gate: gate)
        let account = try Account(in: folder)
        let storage = account.storage(hand)
        let key = StorageKey(identifier: "a", classification: .default)
        let entry = StorageEntry(.raw(Data("secret".utf8)), date: nil)
        let store = Task { try await storage.store(entry, for: key) }
        await eventually { hand.begun.values.count == 1 }
        let logOut = Task { try await account.logOut() }
        await eventually { account.isLoggedOut }
        #expect(await code { try await storage.store(entry, for: key) } == .loggedOut)
        #expect(hand.calls.values == [])
        gate.set(true)
        try await logOut.value
        try await store.value
        #expect(hand.calls.values == [.store("secret"), .removeAll])
        #expect(try await storage.entry(for: key) == nil)
    }

    @Test("A storage that does not respond ends the wait, and is emptied when it does")
    func hungStorage() async throws {
        let gate = Once<Bool>()
        let hand = HandStorage(gate: gate)
        let account = try Account(in: folder, logOutLimit: .milliseconds(50))
        let storage = account.storage(hand)
        let key = StorageKey(identifier: "a", classification: .default)
        let store = Task { try await storage.store(StorageEntry(.raw(Data()), date: nil), for: key) }
        await eventually { hand.begun.values.count == 1 }
        #expect(await code { try await account.logOut() } == .storage)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        gate.set(true)
        try await store.value
        await eventually { hand.calls.values.contains(.removeAll) }
        try await account.logOutAgain()
    }

    @Test("A log-out waits for work up to its limit, and the folder stays locked until the work ends")
    func hungWork() async throws {
        let gate = Once<Bool>()
        let isRunning = OnceFlag()
        let account = try Account(in: folder, logOutLimit: .milliseconds(50))
        let service = account.service(like: mock.service)
        let task = service.GET("/").perform { _ in
            _ = isRunning.set()
            _ = await gate.value
            return (true, Response(data: Data(), urlResponse: nil))
        }
        task.resume()
        await eventually { isRunning.isSet }
        #expect(await code { try await account.logOut() } == .storage)
        // If the folder were released too early, it would be free after ten other log-outs.
        for _ in 0..<10 { try await Account(in: parent.appendingPathComponent("ben")).logOut() }
        #expect(await code { try Account(in: folder) } == .storage)
        gate.set(true)
        _ = await task.result
        await eventually { (try? Account(in: folder)) != nil }
    }

    @Test("The files of a download are removed, also outside of the folder")
    func downloads() async throws {
        let server = try MockServer()
        defer { server.stop() }
        let goesOn = Gate()
        defer { goesOn.open() }
        server.on(.GET, "/file") { _ in
            MockResponse(statusCode: 200) { body in
                try body.write(Data(repeating: 1, count: 400_000))
                goesOn.wait()
            }
            .header("Content-Length", "1000000").header("ETag", "\"1\"")
        }
        let account = try Account(in: folder)
        let service = account.service(like: WebService(baseURLString: server.baseURLString))
        let elsewhere = parent.appendingPathComponent("elsewhere.bin")
        let tasks = [elsewhere, account.file("inside.bin")].map { destination in
            Task { try await service.GET("/file").download(to: destination).value }
        }
        await eventually { service.exchanges.count { $0.progress?.bytesReceived ?? 0 > 0 } == 2 }
        #expect(try names(in: parent) != ["anna"])
        #expect(try names(in: folder) != [])
        try await account.logOut()
        #expect(await isCancelled(tasks[0]))
        #expect(await isCancelled(tasks[1]))
        #expect(try names(in: parent) == [])
    }

    @Test("An outbox is closed, and its entries are removed")
    func outbox() async throws {
        mock.on(.POST, "/todos", .status(200).after(.seconds(100_000)))
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let outbox = try service.outbox(in: account.file("outbox"))
        try await outbox.submit(service.request(.POST, path: "/todos"), entity: "1")
        await received("/todos")
        try await account.logOut()
        let error = await #expect(throws: WebServiceError.self) {
            try await outbox.submit(service.request(.POST, path: "/todos"))
        }
        #expect(error?.code == .outboxClosed)
        #expect(error?.message.contains("create another Account") == true)
        #expect(try names(in: parent) == [])
    }

    @Test("After a log-out, no outbox can be opened, and a closed one has no entries")
    func outboxAfterwards() async throws {
        mock.on(.POST, "/todos", .status(200).after(.seconds(100_000)))
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let outbox = try service.outbox(in: account.file("outbox"))
        let id = try await outbox.submit(service.request(.POST, path: "/todos"), entity: "1")
        try await account.logOut()
        #expect(await code { try service.outbox(in: account.file("outbox")) } == .loggedOut)
        #expect(try await outbox.request(of: id) == nil)
        #expect(try await !outbox.remove(id))
        #expect(await outbox.entries == [])
        #expect(try names(in: parent) == [])
    }

    @Test("Each storage is emptied, also if another one does not respond, and one that is added later")
    func severalStorages() async throws {
        let gate = Once<Bool>()
        let account = try Account(in: folder, logOutLimit: .milliseconds(50))
        let (hung, other, late) = (HandStorage(gate: gate), HandStorage(), HandStorage())
        let storage = account.storage(hung)
        _ = account.storage(other)
        let key = StorageKey(identifier: "a", classification: .default)
        let store = Task { try await storage.store(StorageEntry(.raw(Data()), date: nil), for: key) }
        await eventually { hung.begun.values.count == 1 }
        #expect(await code { try await account.logOut() } == .storage)
        await eventually { other.calls.values == [.removeAll] }
        _ = account.storage(late)
        await eventually { late.calls.values.contains(.removeAll) }
        #expect(await code { try Account(in: folder) } == .storage)
        gate.set(true)
        try await store.value
        await eventually { (try? Account(in: folder)) != nil }
    }

    // MARK: Several accounts

    @Test("A service like that of another account belongs to one account only")
    func template() async throws {
        mock.on(.GET, "/", .status(200))
        let anna = try Account(in: folder)
        let ben = try Account(in: parent.appendingPathComponent("ben"))
        let bens = ben.service(like: anna.service(like: mock.service))
        try await anna.logOut()
        let url = try #require(URL(string: mock.service.baseURLString))
        ben.cookieJar.store(["id=1; Max-Age=1000"], from: url)
        #expect(ben.cookieJar.cookies.count == 1)
        #expect(try await bens.GET("/").data().response.status == 200)
    }

    @Test("Two accounts share nothing, and the other one continues")
    func twoAccounts() async throws {
        mock.on(.GET, "/", .status(200)).optional()
        let anna = try Account(in: folder)
        let ben = try Account(in: parent.appendingPathComponent("ben"))
        let (annas, bens) = (anna.service(like: mock.service), ben.service(like: mock.service))
        annas.storages = [anna.storage(MemoryStorage())]
        #expect(bens.storages.isEmpty)
        #expect(anna.cookieJar !== ben.cookieJar)
        try await anna.logOut()
        #expect(try await bens.GET("/").data().response.status == 200)
        #expect(try await mock.service.GET("/").data().response.status == 200)
        #expect(try names(in: parent) == ["ben"])
        #expect(!ben.isLoggedOut)
        _ = annas
    }

    @Test("After a log-out, the same folder can belong to another user")
    func switching() async throws {
        mock.on(.GET, "/", .status(200))
        for _ in 0..<3 {
            let account = try Account(in: folder)
            #expect(try names(in: folder) == [".account"])
            let service = account.service(like: mock.service)
            _ = try await service.GET("/").data().response
            try Data("x".utf8).write(to: account.file("x"))
            try await account.logOut()
        }
        #expect(try names(in: parent) == [])
    }

    // MARK: Interruptions and errors

    @Test("A log-out that a killed process has begun is completed at the next start")
    func interrupted() async throws {
        let (anna, ben) = (try Account(in: folder), try Account(in: parent.appendingPathComponent("ben")))
        for account in [anna, ben] {
            try Data("secret".utf8).write(to: account.file("token"))
            try account.ownFolder.beginLogOut()
        }
        // That of another account remains.
        let next = try Account(in: folder)
        #expect(try names(in: folder) == [".account"])
        #expect(next.ownFolder.generation != anna.ownFolder.generation)
        #expect(try names(in: ben.folder) == [".logged-out", "token"])
        try Account.finishLogOuts(in: parent)
        #expect(try names(in: parent) == ["anna"])
        #expect(try names(in: folder) == [".account"])
    }

    @Test("A link to the folder of an account is followed, and the folder is removed")
    func link() async throws {
        let target = parent.appendingPathComponent("target", isDirectory: true)
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(at: folder, withDestinationURL: target)
        let account = try Account(in: folder)
        try Data("secret".utf8).write(to: account.file("token"))
        try await account.logOut()
        #expect(!FileManager.default.fileExists(atPath: target.path))
    }

    @Test("Concurrent log-outs have one result, and a cancelled Swift task completes it")
    func concurrent() async throws {
        let account = try Account(in: folder)
        await withTaskGroup { group in
            for _ in 0..<10 { group.addTask { try? await account.logOut() } }
            group.cancelAll()
        }
        try await account.logOut()
        #expect(account.isLoggedOut)
        #expect(try names(in: parent) == [])
    }

    @Test("A folder that cannot be used is a typed error")
    func badFolder() async throws {
        let file = parent.appendingPathComponent("file")
        try Data().write(to: file)
        #expect(await code { try Account(in: file) } == .storage)
        #expect(await code { try Account(in: URL(fileURLWithPath: "/")) } == .storage)
        let remote = try #require(URL(string: "https://h/x"))
        #expect(await code { try Account(in: remote) } == .storage)
        _ = try Account(in: folder)
        try Data("[".utf8).write(to: folder.appendingPathComponent("cookies.json"))
        #expect(await code { try Account(in: folder) } == .storage)
    }
}

/// A gate that blocks the threads of a server until the end of the test.
private final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func open() { semaphore.signal() }

    func wait() {
        _ = semaphore.wait(timeout: .now() + .seconds(60))
        semaphore.signal()
    }
}

/// A session whose requests do not end, and which counts the waits for their cancellation.
private final class SettledSession: SettlingSession {
    let hand = HandSession()
    let settlements = Collected<Void>()

    func dataTask(
        request: any URLRequestEncodable, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        hand.dataTask(request: request, completion: completion)
    }

    func settle() async { settlements.add(()) }
}

private struct ClosureInterceptor: Interceptor {
    let body: @Sendable (Request, Next) async throws -> Response

    func intercept(_ request: Request, next: Next) async throws -> Response { try await body(request, next) }
}
