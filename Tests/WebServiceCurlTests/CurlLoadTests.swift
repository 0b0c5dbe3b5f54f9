import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

@Suite("Curl session: load", .exclusive(minutes: 60))
struct CurlLoadTests {
    /// `WEBSERVICE_SOAK=1` runs the full length.

    @Test(
        "Requests with random cancellations and 20% faults complete once each, and resources are released"
    )
    func soak() async throws {
        let session = try CurlSession { $0.maximumConnectionsPerHost = 16 }
        let total = isSanitized ? 1_000 : amount(1_000, thorough: 4_000, soak: 100_000)
        let (descriptors, threads) = (Resources.descriptors, Resources.threads)
        let tally = Box(Tally())
        var memory = 0
        for wave in 0..<20 {
            let count = total / 20
            let server = try Self.faultyServer()  // a new server per wave, because it records its requests
            let service = WebService(server, session)
            await withCheckedContinuation { continuation in
                let left = Box(count)
                for number in 0..<count {
                    let completions = Box(0)
                    let task = service.GET("/").setQueryParameters(["n": number]).data()
                    task.onCompletion { result in
                        completions.change { $0 += 1 }
                        let isRight = result.isRight(number)
                        let isFirst = completions.value == 1
                        tally.change { $0.count(result.urlErrorCode, isRight: isRight && isFirst) }
                        if left.countDown() { continuation.resume() }
                    }
                    task.resume()
                    if number % 7 == 3 { DispatchQueue.global().async { task.cancel() } }
                }
            }
            server.stop()
            if wave == 4 { memory = Resources.residentMemory }
        }
        let result = tally.value
        #expect(result.answers + result.failures + result.cancelled == total / 20 * 20)
        #expect(result.wrong == 0)
        #expect(result.failures > total / 10)
        #expect(result.cancelled > 0)
        #expect(result.answers > total / 2)
        if memory > 0, isSoak { #expect(Resources.residentMemory < memory + 24 << 20) }
        session.close()
        await eventually("descriptors and threads are released") {
            Resources.descriptors <= descriptors + 4 && Resources.threads <= threads + 8
        }
    }

    private static func faultyServer() throws -> MockServer {
        try MockServer { request in
            var response = MockResponse(request.query ?? "")
            switch Int(request.query?.dropFirst(2) ?? "").map({ $0 % 25 }) {
            case 0: response.wire = .disconnect
            case 1: response.wire = .reset(after: 10)
            case 2: response.wire = .cut(after: 30)
            case 3: response.wire = .raw(Data("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".utf8))
            case 4: response.wire = .raw(Data(faults[(request.number ?? 0) / 25 % faults.count].utf8))
            default: break
            }
            return response
        }
    }

    /// Byte sequences that are not responses, or are incomplete.
    private static let faults = [
        "garbage\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\n X: folded\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 103 Early\r\n\r\n", "<html></html>", "",
    ]

    struct Tally {
        var answers = 0
        var failures = 0
        var cancelled = 0
        var wrong = 0

        mutating func count(_ code: URLError.Code?, isRight: Bool) {
            if code == .cancelled { cancelled += 1 } else if code != nil { failures += 1 } else { answers += 1 }
            if !isRight { wrong += 1 }
        }
    }

    @Test("10,000 simultaneous requests are queued over few connections and threads")
    func queued() async throws {
        let server = try MockServer.forTest { MockResponse($0.query ?? "") }
        let session = try CurlSession { $0.maximumConnectionsPerHost = 8 }
        let service = WebService(server, session)
        let (before, threads) = (Resources.descriptors, Resources.threads)
        let (most, mostThreads) = (Box(0), Box(0))
        let wrong = await withTaskGroup(of: Int.self) { group in
            for number in 0..<10_000 {
                group.addTask {
                    let text = try? await service.GET("/").setQueryParameters(["n": number]).string().value
                    if number.isMultiple(of: 500) {
                        most.change { $0 = max($0, Resources.descriptors) }
                        mostThreads.change { $0 = max($0, Resources.threads) }
                    }
                    return text == "n=\(number)" ? 0 : 1
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
        #expect(server.connectionCount <= 8)
        // Both ends of each connection are in this process.
        if before > 0 { #expect(most.value < before + 40) }
        // Each of eight server connections has a thread, and so do the pools of Swift and Dispatch,
        // which may still have threads of earlier tests.
        if threads > 0 { #expect(mostThreads.value <= threads + 48) }
    }

    @Test(
        "Sessions closed at random, with requests cancelled at random, complete each request once"
    )
    func closedAtRandom() async throws {
        let server = try MockServer.forTest { request in
            var response = MockResponse(request.query ?? "")
            if let number = request.number, number.isMultiple(of: 5) { response.wire = .noResponse }
            return response
        }
        let (descriptors, threads) = (Resources.descriptors, Resources.threads)
        var random = SystemRandomNumberGenerator()
        for round in 0..<(isSanitized ? 20 : amount(15, thorough: 60, soak: 2_000)) {
            let session = try CurlSession {
                $0.loops = 1 + round % 3
                $0.maximumConnectionsPerHost = 1 + round % 8
            }
            let completions = Box([Int](repeating: 0, count: 40))
            let wrong = Box(0)
            let tasks = (0..<40).map { number in
                session.responseTask(request: Request(.GET, url: server.baseURLString + "/?n=\(number)"), progress: nil)
                { result, _ in
                    completions.change { $0[number] += 1 }
                    let isRight: Bool
                    switch result {
                    case .success(let response): isRight = response.data == Data("n=\(number)".utf8)
                    case .failure: isRight = result.urlErrorCode == .cancelled || result.code == .sessionClosed
                    }
                    if !isRight { wrong.change { $0 += 1 } }
                }
            }
            let closing: CurlSession.Closing = round.isMultiple(of: 2) ? .cancelling : .finishing
            let closingIndex = Int.random(in: 0..<40, using: &random)
            for (number, task) in tasks.enumerated() {
                if number == closingIndex { DispatchQueue.global().async { session.close(closing) } }
                task.resume()
                if Bool.random(using: &random) { DispatchQueue.global().async { task.cancel() } }
            }
            // Requests without a response end when they are cancelled or the session is closed.
            if closing == .finishing { for task in tasks { task.cancel() } }
            session.close(.cancelling)
            await eventually("every request completes") { completions.value.allSatisfy { $0 >= 1 } }
            #expect(completions.value.allSatisfy { $0 == 1 })
            #expect(wrong.value == 0)
        }
        server.stop()
        await eventually("descriptors and threads are released") {
            Resources.descriptors <= descriptors + 4 && Resources.threads <= threads + 8
        }
    }

    @Test("Persistent connections need no additional threads")
    func idle() async throws {
        let server = try MockServer.forTest { MockResponse($0.query ?? "") }
        let count = isSoak ? 1_000 : 200
        let session = try CurlSession {
            $0.maximumConnectionsPerHost = count
            $0.maximumConnections = count
            $0.maximumIdleConnections = count
        }
        let service = WebService(server, session)
        let (threads, connections) = (Resources.threads, server.connectionCount)
        for _ in 0..<2 {
            let statuses = await withTaskGroup(of: Int.self) { group in
                for number in 0..<count {
                    group.addTask {
                        await (try? service.GET("/").setQueryParameters(["n": number]).string().value) == "n=\(number)"
                            ? 1 : 0
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(statuses == count)
        }
        #expect(server.connectionCount <= count)
        // The server has a thread per connection. The others belong to the pools of Swift and
        // Dispatch.
        if threads > 0 { #expect(Resources.threads - (server.connectionCount - connections) <= threads + 64) }
    }
}

extension ReceivedRequest {
    /// The number in the query.
    fileprivate var number: Int? { query.flatMap { Int($0.dropFirst(2)) } }
}

extension Box<Int> {
    /// - Returns: Whether the count is now zero.
    fileprivate func countDown() -> Bool {
        withValue { value in
            value -= 1
            return value == 0
        }
    }
}

extension Result<Data, any Error> {
    /// Returns whether the result is an error or the response to this request.
    fileprivate func isRight(_ number: Int) -> Bool {
        guard case .success(let data) = self else { return true }
        return String(decoding: data, as: UTF8.self) == "n=\(number)"
    }
}
