import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

@Suite("ConnectivityWait", .permit)
struct ConnectivityWaitTests {
    private let clock = ManualTimekeeper()

    private func service(_ session: any Session, _ wait: ConnectivityWait) -> WebService {
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [wait]
        return service
    }

    private func code(of result: Result<Data, any Error>) -> URLError.Code? {
        if case .failure(let error) = result { (error as? URLError)?.code ?? .unknown } else { nil }
    }

    private func errorCode(_ body: () async throws -> Void) async -> URLError.Code? {
        do { try await body() } catch { return (error as? URLError)?.code }
        return nil
    }

    @Test(
        "A request waits until there is a network and is then sent again, with any method",
        arguments: [URLError.Code.cannotFindHost, .cannotConnectToHost, .notConnectedToInternet, .dnsLookupFailed])
    func waits(code: URLError.Code) async throws {
        let session = ScriptedSession([.error(code), .error(code), .status(200)])
        let answers = Mutex([false, false, true, false, true])
        let hosts = Collected<String>()
        let service = service(
            session,
            .init { host in
                hosts.add(host)
                return answers.withLock { $0.isEmpty ? true : $0.removeFirst() }
            })
        let task = service.POST("/x").setJSON(["a": 1]).data().resume()
        for (count, pause) in [(1, 250), (2, 500), (4, 250)] {
            await hosts.wait(for: count)
            await eventually { clock.pending == 2 }
            clock.advance(by: .milliseconds(pause))
        }
        #expect(try await task.response.status == 200)
        #expect(hosts.values == Array(repeating: "h", count: 5))
        #expect(session.sent.count == 3)
        #expect(session.sent.allSatisfy { $0.httpBody == Data(#"{"a":1}"#.utf8) })
        let waits = task.timeline.events.filter { $0.kind == .wait }
        #expect(waits.map(\.duration) == [.milliseconds(750), .milliseconds(250)])
        #expect(waits.map(\.detail) == ["for a network", "for a network"])
    }

    @Test("With a network, and for other errors, the error is delivered at once")
    func connected() async {
        let cases = [(URLError.Code.cannotFindHost, true), (.timedOut, false), (.networkConnectionLost, false)]
        for (code, isConnected) in cases {
            let session = ScriptedSession([.error(code)])
            let service = service(session, .init { _ in isConnected })
            #expect(await errorCode { _ = try await service.GET("/x").data().value } == code)
            #expect(session.sent.count == 1)
        }
    }

    @Test("The wait ends at its limit with the error, and immediately when the task is cancelled")
    func limit() async throws {
        let session = ScriptedSession([.error(.cannotFindHost)])
        let checks = Collected<String>()
        let service = service(
            session,
            .init(within: .seconds(2)) {
                checks.add($0)
                return false
            })
        let task = service.GET("/x").data().resume()
        for (count, pause) in [(1, 250), (2, 500), (3, 1_000)] {
            await checks.wait(for: count)
            await eventually { clock.pending == 2 }
            clock.advance(by: .milliseconds(pause))
        }
        #expect(await errorCode { _ = try await task.value } == .cannotFindHost)
        #expect(task.timeline.events.last { $0.kind == .noRetry }?.detail == "no network within 2.0 seconds")
        let cancelled = service.GET("/x").data().resume()
        await checks.wait(for: 5)
        cancelled.cancel()
        #expect(await cancelled.serviceResponse.isCanceled)
        await eventually { clock.pending == 0 }
    }

    @Test(
        "A request that may have been processed is not sent again, unless its method is idempotent or it has a key",
        arguments: [("POST", false, 2), ("GET", false, 4), ("PUT", false, 4), ("POST", true, 4)])
    func redirects(method: String, hasKey: Bool, count: Int) async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let isAlive = Mutex(false)
        mock.session.addStub { request in
            guard request.urlRequestValue.url?.host == "mock.test" else {
                return isAlive.withLock { $0 } ? MockResponse(statusCode: 200) : URLError(.cannotConnectToHost)
            }
            var response = MockResponse(statusCode: 303)
            response.headers["Location"] = "https://dead.test/"
            return response
        }
        let wait = ConnectivityWait { _ in
            isAlive.withLock { isAlive in
                defer { isAlive = true }
                return isAlive
            }
        }
        mock.service.interceptors = [wait]
        let task = mock.service.sessionTask(request: mock.service.request(.init(rawValue: method), path: "/orders"))
        if hasKey { task.setHeaderValue("7", forName: "Idempotency-Key") }
        let sent = task.data().resume()
        await clock.advance(by: .seconds(60))
        let result = await sent.result
        #expect(mock.receivedRequests.count == count)
        if count == 2 {
            #expect(code(of: result) == .cannotConnectToHost)
            #expect(
                sent.timeline.events.last { $0.kind == .noRetry }?.detail
                    == "no network, but POST is not idempotent, and was sent before")
        } else {
            #expect(code(of: result) == nil)
        }
    }

    @Test("After an earlier attempt that was sent, a POST does not wait")
    func attempts() async {
        let session = ScriptedSession([.status(503), .error(.cannotConnectToHost), .status(200)])
        let service = WebService.make(session, timekeeper: clock)
        let repeating: any Interceptor = .closure { request, next in
            _ = try await next(request)
            return try await next(request)
        }
        service.interceptors = [repeating, ConnectivityWait { _ in false }]
        #expect(await errorCode { _ = try await service.POST("/x").data().value } == .cannotConnectToHost)
        #expect(session.sent.count == 2)
    }

    @Test(
        "The limit applies to the whole exchange, and a deadline ends the wait with the transport error")
    func limits() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.session.addStub(URLError(.cannotFindHost))
        let wait = ConnectivityWait(within: .seconds(2)) { _ in false }
        mock.service.interceptors = [.retry(), wait]
        let limited = mock.service.GET("/").data().resume()
        await clock.advance(by: .seconds(60))
        #expect(code(of: await limited.result) == .cannotFindHost)
        #expect(mock.receivedRequests.count == 3)
        #expect(limited.timeline.events.last?.start ?? .zero < .seconds(4))
        mock.service.interceptors = [ConnectivityWait { _ in false }]
        let late = mock.service.GET("/").setDeadline(.seconds(1)).data().resume()
        await clock.advance(by: .seconds(60))
        #expect(code(of: await late.result) == .cannotFindHost)
        #expect(
            late.timeline.events.last { $0.kind == .noRetry }?.detail
                == "no network, and the deadline leaves no time for a pause of 1.0 seconds")
    }

    @Test("The routing table has a route to this device, and addresses are passed without brackets")
    func routes() async {
        #expect(NetworkRoute.exists(to: "127.0.0.1"))
        #expect(NetworkRoute.exists(to: "localhost"))
        let hosts = Collected<String>()
        let service = service(
            ScriptedSession([.error(.cannotConnectToHost)]),
            .init {
                hosts.add($0)
                return true
            })
        for url in ["http://[::1]:9/x", "http://127.0.0.1/x"] {
            #expect(await errorCode { _ = try await service.GET(url).data().value } == .cannotConnectToHost)
        }
        #expect(hosts.values == ["::1", "127.0.0.1"])
    }

    @Test("The dot syntax uses the routing table, so a refused connection to this device does not wait")
    func dotSyntax() async throws {
        let service = WebService.make(ScriptedSession([.error(.cannotConnectToHost)]), timekeeper: clock)
        service.interceptors = [.waitForConnectivity(within: .seconds(3))]
        let code = await errorCode { _ = try await service.GET("http://127.0.0.1/x").data().value }
        #expect(code == .cannotConnectToHost)
        #expect((service.interceptors.last as? ConnectivityWait)?.limit == .seconds(3))
    }
}
