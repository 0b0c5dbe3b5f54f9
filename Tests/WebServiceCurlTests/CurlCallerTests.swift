import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

/// Requests that the thread of their caller sends.
@Suite(
    "Curl session: requests sent by callers", .permit,
    .enabled(if: ccurl_only_sends_when_paused() != 0, "needs libcurl 7.88 to 8.6, or 8.16 or newer"))
struct CurlCallerTests {
    private static var threadNumber: UInt { UInt(bitPattern: pthread_self().hashValue) }

    /// A receiver that records the threads of its callbacks and the number of its results.
    private final class Receiver: BodyReceiver {
        let threads = Collected<UInt>()
        let results = Collected<Result<Headers, any Error>>()
        let mayPause: Bool

        init(mayPause: Bool = false) { self.mayPause = mayPause }

        func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) {
            threads.add(CurlCallerTests.threadNumber)
        }

        func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand {
            threads.add(CurlCallerTests.threadNumber)
            return .more
        }

        func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
            threads.add(CurlCallerTests.threadNumber)
            results.add(result)
        }
    }

    private let server: MockServer
    private let session: CurlSession
    private let service: WebService
    private var loop: CurlLoop { session.nextLoop() }
    /// The number of requests that callers' threads have sent.
    private var sentByCallers: Int { loop.turn.inspect { $0?.callersRequestCount ?? 0 } }

    init() throws {
        server = try MockServer.forTest { request in
            switch request.path {
            case "/silent": MockResponse("", wire: .noResponse)
            case "/last": MockResponse("beer", wire: .cut(after: .max))
            default: MockResponse("beer")
            }
        }
        session = try CurlSession()
        service = WebService(server, session)
    }

    /// Waits until the loop sleeps with an idle connection.
    private func settle() async throws {
        _ = try await service.GET("/").string().value
        await opening(of: loop)
    }

    /// Waits until callers can take the turn of a loop. The loop opens the turn before it passes it
    /// on, so this is inspected with the turn.
    private func opening(of loop: CurlLoop) async {
        await eventually { loop.turn.inspect { _ in loop.turn.isOpenToCallers } }
    }

    private func resume(_ request: Request, _ receiver: Receiver = Receiver()) -> Receiver {
        session.streamTask(request: request, receiver: receiver).resume()
        return receiver
    }

    private func get(_ path: String = "/") -> Request { Request(.GET, url: server.baseURLString + path) }

    @Test("The first request is sent by the loop")
    func first() async throws {
        await resume(get()).results.wait()
        #expect(sentByCallers == 0)
    }

    @Test("With an idle connection, a request is sent by its caller and received by the loop")
    func idle() async throws {
        for count in 1...50 {
            try await settle()
            let before = sentByCallers
            let receiver = Receiver()
            let caller = await Task(executorPreference: HandlerPool.shared) {
                _ = resume(get(), receiver)
                let isSent = sentByCallers == before + 1
                return (thread: Self.threadNumber, isSent: isSent)
            }.value
            let result = await receiver.results.wait().first
            #expect(try result?.get() == [:])
            #expect(caller.isSent, "round \(count)")
            #expect(!receiver.threads.values.contains(caller.thread))
        }
        #expect(server.connectionCount == 1)
    }

    @Test("The main thread sends a request in the same way")
    @MainActor func mainThread() async throws {
        try await settle()
        let before = sentByCallers
        let receiver = resume(get())
        #expect(sentByCallers == before + 1)
        #expect(try await receiver.results.wait().first?.get() == [:])
    }

    @Test("A small body is sent by the caller")
    func body() async throws {
        try await settle()
        let before = sentByCallers
        var request = Request(.POST, url: server.baseURLString + "/")
        request.body = Data(repeating: 7, count: 8 << 10)
        #expect(try await resume(request).results.wait().first?.get() == [:])
        #expect(sentByCallers == before + 1)
        #expect(server.receivedRequests.last?.body == Data(repeating: 7, count: 8 << 10))
    }

    /// Beside a libcurl with its own OpenSSL, that of the system may not load.
    private static let hasTLS: Bool = {
        guard let server = try? MockServer(tls: true) else { return false }  // the reason does not matter
        server.stop()
        return true
    }()

    @Test(
        "Over TLS, a request is sent by its caller, and a connection that the server has closed is replaced",
        .enabled(if: hasTLS, "OpenSSL cannot be loaded"))
    func secure() async throws {
        let server = try MockServer(tls: true)
        Permit.atEnd { server.stop() }
        server.on(.GET, "/", .text("beer"))
        var closing = MockResponse("beer")
        closing.wire = .cut(after: .max)
        server.on(.GET, "/last", closing)
        let session = try CurlSession {
            $0.tls.trustedCertificatesFile = server.certificateFile?.path
            $0.httpVersion = .http1
        }
        let service = WebService(server, session)
        var sent = 0
        for _ in 0..<20 {
            #expect(try await service.GET("/").string().value == "beer")
            await opening(of: session.nextLoop())
            #expect(try await service.GET("/").string().value == "beer")
            sent = session.nextLoop().turn.inspect { $0?.callersRequestCount ?? 0 }
            #expect(try await service.GET("/last").string().value == "beer")
        }
        #expect(sent > 0)
    }

    @Test("With another request in flight, a request is sent by the loop")
    func inFlight() async throws {
        try await settle()
        let silent = service.GET("/silent").string().resume()
        await eventually { server.receivedRequests.last?.path == "/silent" }
        let before = sentByCallers
        #expect(try await resume(get()).results.wait().first?.get() == [:])
        #expect(sentByCallers == before)
        silent.cancel()
    }

    @Test("After requests that overlapped, the next one is sent by the loop, and the one after it by its caller")
    func overlap() async throws {
        try await settle()
        let silent = service.GET("/silent").string().resume()
        await eventually { server.receivedRequests.last?.path == "/silent" }
        _ = try await service.GET("/").string().value
        silent.cancel()
        await session.settle()
        let before = sentByCallers
        _ = try await service.GET("/").string().value
        #expect(sentByCallers == before)
        await opening(of: loop)
        _ = try await service.GET("/").string().value
        #expect(sentByCallers == before + 1)
    }

    @Test("A large body, a stream and a response that may pause are left to the loop")
    func large() async throws {
        try await settle()
        let before = sentByCallers
        var large = Request(.POST, url: server.baseURLString + "/")
        large.body = Data(count: (8 << 10) + 1)
        #expect(try await resume(large).results.wait().first?.get() == [:])
        try await settle()
        #expect(try await resume(get(), Receiver(mayPause: true)).results.wait().first?.get() == [:])
        try await settle()
        // The requests of `settle()` may be sent by callers.
        #expect(sentByCallers <= before + 2)
    }

    @Test("Another host without a connection is left to the loop")
    func otherHost() async throws {
        try await settle()
        let before = sentByCallers
        let other = try MockServer.forTest { _ in MockResponse("ale") }
        #expect(try await resume(Request(.GET, url: other.baseURLString + "/")).results.wait().first?.get() == [:])
        #expect(sentByCallers == before)
    }

    @Test("If the server closes the idle connection, the next request succeeds over another one")
    func closed() async throws {
        for _ in 0..<30 {
            #expect(try await service.GET("/last").string().value == "beer")
            #expect(try await resume(get()).results.wait().first?.get() == [:])
        }
    }

    @Test("A caller opens no connection: the loop begins the exchange again")
    func refusedConnection() async throws {
        try await settle()
        // With another local address, libcurl cannot use the open connection.
        let before = sentByCallers
        loop.turn.inspect { engine in
            for handle in engine?.free ?? [] { ccurl_set_string(handle.easy, CURLOPT_INTERFACE, "127.0.0.1") }
        }
        #expect(try await resume(get()).results.wait().first?.get() == [:])
        #expect(sentByCallers == before)
        #expect(server.connectionCount == 2)
    }

    @Test("A request that is cancelled by another thread ends once")
    func cancellation() async throws {
        for _ in 0..<100 {
            try await settle()
            let receiver = Receiver()
            let task = session.streamTask(request: get(), receiver: receiver)
            await withTaskGroup { group in
                group.addTask { task.resume() }
                group.addTask { task.cancel() }
            }
            await receiver.results.wait()
            await session.settle()
            #expect(receiver.results.values.count == 1)
        }
        #expect(try await service.GET("/").string().value == "beer")
    }

    @Test("Requests that a hundred threads resume at once complete")
    func threads() async throws {
        try await settle()
        let receivers = (0..<100).map { _ in Receiver() }
        let tasks = receivers.map { session.streamTask(request: get(), receiver: $0) }
        let gate = DispatchSemaphore(value: 0)
        for task in tasks {
            Thread.detachNewThread {
                gate.wait()
                task.resume()
            }
        }
        for _ in tasks { gate.signal() }
        for receiver in receivers { #expect(try await receiver.results.wait().first?.get() == [:]) }
    }

    @Test(
        "Requests that are resumed while the session is closed end once",
        arguments: [CurlSession.Closing.finishing, .cancelling])
    func closing(_ closing: CurlSession.Closing) async throws {
        for _ in 0..<20 {
            let session = try CurlSession()
            let service = WebService(server, session)
            _ = try await service.GET("/").string().value
            let results = await withTaskGroup(of: Result<String, any Error>.self) { group in
                group.addTask {
                    var last = Result<String, any Error>.success("beer")
                    while case .success("beer") = last { last = await service.GET("/").string().result }
                    return last
                }
                _ = try? await service.GET("/").string().value
                session.close(closing)
                return await group.reduce(into: []) { $0.append($1) }
            }
            let isClosed = results.map { $0.code == .sessionClosed || $0.urlErrorCode == .cancelled }
            #expect(isClosed == [true])
        }
    }

    @Test("Tasks resumed by one thread are sent in that order")
    func order() async throws {
        for _ in 0..<20 {
            try await settle()
            let paths = (0..<4).map { "/\($0)" }
            let server = try MockServer.forTest { _ in MockResponse("beer") }
            let session = try CurlSession { $0.maximumConnectionsPerHost = 1 }
            let service = WebService(server, session)
            _ = try await service.GET("/").string().value
            let tasks = paths.map { service.GET($0).string().resume() }
            for task in tasks { #expect(try await task.value == "beer") }
            #expect(server.receivedRequests.dropFirst().map(\.path) == paths)
        }
    }

    @Test("While another request is in flight, and after requests that overlapped, the loop sends")
    func twoConnections() async throws {
        let gate = ThreadSignal()
        let server = try MockServer.forTest { request in
            if request.path == "/held" { _ = gate.wait(milliseconds: 120_000) }
            return MockResponse("beer")
        }
        let (held, other) = (
            Request(.GET, url: server.baseURLString + "/held"), Request(.GET, url: server.baseURLString + "/")
        )
        // Two requests overlap, so there are two connections.
        await resume(other).results.wait()
        await opening(of: loop)
        let first = resume(held)
        #expect(sentByCallers == 1)
        await eventually { server.receivedRequests.count == 2 }
        await resume(other).results.wait()
        #expect(sentByCallers == 1)
        gate.signal()
        await first.results.wait()
        await eventually { loop.turn.inspect { $0?.busy.isEmpty == true } }
        let second = resume(held)
        #expect(sentByCallers == 1)
        await eventually { server.receivedRequests.count == 4 }
        await eventually { loop.turn.inspect { $0?.busy.count == 1 } }
        await resume(other).results.wait()
        #expect(sentByCallers == 1)
        gate.signal()
        await second.results.wait()
        // After a request that a caller has sent, the turn is closed.
        await resume(other).results.wait()
        await opening(of: loop)
        let third = resume(held)
        #expect(sentByCallers == 2)
        await resume(other).results.wait()
        #expect(sentByCallers == 2)
        gate.signal()
        await third.results.wait()
        #expect(server.connectionCount == 2)
    }

    @Test("The timeout of a request that a caller has sent ends it while the loop sleeps")
    func timeout() async throws {
        try await settle()
        let before = sentByCallers
        var request = get("/silent")
        request.options.timeout = .milliseconds(300)
        let start = ContinuousClock.now
        let receiver = resume(request)
        #expect(sentByCallers == before + 1)
        let result = await receiver.results.wait().first
        #expect(result?.urlErrorCode == .timedOut)
        #expect(start.duration(to: .now) < .seconds(30))
    }

    @Test("resume() takes little processor time")
    func bound() async throws {
        var times: [Double] = []
        for _ in 0..<100 {
            try await settle()
            let receiver = Receiver()
            let task = session.streamTask(request: get(), receiver: receiver)
            times.append(processorTime { task.resume() })
            await receiver.results.wait()
        }
        times.sort()
        let slowdown = isSanitized ? 10.0 : 1
        #expect(times[50] < 0.001 * slowdown)
        #expect(times[99] < 0.02 * slowdown)
    }
}
