import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceFields
import WebServiceMocking
import WebServiceResilience
import WebServiceStorage

/// The interceptors of the package in pairs and triples, before a server that counts.
@Suite("Combinations of interceptors", .permit)
struct InterceptorCombinationTests {
    enum Kind: String, CaseIterable, Sendable {
        case connectivityWait, idempotencyKey, retry, authentication, digest, cache, coalescing, hedging, endpoints
        case circuitBreaker, rateLimit, concurrencyLimit, contentDigest, traceContext, headers, standardResilience

        private static let servers = ["https://mock.test", "https://b.test"].compactMap(Origin.init)

        func interceptors() -> [any Interceptor] {
            switch self {
            case .connectivityWait: [.waitForConnectivity(isConnected: Self.networkAfterOneCheck())]
            case .idempotencyKey: [.idempotencyKey()]
            case .retry: [.retry()]
            case .authentication:
                [
                    Authentication(
                        TokenSource({ .bearer("old") }) { _ in .bearer("new") }, origins: Set(Self.servers))
                ]
            case .digest: [.digest(user: "u", password: "p", origins: Set(Self.servers))]
            case .cache: [ResponseCache(storage: MemoryStorage(), account: { "ann" })]
            case .coalescing: [.coalescing()]
            case .hedging: [.hedging(after: .fixed(.milliseconds(50)))]
            case .endpoints: [.endpoints(Self.servers)]
            case .circuitBreaker: [.circuitBreaker()]
            case .rateLimit: [.rateLimit(100)]
            case .concurrencyLimit: [.concurrencyLimit(.fixed(10))]
            case .contentDigest: [.contentDigest()]
            case .traceContext: [.traceContext()]
            case .headers: [.headers(["X-A": "1"])]
            case .standardResilience: .standardResilience()
            }
        }

        private static func networkAfterOneCheck() -> @Sendable (String) -> Bool {
            let isConnected = Mutex(false)
            return { _ in
                isConnected.withLock { isConnected in
                    defer { isConnected = true }
                    return isConnected
                }
            }
        }

        /// The interceptors before which this one must not be placed.
        var predecessors: Set<Kind> {
            switch self {
            case .retry: [.idempotencyKey, .retry, .standardResilience]
            case .standardResilience: [.idempotencyKey, .retry, .hedging, .endpoints, .standardResilience]
            case .hedging: [.connectivityWait, .retry, .coalescing, .hedging, .standardResilience]
            case .endpoints: [.retry, .hedging, .standardResilience]
            case .circuitBreaker: [.endpoints]
            case .rateLimit, .concurrencyLimit: [.hedging, .endpoints]
            case .connectivityWait: [.connectivityWait]
            default: []
            }
        }
    }

    enum Fault: String, CaseIterable {
        case unavailable, unauthorized, lost, refused, deadTarget, late
    }

    /// A server that counts the requests that it may have processed.
    private final class Server: Sendable {
        private struct State {
            var count = 0
            /// The idempotency keys of the POST requests.
            var orders: [String?] = []
        }

        private let (fault, failures): (Fault, Int)
        private let state = Mutex(State())

        init(_ fault: Fault, failures: Int) {
            (self.fault, self.failures) = (fault, failures)
        }

        var orders: [String?] { state.withLock { $0.orders } }

        func respond(to request: any URLRequestEncodable) -> any MockableDataTaskResult {
            let request = request.urlRequestValue
            let (isDead, key) = (request.url?.host == "dead.test", request.value(forHTTPHeaderField: "Idempotency-Key"))
            return state.withLock { state -> any MockableDataTaskResult in
                if !isDead || fault != .deadTarget { state.count += 1 }
                let fails = state.count <= failures
                if isDead { return fails ? URLError(.cannotConnectToHost) : MockResponse(statusCode: 200) }
                if fails, fault == .refused { return URLError(.cannotConnectToHost) }
                if fails, fault == .unauthorized {
                    var response = MockResponse(statusCode: 401)
                    response.headers["WWW-Authenticate"] = "Digest realm=a, nonce=n\(state.count), qop=auth,auth-int"
                    return response
                }
                if request.httpMethod == "POST" { state.orders.append(key) }
                guard fails else { return MockResponse(statusCode: 200) }
                switch fault {
                case .unavailable: return MockResponse(statusCode: 503)
                case .lost: return URLError(.networkConnectionLost)
                case .deadTarget: return MockResponse(statusCode: 303, headers: ["Location": "https://dead.test/"])
                default: return MockResponse(statusCode: 200).after(.seconds(1))
                }
            }
        }
    }

    private struct Run {
        var error: WebServiceError?
        var requests = 0
        var orders: [String?] = []
        var reasons = 0
    }

    private func run(
        _ kinds: [Kind], own: [Kind] = [], _ method: Request.Method, _ fault: Fault, failures: Int
    ) async -> Run {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let server = Server(fault, failures: failures)
        mock.session.addStub { server.respond(to: $0) }
        mock.service.interceptors = kinds.flatMap { $0.interceptors() }
        var request = mock.service.request(method, path: "/orders")
        if method == .POST { request.body = Data("ale".utf8) }
        request.options.interceptors = own.flatMap { $0.interceptors() }
        let task = mock.service.sessionTask(request: request).data().validateNothing().resume()
        await clock.advance(by: .seconds(300))
        var run = Run()
        do { _ = try await task.value } catch { run.error = error as? WebServiceError }
        (run.requests, run.orders) = (mock.receivedRequests.count, server.orders)
        run.reasons = task.timeline.events.count(where: { event in
            switch event.kind {
            case .retry, .redirect: true
            case .wait: event.detail == "for a network"
            case .hedging: event.detail.hasPrefix("second request")
            default: false
            }
        })
        return run
    }

    /// Returns what is wrong with a list of interceptors; `nil` if nothing is.
    private func problem(_ kinds: [Kind], own: [Kind] = [], isRefused: Bool) async -> String? {
        for method in [Request.Method.POST, .GET] {
            for (fault, failures) in Fault.allCases.flatMap({ [($0, 1), ($0, Int.max)] }) {
                let run = await run(kinds, own: own, method, fault, failures: failures)
                let problem = problem(of: run, isRefused: isRefused, maximum: Self.maximum(kinds + own, fault))
                if let problem { return "\(kinds) \(own) \(method) \(fault) \(failures): \(problem)" }
            }
        }
        return nil
    }

    private func problem(of run: Run, isRefused: Bool, maximum: Int) -> String? {
        if (run.error?.code == .interceptorOrder) != isRefused { return "error \(String(describing: run.error))" }
        if isRefused { return run.requests > 0 || !Self.namesOrder(run.error) ? "\(run)" : nil }
        if run.requests == 0 { return "nothing was sent: \(String(describing: run.error))" }
        if run.orders.count > 1, Set(run.orders).count > 1 || run.orders[0] == nil { return "processed \(run.orders)" }
        return run.requests > min(1 + run.reasons, maximum) ? "\(run), of at most \(maximum) requests" : nil
    }

    private static func namesOrder(_ error: WebServiceError?) -> Bool {
        error?.message.contains("; place .") == true || error?.message.contains("; use one .") == true
    }

    /// Three attempts, each with a second request and a redirect; as many after a wait for a
    /// network; and those with other credentials.
    private static func maximum(_ kinds: [Kind], _ fault: Fault) -> Int {
        let isRetried = kinds.contains(.retry) || kinds.contains(.standardResilience)
        return (isRetried ? 3 : 1) * (kinds.contains(.hedging) ? 2 : 1) * (kinds.contains(.connectivityWait) ? 2 : 1)
            * (fault == .deadTarget ? 2 : 1) + (fault == .unauthorized ? 3 : 0)
    }

    @Test(
        "In each pair of interceptors, no order is placed twice, and each request has a reason in the timeline",
        arguments: Kind.allCases)
    func pairs(first: Kind) async {
        for second in sample(Kind.allCases, every: 3) {
            let isRefused = first.predecessors.contains(second)
            if let problem = await problem([first, second], isRefused: isRefused) { Issue.record("\(problem)") }
        }
    }

    @Test(
        "In each pair of an interceptor of the service and one of the request, no order is placed twice",
        arguments: Kind.allCases)
    func requestPairs(first: Kind) async {
        for second in sample(Kind.allCases, every: 3) {
            if let problem = await problem([first], own: [second], isRefused: false) { Issue.record("\(problem)") }
        }
    }

    private static let repeating: [Kind] = [
        .connectivityWait, .idempotencyKey, .retry, .authentication, .hedging, .endpoints,
    ]

    @Test("In triples of those that send requests again, no order is placed twice", arguments: repeating)
    func triples(first: Kind) async {
        for second in Self.repeating where second != first {
            for third in sample(Self.repeating, every: 3) where third != first && third != second {
                let isRefused =
                    first.predecessors.contains(second) || first.predecessors.contains(third)
                    || second.predecessors.contains(third)
                let problem = await problem([first, second, third], isRefused: isRefused)
                if let problem { Issue.record("\(problem)") }
            }
        }
    }

    @Test("In the documented order, all of them together work")
    func all() async {
        let kinds: [Kind] = [
            .headers, .traceContext, .connectivityWait, .idempotencyKey, .contentDigest, .retry, .authentication,
            .cache,
            .hedging, .endpoints, .circuitBreaker, .rateLimit, .concurrencyLimit,
        ]
        if let problem = await problem(kinds, isRefused: false) { Issue.record("\(problem)") }
    }
}
