import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A check that needs a separate process and is not a scenario.
///
/// The probes cover platform defects that no scenario covers, long runs that a platform defect may
/// crash, and runs in a restricted environment.
struct Probe: Sendable {
    enum Outcome: Int32, Sendable {
        /// The guarantee holds, or a platform defect no longer exists.
        case holds = 0
        case broken = 1
        /// The environment lacks something that the probe needs.
        case impossible = 3
    }

    let name: String
    let run: @Sendable () async throws -> Outcome

    static let all: [Probe] = [
        Probe(name: "a task that is suspended and cancelled completes") { try await suspendAndCancel() },
        Probe(name: "a task of an invalidated session completes with an error") { try await invalidatedSession() },
        Probe(name: "timeoutIntervalForResource ends an exchange") { try await resourceTimeout() },
        Probe(name: "FoundationSession: bytes on an idle connection are not the next response") {
            try await idleBytes(FoundationSession.shared)
        },
        Probe(name: "URLSession: bytes on an idle connection are not the next response") {
            try await idleBytes(URLSession(configuration: FoundationSession.defaultConfiguration))
        },
        Probe(name: "a URL with an IPv6 address is requested") { try await addressOfVersion6() },
        Probe(name: "cancel ends a body that arrives without a pause") { try await endlessBody() },
        Probe(name: "a body that arrives without a pause does not block other sessions") {
            try await floodAndAnotherSession()
        },
        Probe(name: "a flood: every task ends in time, resume() does not block, and memory is bounded") {
            try await flood()
        },
        Probe(name: "sessions are deallocated while tasks that timed out are being cancelled") {
            try await timeoutsAndRelease()
        },
        Probe(name: "random cancels and sessions that are deallocated") { try await cancelAndRelease() },
        Probe(name: "requests and their responses") { try await oneExchange() },
        Probe(name: "no network") { try await withoutNetwork() },
        Probe(name: "a server on ::1 only, by name") { try await onlyVersion6() },
        Probe(name: "a server with TLS") { try await trust() },
    ]

    // MARK: Platform defects

    private static func suspendAndCancel() async throws -> Outcome {
        let server = try RawServer { $0.waitForEnd() }
        let session = URLSession(configuration: .ephemeral)  // with a cache, which is checked first
        guard let url = URL(string: "http://127.0.0.1:\(server.port)/") else { return .impossible }
        let completions = Counter()
        for _ in 0..<300 {
            let task = session.dataTask(with: url) { _, _, _ in completions.add() }
            task.resume()
            task.suspend()
            task.cancel()
        }
        return await completions.reaches(300, within: .seconds(20)) ? .holds : .broken
    }

    private static func invalidatedSession() async throws -> Outcome {
        let session = URLSession(configuration: FoundationSession.defaultConfiguration)
        guard let url = URL(string: "http://127.0.0.1:1/") else { return .impossible }
        session.invalidateAndCancel()
        let completions = Counter()
        session.dataTask(with: url) { _, _, _ in completions.add() }.resume()
        return await completions.reaches(1, within: .seconds(3)) ? .holds : .broken
    }

    /// Receives a body in 2.5 seconds, in parts 0.1 seconds apart, with a limit of 1 second.
    private static func resourceTimeout() async throws -> Outcome {
        let server = try MockServer { _ in
            var response = MockResponse(statusCode: 200, data: Data(repeating: 65, count: 50))
            response.wire = .drip(size: 5, pause: .milliseconds(100))
            return response
        }
        defer { server.stop() }
        let configuration = FoundationSession.defaultConfiguration
        configuration.timeoutIntervalForResource = 1
        let completions = Counter()
        let errors = Counter()
        URLSession(configuration: configuration).dataTask(with: server.baseURL) { _, _, error in
            if error != nil { errors.add() }
            completions.add()
        }.resume()
        guard await completions.reaches(1, within: .seconds(20)) else { return .broken }
        return errors.count == 1 ? .holds : .broken
    }

    /// A response without a request, on an idle connection (RFC 9112, section 6.3, item 8).
    private static func idleBytes(_ session: any Session) async throws -> Outcome {
        let received = Counter()
        let sent = Counter()
        let server = try RawServer { connection in
            while let target = connection.readHead() {
                connection.send(response("right \(target)"))
                let count = sent.count + 1
                guard received.waits(for: count, within: .seconds(5)) else { return }
                connection.send(response("wrong"))
                sent.add()
            }
        }
        let service = WebService(baseURLString: "http://127.0.0.1:\(server.port)")
        service.session = session
        for (number, target) in ["/a", "/b", "/c"].enumerated() {
            let text = try await service.GET(target).setTimeout(.seconds(5)).string().value
            tell("\(target): \(text)")
            if text != "right \(target)" { return .broken }
            received.add()
            guard await sent.reaches(number + 1, within: .seconds(5)) else { return .broken }
        }
        return .holds
    }

    private static func addressOfVersion6() async throws -> Outcome {
        guard
            let server = try? RawServer(  // without IPv6
                isIPv6: true, serve: { if $0.readHead() != nil { $0.send(response("six")) } })
        else { return .impossible }
        let service = WebService(baseURLString: "http://[::1]:\(server.port)")
        service.session = URLSession(configuration: FoundationSession.defaultConfiguration)
        let result = await service.GET("/").setTimeout(.seconds(5)).string().result
        tell("\(result)")
        return (try? result.get()) == "six" ? .holds : .broken  // the error is in the output
    }

    /// A server that sends endless chunks of one byte to `/endless` and responds to other requests.
    private static func floodingServer() throws -> RawServer {
        try RawServer { connection in
            guard let target = connection.readHead() else { return }
            guard target.hasPrefix("/endless") else {
                connection.send(response("next"))
                return connection.waitForEnd()
            }
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunks = String(repeating: "1\r\na\r\n", count: 20_000)
            while connection.send(chunks) {}
        }
    }

    private static func endlessBody() async throws -> Outcome {
        let server = try floodingServer()
        let session = URLSession(configuration: FoundationSession.defaultConfiguration)
        guard let url = URL(string: "http://127.0.0.1:\(server.port)/endless") else { return .impossible }
        let completions = Counter()
        let task = session.dataTask(with: url) { _, _, _ in completions.add() }
        task.resume()
        _ = await completions.reaches(1, within: .seconds(1))
        Thread.detachNewThread { task.cancel() }
        return await completions.reaches(1, within: .seconds(3)) ? .holds : .broken
    }

    private static func floodAndAnotherSession() async throws -> Outcome {
        let server = try floodingServer()
        let base = URL(string: "http://127.0.0.1:\(server.port)/")
        guard let endless = base?.appendingPathComponent("endless"), let next = base?.appendingPathComponent("next")
        else { return .impossible }
        let completions = Counter()
        URLSession(configuration: FoundationSession.defaultConfiguration).dataTask(with: endless).resume()
        _ = await completions.reaches(1, within: .seconds(1))
        Thread.detachNewThread {
            URLSession(configuration: FoundationSession.defaultConfiguration).dataTask(with: next) { _, _, _ in
                completions.add()
            }.resume()
        }
        return await completions.reaches(1, within: .seconds(3)) ? .holds : .broken
    }

    // MARK: FoundationSession

    private static func flood() async throws -> Outcome {
        let server = try floodingServer()
        let service = WebService(baseURLString: "http://127.0.0.1:\(server.port)")
        service.session = FoundationSession()
        let flooded = service.GET("/endless").setDeadline(.milliseconds(500)).data()
        guard case .failure(let error) = await flooded.result else { return .broken }
        tell("the endless body: \((error as? WebServiceError)?.code.description ?? "\(error)")")
        let before = residentBytes()
        for _ in 0..<3 {
            let sent = ContinuousClock.now
            let task = service.GET("/next").setDeadline(.milliseconds(500)).string()
            task.resume()
            let resumed = sent.duration(to: .now)
            let result = await task.result
            let elapsed = sent.duration(to: .now)
            tell("the next request: \(result), resumed in \(resumed), ended after \(elapsed)")
            // Other processes can delay this one.
            let isThorough = ProcessInfo.processInfo.environment["WEBSERVICE_THOROUGH"] == "1"
            guard resumed < (isThorough ? .milliseconds(500) : .seconds(30)),
                elapsed < .seconds(isThorough ? 5 : 30)
            else { return .broken }
        }
        let isLong = ProcessInfo.processInfo.environment["WEBSERVICE_SOAK"] == "1"
        _ = await Counter().reaches(1, within: .seconds(isLong ? 5 : 2))
        let growth = residentBytes() - before
        tell("memory: \(growth / 1024) KiB more")
        // Foundation on Linux has no back-pressure: what arrives before it carries out the
        // cancellation waits in its queue, 5 to 20 MiB.
        return growth < 64 << 20 ? .holds : .broken
    }

    private static func timeoutsAndRelease() async throws -> Outcome {
        let server = try RawServer { connection in
            if connection.readHead() != nil { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc") }
            connection.waitForEnd()
        }
        let rounds = ProcessInfo.processInfo.environment["WEBSERVICE_SOAK"] == "1" ? 2_000 : 50
        let completions = Counter()
        for round in 1...rounds {
            let service = WebService(baseURLString: "http://127.0.0.1:\(server.port)")
            service.session = FoundationSession()
            for number in 0..<8 {
                service.GET("/\(number)").setTimeout(.milliseconds(number.isMultiple(of: 2) ? 2 : 20))
                    .responseError { _ in completions.add() }.resume()
            }
            guard await completions.reaches(8 * round, within: .seconds(30)) else { return .broken }
        }
        return .holds
    }

    private static func cancelAndRelease() async throws -> Outcome {
        let server = try MockServer { request in
            var response = MockResponse(statusCode: 200, data: Data(repeating: 66, count: 100))
            if request.target.hasSuffix("3") { response.wire = .stall(after: 60) }
            return response
        }
        defer { server.stop() }
        let rounds = ProcessInfo.processInfo.environment["WEBSERVICE_SOAK"] == "1" ? 2_000 : 30
        let completions = Counter()
        for round in 1...rounds {
            let service = WebService(baseURLString: server.baseURLString)
            service.session = FoundationSession()
            let tasks = (0..<10).map { number in
                service.GET("/\(number)").response { _, _ in completions.add() }
                    .responseError { _ in completions.add() }
            }
            for task in tasks { task.resume() }
            for (number, task) in tasks.enumerated() where number == 3 || Bool.random() { task.cancel() }
            guard await completions.reaches(10 * round, within: .seconds(30)) else { return .broken }
        }
        return .holds
    }

    /// Cookies, a cacheable response, a challenge and a multipart body.
    ///
    /// These are the features for which Foundation might write to a file.
    private static func oneExchange() async throws -> Outcome {
        let server = try MockServer { request in
            var response = MockResponse(statusCode: request.target == "/private" ? 401 : 200, data: Data("ale".utf8))
            response.headers["Set-Cookie"] = "sid=1; Path=/; Max-Age=1000"
            response.headers["Cache-Control"] = "max-age=1000"
            if request.target == "/private" { response.headers["WWW-Authenticate"] = "Basic realm=\"x\"" }
            return response
        }
        defer { server.stop() }
        let service = WebService(baseURLString: server.baseURLString)
        var form = MultipartFormData()
        form.append("x", name: "a")
        for _ in 0..<2 {
            guard try await service.GET("/").string().value == "ale" else { return .broken }
            guard await statusOf(service.GET("/private")) == 401 else { return .broken }
            guard await statusOf(service.POST("/form").setMultipart(form)) == 200 else { return .broken }
        }
        return .holds
    }

    private static func statusOf(_ task: SessionTask) async -> Int? {
        await withCheckedContinuation { continuation in
            task.response { _, response in continuation.resume(returning: (response as? HTTPURLResponse)?.statusCode) }
                .responseError { _ in continuation.resume(returning: nil) }
                .resume()
        }
    }

    private static func withoutNetwork() async throws -> Outcome {
        let service = WebService(baseURLString: "http://127.0.0.1:9/")
        let retry = RetryPolicy(maximumAttempts: 2, baseDelay: .milliseconds(1))
        for url in ["http://127.0.0.1:9/", "http://name.invalid/"] {
            let task = service.GET(url).intercepted(by: retry).setDeadline(.seconds(15)).data()
            guard case .failure(let error) = await task.result, let urlError = error as? URLError else {
                return .broken
            }
            let attempts = task.task.timeline.events.count { $0.kind == .attempt }
            tell("\(url): URLError \(urlError.code.rawValue), \(attempts) attempts")
            guard RetryPolicy.defaultErrorCodes.contains(urlError.code), attempts == 2 else { return .broken }
        }
        return .holds
    }

    private static func onlyVersion6() async throws -> Outcome {
        guard
            let server = try? RawServer(  // without IPv6
                isIPv6: true, serve: { if $0.readHead() != nil { $0.send(response("six")) } })
        else { return .impossible }
        for name in ["ip6-localhost", "localhost"] {
            let result = await WebService(baseURLString: "http://\(name):\(server.port)").GET("/").setTimeout(
                .seconds(5)
            )
            .string().result
            tell("\(name): \(result)")
            if case .success("six") = result { return .holds }
        }
        return .broken
    }

    // MARK: Support

    private static func response(_ body: String) -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static func residentBytes() -> Int {
        let status = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)  // 0 without the file
        return (status?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
    }
}

/// A counter that threads can wait for.
private final class Counter: Sendable {
    private let condition = NSCondition()
    private nonisolated(unsafe) var value = 0  // accessed only with the condition locked

    var count: Int {
        condition.lock()
        defer { condition.unlock() }
        return value
    }

    func add() {
        condition.lock()
        value += 1
        condition.broadcast()
        condition.unlock()
    }

    /// Blocks the thread until the count is reached or the duration has elapsed.
    func waits(for count: Int, within limit: Duration) -> Bool {
        let end = Date().addingTimeInterval(Double(limit.components.seconds))
        condition.lock()
        defer { condition.unlock() }
        while value < count, condition.wait(until: end) {}
        return value >= count
    }

    func reaches(_ count: Int, within limit: Duration) async -> Bool {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in continuation.resume(returning: waits(for: count, within: limit)) }
        }
    }
}
