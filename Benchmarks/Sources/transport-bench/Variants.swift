import AsyncHTTPClient
import CurlFloor
import Foundation
import NIOCore
import NIOSSL
import Synchronization
import WebServiceCore
import WebServiceCurl

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A client to measure. It sends GET requests with a given concurrency for a given duration.
struct Variant: Sendable {
    let name: String
    /// Whether the trusted certificates can be configured.
    var isSecure = false
    /// Whether the client is also measured on one processor core.
    var isOnOneCore = false
    /// The path of the program that takes the samples. Defaults to `nil`: this program.
    var program: String?
    /// - Returns: The number of valid responses.
    let run: @Sendable (Load) async throws -> Int
}

/// The load on a client.
struct Load: Sendable {
    /// Scheme, host and port.
    var base: String
    var path: String
    var inFlight: Int
    var seconds: Double
    /// The expected length of the body. Any other length is an error, as is any status but 200.
    var length: Int
    /// The file with the trusted certificates, or `nil` without TLS.
    var trusted: String?
    var isHTTP2 = false

    var url: String { base + path }
}

struct WrongAnswer: Error, CustomStringConvertible {
    let description: String
}

extension Variant {
    static let urlSession = "URLSession, completion handler"
    static let libcurl = "libcurl alone, in C"
    static let asyncHTTPClient = "AsyncHTTPClient 1.37.0"
    static let goHTTP = "Go, net/http"

    /// The clients that the others are compared with.
    static let peers = [asyncHTTPClient, goHTTP, urlSession, libcurl]

    /// The name without a version and details.
    var shortName: String { Self.shortName(name) }

    static func shortName(_ name: String) -> String {
        String(name.prefix { $0.isLetter })
    }

    /// Creates the client of `Peers/client.go`, built as the program at a path.
    static func goHTTP(program: String) -> Variant {
        Variant(name: goHTTP, isSecure: true, isOnOneCore: true, program: program) { _ in
            throw WrongAnswer(description: "the samples of \(goHTTP) are taken by another program")
        }
    }

    /// The clients of this program.
    static let all = [
        Variant(name: urlSession) { load in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpMaximumConnectionsPerHost = max(load.inFlight, 6)
            configuration.urlCache = nil
            configuration.httpCookieStorage = nil
            let session = URLSession(configuration: configuration)
            guard let url = URL(string: load.url) else { throw WrongAnswer(description: "the URL is invalid") }
            return try await lanes(load) { done in
                session.dataTask(with: url) { data, response, error in
                    done(check(load, (response as? HTTPURLResponse)?.statusCode, data?.count, error))
                }.resume()
            }
        },
        Variant(name: asyncHTTPClient, isSecure: true, isOnOneCore: true) { load in
            var configuration = HTTPClient.Configuration()
            configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = max(load.inFlight, 8)
            configuration.httpVersion = load.isHTTP2 ? .automatic : .http1Only
            if let trusted = load.trusted {
                var tls = TLSConfiguration.makeClientConfiguration()
                tls.trustRoots = .file(trusted)
                configuration.tlsConfiguration = tls
            }
            let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
            defer { client.shutdown { _ in } }
            return try await awaiting(load) {
                let response = try await client.execute(HTTPClientRequest(url: load.url), timeout: .seconds(30))
                let body = try await response.body.collect(upTo: 1 << 24)
                guard load.isHTTP2 == (response.version == .http2) else {
                    return WrongAnswer(description: "\(response.version)")
                }
                return check(load, Int(response.status.code), body.readableBytes, nil)
            }
        },
        Variant(name: libcurl, isSecure: true, isOnOneCore: true) { load in
            let answers = curl_floor(
                load.url, Int32(load.inFlight), load.seconds, load.length, load.trusted, load.isHTTP2 ? 1 : 0)
            guard answers >= 0 else { throw WrongAnswer(description: "a response was invalid") }
            return answers
        },
        Variant(name: "WebService over FoundationSession: data, one handler") { load in
            try await dataAndHandler(load, WebService(baseURLString: load.base))
        },
        Variant(name: "WebService over CurlSession: data, one handler", isSecure: true) { load in
            try await dataAndHandler(load, try curlService(load))
        },
        Variant(name: "WebService over CurlSession: response handler", isSecure: true) { load in
            let service = try curlService(load)
            return try await lanes(load) { done in
                service.GET(load.path)
                    .response { data, response in
                        done(check(load, (response as? HTTPURLResponse)?.statusCode, data?.count, nil))
                    }
                    .responseError { done($0) }
                    .resume()
            }
        },
        Variant(name: "WebService over CurlSession: await data", isSecure: true, isOnOneCore: true) { load in
            let service = try curlService(load)
            return try await awaiting(load) {
                check(load, 200, try await service.GET(load.path).data().value.count, nil)
            }
        },
        Variant(name: "WebService over CurlSession: await data, on its executor", isSecure: true, isOnOneCore: true) {
            load in
            let session = try curlSession(load)
            let service = WebService(baseURLString: load.base)
            service.session = session
            return try await Task(executorPreference: session.executor) {
                try await awaiting(load) {
                    check(load, 200, try await service.GET(load.path).data().value.count, nil)
                }
            }.value
        },
        Variant(name: "CurlSession alone: data task", isSecure: true) { load in
            let session = try curlSession(load)
            return try await lanes(load) { done in
                session.streamTask(
                    request: Request(.GET, url: load.url),
                    receiver: Counter { status, count, error in
                        DispatchQueue.global().async { done(error ?? check(load, status, count, nil)) }
                    }
                ).resume()
            }
        },
    ]

    private static func curlService(_ load: Load) throws -> WebService {
        let service = WebService(baseURLString: load.base)
        service.session = try curlSession(load)
        return service
    }

    private static func curlSession(_ load: Load) throws -> CurlSession {
        var configuration = CurlSession.Configuration()
        configuration.tls.trustedCertificatesFile = load.trusted
        configuration.httpVersion = load.isHTTP2 ? .negotiated : .http1
        return try CurlSession(configuration: configuration)
    }

    private static func dataAndHandler(_ load: Load, _ service: WebService) async throws -> Int {
        try await lanes(load) { done in
            service.GET(load.path).data().onCompletion { result in
                switch result {
                case .success(let data): done(check(load, 200, data.count, nil))  // any other status is an error
                case .failure(let error): done(error)
                }
            }.resume()
        }
    }
}

private func check(_ load: Load, _ status: Int?, _ length: Int?, _ error: (any Error)?) -> (any Error)? {
    if let error { return error }
    if status == 200, length == load.length { return nil }
    return WrongAnswer(description: "status \(status ?? 0), \(length ?? 0) bytes")
}

// MARK: - Keeping requests in flight

/// For clients with callbacks: each response starts the next request of its lane, on the same
/// thread.
private func lanes(
    _ load: Load, _ start: @escaping @Sendable (_ done: @escaping @Sendable ((any Error)?) -> Void) -> Void
) async throws -> Int {
    try await withCheckedThrowingContinuation { continuation in
        let lanes = Lanes(load, start) { continuation.resume(with: $0) }
        for _ in 0..<load.inFlight { lanes.next() }
    }
}

private final class Lanes: Sendable {
    private struct State {
        var answers = 0
        var open: Int
        var error: (any Error)?
    }

    private let state: Mutex<State>
    private let end: ContinuousClock.Instant
    private let start: @Sendable (@escaping @Sendable ((any Error)?) -> Void) -> Void
    private let finish: @Sendable (Result<Int, any Error>) -> Void

    init(
        _ load: Load, _ start: @escaping @Sendable (@escaping @Sendable ((any Error)?) -> Void) -> Void,
        _ finish: @escaping @Sendable (Result<Int, any Error>) -> Void
    ) {
        state = Mutex(State(open: load.inFlight))
        end = .now + .seconds(load.seconds)
        self.start = start
        self.finish = finish
    }

    func next() {
        start { [self] error in
            let goesOn = ContinuousClock.now < end
            let (isOver, result) = state.withLock { state -> (Bool, Result<Int, any Error>?) in
                if let error { state.error = error } else { state.answers += 1 }
                if goesOn, state.error == nil { return (false, nil) }
                state.open -= 1
                return (true, state.open == 0 ? state.error.map { .failure($0) } ?? .success(state.answers) : nil)
            }
            if let result { finish(result) } else if !isOver { next() }
        }
    }
}

/// For clients with async functions: one Swift task per lane.
private func awaiting(_ load: Load, _ send: @escaping @Sendable () async throws -> (any Error)?) async throws -> Int {
    let end = ContinuousClock.now + .seconds(load.seconds)
    return try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<load.inFlight {
            group.addTask {
                var answers = 0
                while ContinuousClock.now < end {
                    if let error = try await send() { throw error }
                    answers += 1
                }
                return answers
            }
        }
        return try await group.reduce(0, +)
    }
}

/// Counts the bytes of a response.
private final class Counter: BodyReceiver {
    private let state = Mutex((status: 0, count: 0))
    private let completion: @Sendable (_ status: Int, _ count: Int, _ error: (any Error)?) -> Void

    init(_ completion: @escaping @Sendable (_ status: Int, _ count: Int, _ error: (any Error)?) -> Void) {
        self.completion = completion
    }

    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) {
        state.withLock { $0.status = head.status }
    }

    func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand {
        state.withLock { $0.count += bytes.count }
        return .more
    }

    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        let (status, count) = state.withLock { $0 }
        if case .failure(let error) = result { return completion(status, count, error) }
        completion(status, count, nil)
    }
}
