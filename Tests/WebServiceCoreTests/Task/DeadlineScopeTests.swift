import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceCore

@Suite("Deadlines of scopes and timeouts of attempts", .permit)
struct DeadlineScopeTests {
    private let clock = ManualTimekeeper()
    private let session = HandSession()
    private let service: WebService

    init() {
        service = WebService.make(session, timekeeper: clock)
    }

    private func isDeadline(_ result: Result<some Sendable, any Error>) -> Bool {
        guard case .failure(let error as WebServiceError) = result else { return false }
        return error.code == .deadline
    }

    @Test("The deadline of a scope ends the tasks that are resumed in it, and no others")
    func scope() async throws {
        let before = service.GET("/before").string().resume()
        await session.exchanges.wait(for: 1)
        let (inside, later) = await service.withDeadline(.seconds(5)) {
            let inside = service.GET("/inside").string().resume()
            return (inside, Task { await service.GET("/child").string().result })
        }
        let after = service.GET("/after").string().resume()
        let exchanges = await session.exchanges.wait(for: 4)
        clock.advance(by: .milliseconds(4_900))
        #expect(inside.task.state == .running)
        clock.advance(by: .milliseconds(100))
        #expect(isDeadline(await inside.result))
        #expect(isDeadline(await later.value))
        for exchange in exchanges { exchange.respond("late") }
        #expect(try await before.value == "late")
        #expect(try await after.value == "late")
        #expect(exchanges.filter { $0.log.contains("cancel") }.count == 2)
    }

    @Test(
        "An inner scope and the deadline of a request can only shorten the duration",
        arguments: [
            (5.0, nil as Double?, nil as Double?, 5.0), (5, 3, nil, 3), (5, 9, nil, 5), (5, nil, 2, 2), (5, nil, 9, 5),
            (5, 4, 3, 3), (9_999, nil, nil, 600), (9_999, nil, 9_000, 9_000),
        ])
    func shortest(outer: Double, inner: Double?, own: Double?, expected: Double) async throws {
        let task = service.GET("/x")
        if let own { task.setDeadline(.seconds(own)) }
        await service.withDeadline(.seconds(outer)) {
            if let inner {
                await service.withDeadline(.seconds(inner)) { _ = task.resume() }
            } else {
                task.resume()
            }
        }
        await session.exchanges.wait()
        clock.advance(by: .seconds(expected) - .milliseconds(1))
        #expect(task.state == .running)
        clock.advance(by: .milliseconds(1))
        let error = await #expect(throws: WebServiceError.self) { try await task.data().value }
        #expect(error?.code == .deadline)
        #expect(
            error?.message == "the exchange exceeded its deadline of \(expected) seconds; set a longer one if the "
                + "server needs more time")
        #expect(error?.request?.url?.path == "/v1/x")
    }

    @Test("A scope that has ended sends nothing")
    func endedScope() async throws {
        await service.withDeadline(.seconds(5)) {
            clock.advance(by: .seconds(5))
            let error = await #expect(throws: WebServiceError.self) { try await service.GET("/a").string().value }
            #expect(error?.code == .deadline)
            #expect(error?.message.contains("has passed, so no request was sent") == true)
            let task = service.GET("/b").resume()
            await task.finished()
            #expect(task.request.url?.path == "/v1/b")
            #expect(isDeadline(await task.data().result))
            #expect(isDeadline(await service.perform(PathRequest()).result))
            #expect(isDeadline(await service.GET("/c").stream().result))
        }
        await service.withDeadline(.zero) { #expect(isDeadline(await service.GET("/d").string().result)) }
        #expect(session.exchanges.values.isEmpty)
        #expect(service.exchanges.isEmpty)
    }

    struct PathRequest: HTTPServiceRequest, Hashable {
        typealias Output = String
        func request(for service: WebService) -> Request { service.request(.GET, path: "/typed") }
    }

    @Test("The end of a scope does not affect the other tasks that wait for a shared response")
    func sharedResponse() async throws {
        let first = await service.withDeadline(.seconds(5)) {
            service.perform(PathRequest(), duplicates: .join).resume()
        }
        let exchange = await session.exchanges.wait()[0]
        let second = service.perform(PathRequest(), duplicates: .join).resume()
        clock.advance(by: .seconds(5))
        #expect(isDeadline(await first.result))
        #expect(!exchange.log.contains("cancel"))
        exchange.respond("shared")
        #expect(try await second.value == "shared")
        let last = await service.withDeadline(.seconds(5)) { service.perform(PathRequest()).resume() }
        let other = await session.exchanges.wait(for: 2)[1]
        clock.advance(by: .seconds(5))
        #expect(isDeadline(await last.result))
        await eventually { other.log.contains("cancel") }
    }

    @Test("The steps of a task belong to the scope in which it was resumed")
    func steps() async throws {
        let seen = Collected<Bool>()
        let task = await service.withDeadline(.seconds(5)) {
            service.GET("/a").string()
                .map { text in
                    seen.add(DeadlineScope.current != nil)
                    return text
                }
                .mapAsync { [service] _ in try await service.GET("/b").string().value }
                .resume()
        }
        await session.exchanges.wait()[0].respond("a")
        await session.exchanges.wait(for: 2)
        #expect(seen.values == [true])
        clock.advance(by: .seconds(5))
        #expect(isDeadline(await task.result))
        let outside = service.GET("/c").response { _, _ in
            seen.add(DeadlineScope.current != nil)
            return .empty
        }
        _ = await service.withDeadline(.seconds(5)) { outside.updateErrorUI { _ in } }
        outside.resume()
        await session.exchanges.wait(for: 3)[2].respond("c")
        #expect(await seen.wait(for: 2) == [true, false])
    }

    @Test("A refresh of credentials belongs to no scope")
    func refresh() async throws {
        let seen = Collected<Bool>()
        let tokens = TokenSource {
            .bearer("old")
        } refresh: { _ in
            seen.add(DeadlineScope.current != nil)
            return .bearer("new")
        }
        service.interceptors = [Authentication(tokens)]
        let task = await service.withDeadline(.seconds(5)) { service.GET("/a").string().resume() }
        await session.exchanges.wait()[0].respond(status: 401)
        await session.exchanges.wait(for: 2)[1].respond("b")
        #expect(try await task.value == "b")
        #expect(seen.values == [false])
    }

    @Test("A passive task has no deadline")
    func passive() async throws {
        let login = PassiveTask<Int>(timekeeper: clock)
        await service.withDeadline(.zero) { _ = login.task.resume() }
        login.complete(7)
        #expect(try await login.task.value == 7)
    }

    @Test("Each attempt has the whole timeout, also after a refresh of credentials")
    func attempts() async throws {
        service.interceptors = [Authentication(TokenSource({ .bearer("old") }, refresh: { _ in .bearer("new") }))]
        let task = service.GET("/a").setAttemptTimeout(.seconds(3)).string().resume()
        let first = await session.exchanges.wait()[0]
        clock.advance(by: .seconds(2))
        first.respond(status: 401)
        let second = await session.exchanges.wait(for: 2)[1]
        clock.advance(by: .milliseconds(2_900))
        #expect(task.task.state == .running)
        #expect(!second.log.contains("cancel"))
        clock.advance(by: .milliseconds(100))
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .timedOut)
        #expect(second.log.contains("cancel"))
        #expect(clock.pending == 0)
    }

    @Test("The deadline ends a request whose attempts time out")
    func deadlineOfAttempts() async throws {
        var policy = RetryPolicy(maximumAttempts: 9)
        policy.timekeeper = TestTimekeeper(clock, pause: { _ in })
        service.interceptors = [policy]
        let task = service.GET("/a").setAttemptTimeout(.seconds(3)).setDeadline(.seconds(7)).string().resume()
        for count in 1...2 {
            await session.exchanges.wait(for: count)
            clock.advance(by: .seconds(3))
        }
        await session.exchanges.wait(for: 3)
        clock.advance(by: .seconds(1))
        #expect(isDeadline(await task.result))
    }

    @Test("A timeout of an attempt that is not positive is an error", arguments: [Duration.zero, .seconds(-1)])
    func invalid(timeout: Duration) async {
        let error = await #expect(throws: WebServiceError.self) {
            try await service.GET("/a").setAttemptTimeout(timeout).data().value
        }
        #expect(error?.code == .encoding)
        #expect(error?.message.contains("attemptTimeout") == true)
    }
}
