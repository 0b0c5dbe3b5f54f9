import Dispatch
import Foundation

import struct Synchronization.Atomic
import TestSupport
import Testing
import WebServiceResilience
import WebServiceMocking

@testable import WebServiceCore

/// Sends many requests with many kinds of faults.
///
/// `WEBSERVICE_SOAK=1` runs the full number of waves.
@Suite("Load test with a mock session", .serialized, .permit(minutes: 60))
struct MockSoakTests {
    /// A kind of fault, with the results that its request may have.
    enum Kind: Int, CaseIterable {
        case fine, json, empty, notFound, serverError, retried, retriesUsedUp, rateLimited, redirected, redirectLoop,
            unauthorized, stillUnauthorized,
            connectionLost, offline, noHost, silent, cancelledBefore, cancelledInFlight, cancelledAfter, deadline,
            invalidURL, failedProvider,
            failedInterceptor, rejected, notJSON, tooLong, noStub, suspended

        static func of(_ number: Int) -> Kind { allCases[number % allCases.count] }

        /// The results that a request of this kind may have.
        var ends: Set<String> {
            switch self {
            case .fine, .json, .empty, .retried, .rateLimited, .redirected, .unauthorized, .suspended: ["value"]
            case .notFound, .serverError, .retriesUsedUp, .stillUnauthorized: ["unacceptableStatus"]
            case .redirectLoop: ["tooManyRedirects"]
            case .connectionLost: ["-1005"]
            case .offline: ["-1009"]
            case .noHost: ["-1003"]
            case .silent: ["-1001"]
            case .cancelledBefore, .cancelledInFlight: ["-999"]
            case .cancelledAfter: ["value"]
            case .deadline: ["deadline"]
            case .invalidURL: ["invalidURL"]
            case .failedProvider, .failedInterceptor, .rejected: ["test"]
            case .notJSON: ["NSError"]  // of JSONSerialization, which the map step calls
            case .tooLong: ["responseTooLarge"]
            case .noStub: ["noStub"]
            }
        }
    }

    private static let scale = isSanitized ? 10 : 1
    private static let live = Atomic<Int>(0)

    private final class Live: Sendable {
        init() { MockSoakTests.live.add(1, ordering: .relaxed) }
        deinit { MockSoakTests.live.subtract(1, ordering: .relaxed) }
        func touch() {}
    }

    /// Returns a service with a mock session that responds to each kind. Each wave uses a new one,
    /// because a mock session records its requests.
    private static func makeService(_ clock: ManualTimekeeper) -> WebService {
        let session = MockSession()
        let attempts = Mutex<[String: Int]>([:])
        session.addStub(requestMatcher: { $0.urlRequestValue.url?.host == "h" }) { request in
            let request = request.urlRequestValue
            let parts = (request.url?.path ?? "").split(separator: "/")
            let kind = parts.first.flatMap { Int($0) }.flatMap(Kind.init) ?? .fine
            let attempt = attempts.withLock { attempts in
                attempts[request.url?.path ?? "", default: 0] += 1
                return attempts[request.url?.path ?? "", default: 0]
            }
            var response = MockResponse(statusCode: 200, data: Data(#"{"n":1}"#.utf8))
            switch kind {
            case .empty: response = MockResponse(statusCode: 204)
            case .notFound: response.statusCode = 404
            case .serverError: response.statusCode = 500
            case .retried: if attempt < 3 { response.statusCode = 503 }
            case .retriesUsedUp: response.statusCode = 503
            case .rateLimited:
                if attempt == 1 {
                    response.statusCode = 429
                    response.headers[.retryAfter] = "0"
                }
            case .redirected:
                if parts.count == 2 {
                    response.statusCode = 302
                    response.headers[.location] = (request.url?.path ?? "") + "/next"
                }
            case .redirectLoop:
                response.statusCode = 302
                response.headers[.location] = request.url?.path ?? ""
            case .unauthorized:
                if request.value(forHTTPHeaderField: "Authorization") == nil { response.statusCode = 401 }
            case .stillUnauthorized: response.statusCode = 401
            case .connectionLost: return URLError(.networkConnectionLost)
            case .offline: return URLError(.notConnectedToInternet)
            case .noHost: return URLError(.cannotFindHost)
            case .silent, .deadline, .cancelledInFlight: response.wire = .noResponse
            case .notJSON: response.data = Data("{".utf8)
            case .tooLong: response.data = Data(count: 101)
            default: break
            }
            return response
        }
        let service = WebService.make(session, base: "https://h/", timekeeper: clock)
        service.interceptors = [
            .closure { request, next in
                let response = try await next(request)
                guard response.status == 401, request.headers[.authorization] == nil else { return response }
                var renewed = request
                renewed.headers[.authorization] = "t"
                return try await next(renewed)
            },
            RetryPolicy(budget: .seconds(1_000_000), pause: { _ in }),  // the clock is advanced by other requests
        ]
        return service
    }

    private static func makeTask(_ kind: Kind, _ number: Int, _ service: WebService) -> SessionTask {
        let path = kind == .noStub ? "http://other/x" : kind == .invalidURL ? "//h/{id}" : "/\(kind.rawValue)/\(number)"
        let task = kind == .failedProvider ? service.POST(path) : service.GET(path)
        task.setDeadline(.seconds(1_000_000))
        switch kind {
        case .silent: task.setTimeout(.milliseconds(20))
        case .deadline: task.setDeadline(.seconds(1))
        case .failedProvider: task.setBody { throw TestError() }
        case .failedInterceptor: task.intercepted(by: .closure { _, _ in throw TestError() })
        case .tooLong: task.configure { $0.options.maximumResponseBytes = 100 }
        default: break
        }
        return task
    }

    @Test(
        "Every request with one of 28 kinds of faults ends exactly once, and its objects are deallocated")
    func soak() async throws {
        let waves = max(2, amount(3, thorough: 10, soak: 1_000) / Self.scale)
        let wrong = Collected<String>()
        var memory = 0
        for wave in 0..<waves {
            await run(1_000, wrong)
            guard wrong.values.isEmpty else { break }
            if wave == waves / 4 { memory = Self.residentMemory }
        }
        #expect(wrong.values.isEmpty, "\(wrong.values.prefix(5))")
        await eventually { Self.live.load(ordering: .relaxed) == 0 }
        #expect(Self.live.load(ordering: .relaxed) == 0)
        if isSoak, memory > 0 { #expect(Self.residentMemory < memory + 16 << 20) }
    }

    /// Sends a wave of requests and waits until each of them ends.
    private func run(_ count: Int, _ wrong: Collected<String>) async {
        let clock = ManualTimekeeper()
        let service = Self.makeService(clock)
        let group = DispatchGroup()
        let ends = Ends(count)
        for number in 0..<count {
            let kind = Kind.of(number)
            let live = Live()
            let task = Self.makeTask(kind, number, service)
            if kind == .suspended {
                task.intercepted(
                    by: .closure { [weak task] request, next in
                        let task = task
                        task?.suspend()
                        Task { task?.resume() }
                        return try await next(request)
                    })
            }
            var typed = task.data()
            if kind == .rejected { typed = typed.validate { _ in throw TestError() } }
            if kind == .notJSON || kind == .json {
                typed = typed.map { try JSONSerialization.jsonObject(with: $0) is [String: Any] ? $0 : Data() }
            }
            group.enter()
            typed.onCompletion { result in
                live.touch()
                let end = Self.name(of: result)
                let isFirst = ends.add(number)
                if !isFirst || !kind.ends.contains(end) {
                    wrong.add("\(kind) ended with \(end), \(isFirst ? "first" : "again")")
                }
                if isFirst { group.leave() }
            }
            if kind == .cancelledBefore { task.cancel() }
            task.resume()
            if kind == .cancelledInFlight { DispatchQueue.global().async { task.cancel() } }
            if kind == .cancelledAfter { typed.onCompletion { _ in task.cancel() } }
            if kind == .deadline { clock.advance(by: .seconds(2)) }
        }
        let isComplete = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: group.wait(timeout: .now() + 600) == .success)
            }
        }
        if !isComplete {
            for number in ends.missing { wrong.add("\(Kind.of(number)) did not end") }
        }
    }

    /// Counts how often each request ended.
    private final class Ends: Sendable {
        private let counts: Mutex<[Int]>
        init(_ count: Int) { counts = Mutex(Array(repeating: 0, count: count)) }

        /// - Returns: A Boolean value that indicates whether the request ended for the first time.
        func add(_ number: Int) -> Bool {
            counts.withLock { counts in
                counts[number] += 1
                return counts[number] == 1
            }
        }

        var missing: [Int] { counts.withLock { counts in counts.indices.filter { counts[$0] == 0 } } }
    }

    private static func name(of result: Result<Data, any Error>) -> String {
        switch result {
        case .success: "value"
        case .failure(let error as URLError): "\(error.code.rawValue)"
        case .failure(let error as WebServiceError): error.code.description
        case .failure(let error as TestError): error.name
        case .failure(let error): "\(type(of: error))"
        }
    }

    /// The resident memory of the process, in bytes; 0 on systems without `/proc`.
    private static var residentMemory: Int {
        // The file exists only on Linux.
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
    }
}
