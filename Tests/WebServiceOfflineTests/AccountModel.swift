import Foundation
import TestSupport
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceStorage

@testable import WebServiceOffline

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One user of a service whose server, disk and refreshes are under the control of a generator of
/// random numbers, and what must not happen after the log-out.
final class AccountModel: Sendable {
    /// How the user is logged out.
    enum Ending: Sendable {
        case account
        /// With the other members of the library.
        case byHand
    }

    /// Things that wait for the generator, such as a request for its response.
    final class Parked: Sendable {
        private let waiting = Mutex<[@Sendable (UInt64) -> Void]>([])

        func add(_ release: @escaping @Sendable (UInt64) -> Void) { waiting.withLock { $0.append(release) } }

        /// Continues one of the things that wait.
        ///
        /// - Returns: `false` if nothing waits.
        @discardableResult
        func release(_ random: UInt64) -> Bool {
            let release = waiting.withLock { waiting in
                waiting.isEmpty ? nil : waiting.remove(at: Int(random % UInt64(waiting.count)))
            }
            release?(random >> 16)
            return release != nil
        }
    }

    let violations = Collected<String>()
    let hasEnded = OnceFlag()
    let parked = Parked()
    let service: WebService
    let tokenService: WebService
    let authentication: Authentication
    let jar: CookieJar
    let storage: ParkingStorage
    let account: Account?
    let folder: URL
    private let ending: Ending
    private let tasks = Mutex<[Task<Void, Never>]>([])

    init(_ ending: Ending, in folder: URL) throws {
        self.ending = ending
        self.folder = folder
        let template = WebService(baseURLString: "https://api.test")
        template.session = ModelSession(parked, violations, hasEnded)
        storage = ParkingStorage(MemoryStorage(), parked)
        let used: any ResponseStorage
        switch ending {
        case .account:
            let account = try Account(in: folder, logOutLimit: .seconds(100))
            self.account = account
            service = account.service(like: template)
            tokenService = account.service(like: template)
            used = account.storage(storage)
            jar = account.cookieJar
        case .byHand:
            account = nil
            service = template.clone()
            tokenService = template.clone()
            used = storage
            jar = CookieJar()
            service.cookieJar = jar
        }
        let refreshes = tokenService
        authentication = Authentication(
            ModelTokens { number in
                var request = refreshes.request(.POST, path: "/token")
                request.headers["X-Secret"] = "refresh"
                _ = try await refreshes.sessionTask(request: request).data().response
                return .bearer("secret-\(number)")
            })
        service.interceptors = [SlowInterceptor(parked: parked), ResponseCache(storage: used), authentication]
        service.storages = [used]
    }

    /// Begins a random piece of work, whose result does not matter.
    func begin(_ random: UInt64) {
        let service = service
        let work: @Sendable () async -> Void =
            switch random % 6 {
            case 0: { _ = try? await service.GET("/plain").data().response }
            case 1: { _ = try? await service.POST("/plain").setBody(Data("x".utf8)).data().response }
            case 2: { _ = try? await service.perform(Note(name: "\(random >> 8 & 3)")).value }
            case 3:
                {
                    guard let stream = try? await service.GET("/stream").stream().value else { return }
                    do { for try await _ in stream.body {} } catch {}  // the end does not matter
                }
            case 4: { _ = try? await service.stored(Note(name: "\(random >> 8 & 3)")).value }
            default:
                {
                    let clone = service.clone()
                    _ = try? await clone.GET("/plain").data().response
                }
            }
        let task = Task { await work() }
        tasks.withLock { $0.append(task) }
    }

    func logOut() async throws {
        switch ending {
        case .account: try await account?.logOut()
        case .byHand:
            service.cancelAll()
            tokenService.cancelAll()
            authentication.clear()
            jar.removeAll()
            try await storage.removeAll()
        }
        _ = hasEnded.set()
    }

    /// Continues everything that waits until all work has ended.
    func finish(_ generator: inout SeededGenerator) async {
        let tasks = tasks.withLock { $0 }
        let hasFinished = OnceFlag()
        Task {
            for task in tasks { await task.value }
            _ = hasFinished.set()
        }
        while !hasFinished.isSet {
            if !parked.release(generator.next()) { await Task.yield() }
        }
        while parked.release(generator.next()) {}
        _ = await service.finishStoring()
    }

    /// Adds the violations that are found when all work has ended.
    func check() {
        if storage.count > 0 { violations.add("an entry remains") }
        if !jar.cookies.isEmpty { violations.add("a cookie remains") }
        if ending == .account, FileManager.default.fileExists(atPath: folder.path) { violations.add("a file remains") }
    }
}

private struct Note: HTTPServiceRequest, RawStorableRequest, Hashable {
    typealias Output = String
    var name: String
    var storageIdentifier: String? { name }

    func request(for service: WebService) throws -> Request { service.request(.GET, path: "/notes/\(name)") }
    func decode(_ response: Response) throws -> String { String(decoding: response.data, as: UTF8.self) }
}

private struct ModelTokens: TokenProvider {
    let renew: @Sendable (Int) async throws -> Credential
    private let number = Counter()

    init(_ renew: @escaping @Sendable (Int) async throws -> Credential) { self.renew = renew }

    func credential() async throws -> Credential? { .bearer("secret-\(number.value)") }
    func refresh(_ rejected: Credential?) async throws -> Credential? { try await renew(number.next()) }
}

private final class Counter: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    func next() -> Int {
        count.withLock {
            $0 += 1
            return $0
        }
    }
}

/// An interceptor that ignores cancellation, before and after the request.
private struct SlowInterceptor: Interceptor {
    let parked: AccountModel.Parked

    func intercept(_ request: Request, next: Next) async throws -> Response {
        await pause()
        let response = try await next(request)
        await pause()
        return response.status == 503 ? try await next(request) : response
    }

    private func pause() async {
        await withCheckedContinuation { continuation in
            parked.add { _ in continuation.resume() }
        }
    }
}

/// A storage whose changes wait for the generator.
final class ParkingStorage: ResponseStorage {
    private let memory: MemoryStorage
    private let parked: AccountModel.Parked
    private let keys = Mutex<Set<StorageKey>>([])

    init(_ memory: MemoryStorage, _ parked: AccountModel.Parked) { (self.memory, self.parked) = (memory, parked) }

    var count: Int { keys.withLock { $0.count } }

    func entry(for key: StorageKey) async throws -> StorageEntry? { memory.entry(for: key) }

    func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        await withCheckedContinuation { continuation in parked.add { _ in continuation.resume() } }
        try memory.store(entry, for: key)
        keys.withLock { _ = $0.insert(key) }
    }

    func removeEntry(for key: StorageKey) async throws {
        memory.removeEntry(for: key)
        keys.withLock { _ = $0.remove(key) }
    }

    func removeAll() async throws {
        memory.removeAll()
        keys.withLock { $0 = [] }
    }
}

/// A session whose responses wait for the generator, also after a cancellation.
private final class ModelSession: StreamingSession {
    private let parked: AccountModel.Parked
    private let violations: Collected<String>
    private let hasEnded: OnceFlag

    init(_ parked: AccountModel.Parked, _ violations: Collected<String>, _ hasEnded: OnceFlag) {
        (self.parked, self.violations, self.hasEnded) = (parked, violations, hasEnded)
    }

    func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        ModelExchange(request.urlRequestValue, receiver) { [self] exchange in
            if hasEnded.isSet { violations.add("a request was sent") }
            parked.add { random in exchange.respond(random, self.parked) }
        }
    }
}

private final class ModelExchange: StreamTask {
    private let request: URLRequest
    private let receiver: any BodyReceiver
    private let onResume: @Sendable (ModelExchange) -> Void

    init(
        _ request: URLRequest, _ receiver: any BodyReceiver, onResume: @escaping @Sendable (ModelExchange) -> Void
    ) {
        (self.request, self.receiver, self.onResume) = (request, receiver, onResume)
    }

    var state: DataTaskState { .running }
    func resume() { onResume(self) }
    func suspend() {}
    func cancel() {}
    func receiveMore() {}

    func respond(_ random: UInt64, _ parked: AccountModel.Parked) {
        let isToken = request.url?.path == "/token"
        let status = isToken ? 200 : [200, 200, 200, 401, 503][Int(random % 5)]
        let fields =
            "Set-Cookie: id=secret-cookie; Max-Age=1000\r\nCache-Control: max-age=1000\r\nContent-Length: 6\r\n"
        let bytes = Array("HTTP/1.1 \(status) -\r\n\(fields)\r\n".utf8)
        guard let head = ResponseHead(bytes: bytes, url: request.url?.absoluteString ?? "") else { return }
        do { try receiver.didReceive(head, length: 6, decoder: nil) } catch { return end(.failure(error)) }
        parked.add { [self] _ in
            do {
                _ = try Data("secret".utf8).withUnsafeBytes { try receiver.didReceive($0) }
                end(.success([:]))
            } catch {
                end(.failure(error))
            }
        }
    }

    private func end(_ result: Result<Headers, any Error>) { receiver.didComplete(result, metrics: nil) }
}
