import Foundation
import TestSupport
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

/// A service with a cache, and with a server and a clock that the test controls.
final class CacheFixture: Sendable {
    /// A response of the server: a status, header fields and a body, or an error.
    struct Reply: Sendable {
        var status = 200
        var headers: Headers = [:]
        var body = ""
        var error: URLError?
    }

    private struct State {
        var now = CachedResponseTests.start
        var account: String?
        var reply: @Sendable (EncodedRequest) async -> Reply = { _ in Reply() }
    }

    let service: WebService
    let cache: ResponseCache
    let failures = Collected<StorageEntry.Failure>()
    /// The requests that reached the server.
    let sent = Collected<EncodedRequest>()
    private let state: StateBox

    private final class StateBox: Sendable {
        let value = Mutex(State())
    }

    init(
        _ storage: any ResponseStorage = MemoryStorage(), usesHeuristics: Bool = false, outer: [any Interceptor] = [],
        inner: [any Interceptor] = [], timekeeper: (any Timekeeper)? = ManualTimekeeper()
    ) {
        let state = StateBox()
        let (sent, failures) = (sent, failures)
        self.state = state
        cache = ResponseCache(
            storage: storage, account: { state.value.withLock { $0.account } }, usesHeuristics: usesHeuristics,
            storageErrorObserver: { failures.add($0) },
            timekeeper: TestTimekeeper(timekeeper, date: { state.value.withLock { $0.now } }))
        service = WebService(baseURLString: "https://h/v1", passthroughDelegate: nil, timekeeper: timekeeper)
        service.session = Origin(executor: TaskClock(timekeeper).executor) { request in
            let reply = state.value.withLock { $0.reply }  // before the test learns of the request
            sent.add(request)
            return await reply(request)
        }
        service.interceptors = outer + [cache] + inner
    }

    func advance(by seconds: TimeInterval) { state.value.withLock { $0.now.addTimeInterval(seconds) } }
    func signIn(_ account: String?) { state.value.withLock { $0.account = account } }
    func serve(_ reply: @escaping @Sendable (EncodedRequest) async -> Reply) {
        state.value.withLock { $0.reply = reply }
    }
    func serve(_ headers: Headers = [:], _ body: String = "", status: Int = 200) {
        serve { _ in Reply(status: status, headers: headers, body: body) }
    }
    /// Serves one representation, and responds with 304 to a request with its entity tag.
    func serve(_ headers: Headers, _ body: String, tag: String) {
        serve { request in
            var headers = headers
            headers[.eTag] = tag
            return request.headers[.ifNoneMatch] == tag
                ? Reply(status: 304, headers: headers) : Reply(headers: headers, body: body)
        }
    }

    func get(
        _ path: String = "/a", _ headers: Headers = [:], method: Request.Method = .GET,
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy,
        change: (inout Request) -> Void = { _ in }
    ) async throws -> Response {
        var request = service.request(method, path: path)
        request.headers = headers
        request.options.cachePolicy = policy
        change(&request)
        return try await service.sessionTask(request: request).data().validateNothing().response
    }

    /// Returns the source and the body of a response.
    func text(
        _ path: String = "/a", _ headers: Headers = [:], method: Request.Method = .GET,
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy
    ) async throws -> String {
        let response = try await get(path, headers, method: method, policy: policy)
        return "\(response.source) \(String(decoding: response.data, as: UTF8.self))"
    }

    private struct Origin: Session {
        /// The executor of the replies, which a test clock waits for.
        let executor: (any TaskExecutor)?
        let reply: @Sendable (EncodedRequest) async -> Reply

        func dataTask(
            request: any URLRequestEncodable,
            completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> any DataTask {
            Exchange(executor) { [reply] in
                do {
                    let request = try EncodedRequest.encoding(request)
                    let answer = await reply(request)
                    if let error = answer.error { throw error }
                    var fields: [String: String] = [:]
                    for field in answer.headers { fields[field.name] = answer.headers[field.name] }
                    let url = URL(string: request.url)
                    let response = url.flatMap {
                        HTTPURLResponse(
                            url: $0, statusCode: answer.status, httpVersion: "HTTP/1.1", headerFields: fields)
                    }
                    completion(request.method == .HEAD ? Data() : Data(answer.body.utf8), response, nil)
                } catch {
                    completion(nil, nil, error)
                }
            }
        }
    }

    private final class Exchange: DataTask {
        private let executor: (any TaskExecutor)?
        private let run: @Sendable () async -> Void

        init(_ executor: (any TaskExecutor)?, _ run: @escaping @Sendable () async -> Void) {
            (self.executor, self.run) = (executor, run)
        }

        var state: DataTaskState { .running }
        func resume() { Task(executorPreference: executor) { [run] in await run() } }
        func suspend() {}
        func cancel() {}
    }
}
