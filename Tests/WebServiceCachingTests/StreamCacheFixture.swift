import Foundation
import TestSupport
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

/// A service with a cache of streams, and with a server and a date that the test controls.
final class StreamCacheFixture: Sendable {
    /// A response in parts.
    struct Reply: Sendable {
        var status = 200
        var headers: Headers = [:]
        var parts: [String] = []
        /// The length that the head announces; `nil` if it is unknown.
        var length: Int64?
        var error: URLError?
        /// Whether the body ends.
        var ends = true
    }

    private struct State {
        var now = CachedResponseTests.start
        var account: String?
        var reply: @Sendable (EncodedRequest) -> Reply = { _ in Reply() }
    }

    private final class StateBox: Sendable {
        let value = Mutex(State())
    }

    let service: WebService
    let cache: ResponseCache
    let storage: any ResponseStorage
    let folder: URL
    /// The requests that reached the server.
    let sent = Collected<EncodedRequest>()
    private let state: StateBox

    init(
        _ storage: any ResponseStorage = MemoryStorage(), in folder: URL? = nil, maximumBytes: Int64 = 1 << 30,
        maximumBodyBytes: Int64? = nil
    ) throws {
        let state = StateBox()
        let sent = sent
        self.state = state
        self.storage = storage
        self.folder = folder ?? TemporaryFolder.forTest().url.appendingPathComponent("bodies")
        cache = ResponseCache(
            storage: storage,
            bodies: try BodyFolder(self.folder, maximumBytes: maximumBytes, maximumBodyBytes: maximumBodyBytes),
            account: { state.value.withLock { $0.account } }, usesHeuristics: false, storageErrorObserver: nil,
            timekeeper: TestTimekeeper(nil, date: { state.value.withLock { $0.now } }))
        service = WebService(baseURLString: "https://h/v1", passthroughDelegate: nil)
        service.session = Server { request in
            sent.add(request)
            return state.value.withLock { $0.reply }(request)
        }
        service.interceptors = [cache]
    }

    func advance(by seconds: TimeInterval) { state.value.withLock { $0.now.addTimeInterval(seconds) } }
    func signIn(_ account: String?) { state.value.withLock { $0.account = account } }
    func serve(_ reply: @escaping @Sendable (EncodedRequest) -> Reply) { state.value.withLock { $0.reply = reply } }

    /// Serves a body that is fresh for a minute.
    func serve(_ parts: String..., headers: Headers = [:]) {
        let headers = (["Cache-Control": "max-age=60"] as Headers).setting(headers)
        serve { _ in Reply(headers: headers, parts: parts) }
    }

    /// Serves one representation that is fresh for a minute, and responds with 304 to a request
    /// with its entity tag.
    func serve(_ body: String, tag: String, control: String = "max-age=60") {
        serve { request in
            let headers: Headers = ["Cache-Control": control, "ETag": tag]
            return request.headers[.ifNoneMatch] == tag
                ? Reply(status: 304, headers: headers) : Reply(headers: headers, parts: [body])
        }
    }

    func task(_ path: String = "/a", _ headers: Headers = [:], method: Request.Method = .GET) -> SessionTask {
        var request = service.request(method, path: path)
        request.headers = headers
        return service.sessionTask(request: request)
    }

    /// Returns the source and the body of a streamed response, once they are stored.
    func stream(
        _ path: String = "/a", _ headers: Headers = [:], method: Request.Method = .GET,
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy
    ) async throws -> String {
        var request = service.request(method, path: path)
        request.headers = headers
        request.options.cachePolicy = policy
        let response = try await service.sessionTask(request: request).stream().value
        let body = try await response.body.collect(upTo: .max)
        await cache.finishStoring()
        return "\(response.response.source) \(String(decoding: body, as: UTF8.self))"
    }

    /// Returns the source and the body of a response in memory.
    func data(_ path: String = "/a", _ headers: Headers = [:]) async throws -> String {
        let response = try await task(path, headers).data().response
        await cache.finishStoring()
        return "\(response.source) \(String(decoding: response.data, as: UTF8.self))"
    }

    /// Returns the contents of the files, sorted. A file that is renamed or removed at the same time
    /// is omitted.
    func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .compactMap { try? String(decoding: Data(contentsOf: $0), as: UTF8.self) }.sorted()
    }

    /// The URL of the only file.
    func file() throws -> URL {
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        guard let file = files.first, files.count == 1 else { throw POSIXError(.ENOENT) }
        return file
    }

    /// Waits until an abandoned file has been removed, and returns the contents of the others.
    func remainingFiles() async throws -> [String] {
        _ = try await becomesTrue { try names().allSatisfy { $0.hasSuffix(".body") } }
        return try files()
    }

    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path) }

    private struct Server: StreamingSession {
        let reply: @Sendable (EncodedRequest) -> Reply

        func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
            DeliveringTask(receiver) { delivery in
                Sending { [reply] in
                    guard let request = try? EncodedRequest.encoding(request) else { return }
                    let reply = reply(request)
                    if let error = reply.error, reply.parts.isEmpty { return delivery.finish(.failure(error)) }
                    var bytes = Array("HTTP/1.1 \(reply.status) -\r\n".utf8)
                    for field in reply.headers { bytes += Array("\(field.name): \(field.value)\r\n".utf8) }
                    guard let head = ResponseHead(bytes: bytes + Array("\r\n".utf8), url: request.url) else { return }
                    delivery.receive(head, length: reply.length)
                    for part in reply.parts where request.method != .HEAD { delivery.receive(Data(part.utf8)) }
                    if let error = reply.error { return delivery.finish(.failure(error)) }
                    if reply.ends { delivery.finish(.success([:])) }
                }
            }
        }
    }

    private final class Sending: DataTask {
        private let send: @Sendable () -> Void

        init(_ send: @escaping @Sendable () -> Void) { self.send = send }

        var state: DataTaskState { .running }
        func resume() { Task { [send] in send() } }
        func suspend() {}
        func cancel() {}
    }
}

extension Headers {
    /// Returns the fields with others in place of those with the same name.
    fileprivate func setting(_ others: Headers) -> Headers {
        var headers = self
        for field in others { headers[Name(field.name)] = field.value }
        return headers
    }
}
