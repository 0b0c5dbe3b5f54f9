import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCore
@testable import WebServiceResilience

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("ConcurrencyLimiter", .permit)
struct ConcurrencyLimiterTests {
    private let session = HandSession()
    private let clock = ManualTimekeeper()

    private func service(_ limiter: ConcurrencyLimiter) -> WebService {
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [limiter]
        return service
    }

    /// Resumes a task and returns when its request was sent or waits.
    private func start(
        _ path: String, _ service: WebService, _ limiter: ConcurrencyLimiter, _ priority: Request.Priority = .normal
    ) async -> TypedTask<Data> {
        let before = limiter.waitingRequests + session.exchanges.values.count
        let task = service.GET(path).data().validateNothing().configure { $0.options.priority = priority }.resume()
        await eventually { limiter.waitingRequests + session.exchanges.values.count > before }
        return task
    }

    private var paths: [String] {
        session.exchanges.values.compactMap { $0.request.urlRequestValue.url?.lastPathComponent }
    }

    /// Responds to the request that was sent at a position.
    private func respond(_ index: Int, status: Int = 200) { session.exchanges.values[index].respond(status: status) }

    @Test("At most the limit is in flight, and requests are sent in the order of their arrival")
    func order() async throws {
        let limiter = ConcurrencyLimiter(.fixed(2))
        let service = service(limiter)
        var tasks: [TypedTask<Data>] = []
        for path in ["a", "b", "c", "d", "e"] { tasks.append(await start(path, service, limiter)) }
        #expect(paths == ["a", "b"])
        #expect(limiter.waitingRequests == 3)
        for (index, next) in [(1, "c"), (0, "d"), (3, "e")] {
            clock.advance(by: .seconds(1))
            respond(index)
            await eventually { paths.last == next }
            #expect(limiter.requestsInFlight == 2)
        }
        for index in [2, 4] { respond(index) }
        for task in tasks { _ = try await task.value }
        let waits = tasks.map { $0.timeline.events.filter { $0.kind == .wait }.compactMap(\.duration) }
        #expect(waits == [[], [], [.seconds(1)], [.seconds(2)], [.seconds(3)]])
        await eventually { limiter.requestsInFlight == 0 }
    }

    @Test("Waiting requests with a higher priority are sent first")
    func priorities() async throws {
        let limiter = ConcurrencyLimiter(.fixed(1))
        let service = service(limiter)
        _ = await start("first", service, limiter)
        for name in ["low", "normal", "high"] {
            for number in [1, 2] {
                let priority: Request.Priority = name == "low" ? .low : name == "high" ? .high : .normal
                _ = await start("\(name)\(number)", service, limiter, priority)
            }
        }
        for index in 0..<6 {
            respond(index)
            await session.exchanges.wait(for: index + 2)
        }
        #expect(paths == ["first", "high1", "high2", "normal1", "normal2", "low1", "low2"])
    }

    @Test(
        "A cancelled request leaves the queue immediately, and is not sent",
        arguments: ["b", "c", "d"])
    func cancellation(cancelled: String) async throws {
        let limiter = ConcurrencyLimiter(.fixed(1))
        let service = service(limiter)
        var tasks: [String: TypedTask<Data>] = [:]
        for path in ["a", "b", "c", "d"] { tasks[path] = await start(path, service, limiter) }
        tasks[cancelled]?.cancel()
        #expect(await tasks[cancelled]?.serviceResponse.isCanceled == true)
        await eventually { limiter.waitingRequests == 2 }
        for index in 0..<2 {
            respond(index)
            await session.exchanges.wait(for: index + 2)
        }
        respond(2)
        await eventually { limiter.requestsInFlight == 0 }
        #expect(paths == ["a"] + ["b", "c", "d"].filter { $0 != cancelled })
    }

    @Test("The deadline of a request includes the wait")
    func deadlineOfWait() async {
        let limiter = ConcurrencyLimiter(.fixed(1))
        let service = service(limiter)
        _ = await start("a", service, limiter)
        service.options.deadline = .seconds(5)
        let task = await start("b", service, limiter)
        clock.advance(by: .seconds(5))
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .deadline)
        await eventually { limiter.waitingRequests == 0 }
        #expect(paths == ["a"])
    }

    @Test("A request fails immediately if too many already wait, and may wait again later")
    func fullQueue() async throws {
        let limiter = ConcurrencyLimiter(.fixed(1), maximumWaiting: 1)
        let service = service(limiter)
        for path in ["a", "b"] { _ = await start(path, service, limiter) }
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("c").data().value }
        #expect(error?.code == .concurrencyLimitExceeded)
        #expect(
            error?.message
                == "the queue of the concurrency limit is full (maximumWaiting: 1); send fewer requests or increase "
                + "maximumWaiting")
        respond(0)
        await session.exchanges.wait(for: 2)
        _ = await start("d", service, limiter)
        #expect(limiter.waitingRequests == 1)
        #expect(paths == ["a", "b"])
    }

    @Test("A request fails immediately if its response is expected after its deadline")
    func lateRequest() async throws {
        let limiter = ConcurrencyLimiter(.fixed(1))
        let service = service(limiter)
        let first = await start("a", service, limiter)
        clock.advance(by: .seconds(4))
        respond(0)
        _ = try await first.value
        for path in ["b", "c"] { _ = await start(path, service, limiter) }
        let task = service.GET("d").setDeadline(.seconds(11)).data()
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .concurrencyLimitExceeded)
        #expect(
            error?.message
                == "the response is expected in about 12.0 seconds, but only 11.0 seconds are left until the deadline; "
                + "send fewer requests or set a longer deadline")
        service.options.deadline = .seconds(12)
        _ = await start("e", service, limiter)
        #expect(paths == ["a", "b"])
    }

    @Test("Waiting requests fail as soon as it is known that they cannot meet their deadlines")
    func judgement() async throws {
        let limiter = ConcurrencyLimiter(.fixed(1))
        let service = service(limiter)
        service.options.deadline = .seconds(3)
        var tasks: [TypedTask<Data>] = []
        for number in 0..<20 { tasks.append(await start("\(number)", service, limiter)) }
        clock.advance(by: .seconds(1))
        respond(0)
        await session.exchanges.wait(for: 2)
        await eventually { limiter.waitingRequests == 0 }
        await eventually { tasks.count { $0.settled != nil } == 19 }
        clock.advance(by: .seconds(1))
        respond(1)
        var codes: [WebServiceError.Code?] = []
        for task in tasks {
            switch await task.result {
            case .success: codes.append(nil)
            case .failure(let error): codes.append((error as? WebServiceError)?.code)
            }
        }
        #expect(codes == [nil, nil] + Array(repeating: .concurrencyLimitExceeded, count: 18))
        #expect(paths == ["0", "1"])
    }

    @Test(
        "A permit is given back at the end of an exchange, even if a later interceptor ignores it",
        arguments: ["deadline", "cancellation"])
    func hungInterceptor(end: String) async throws {
        let (limiter, gate) = (ConcurrencyLimiter(.fixed(1)), Once<Void>())
        let service = service(limiter)
        service.options.deadline = .seconds(5)
        service.interceptors.append(
            .closure { request, next in
                if request.url?.lastPathComponent == "hung" { await gate.value }
                return try await next(request)
            })
        let hung = service.GET("/hung").data().resume()
        await eventually { limiter.requestsInFlight == 1 }
        if end == "deadline" { clock.advance(by: .seconds(5)) } else { hung.cancel() }
        _ = await hung.result
        await eventually { limiter.requestsInFlight == 0 }
        let task = await start("b", service, limiter)
        #expect(paths == ["b"])
        gate.set(())
        respond(0)
        _ = try await task.value
        await eventually { limiter.requestsInFlight == 0 }
    }

    @Test("Without a queue, a request is sent or fails immediately")
    func noQueue() async throws {
        let limiter = ConcurrencyLimiter(.fixed(1), maximumWaiting: -1)
        let service = service(limiter)
        let first = await start("a", service, limiter)
        await #expect(throws: WebServiceError.self) { try await service.GET("b").data().value }
        respond(0)
        _ = try await first.value
        await eventually { limiter.requestsInFlight == 0 }
        _ = await start("c", service, limiter)
        #expect(paths == ["a", "c"])
    }

    @Test(
        "A permit is given back after every end",
        arguments: ["response", "status", "error", "cancellation", "deadline"])
    func permits(end: String) async throws {
        let limiter = ConcurrencyLimiter(.fixed(1))
        let service = service(limiter)
        service.options.deadline = .seconds(5)
        for round in 0..<3 {
            let task = await start("\(round)", service, limiter)
            #expect(limiter.requestsInFlight == 1)
            switch end {
            case "response": respond(round)
            case "status": respond(round, status: 500)
            case "error": session.exchanges.values[round].completion(nil, nil, URLError(.timedOut))
            case "cancellation": task.cancel()
            default: clock.advance(by: .seconds(5))
            }
            _ = await task.result
            await eventually { limiter.requestsInFlight == 0 }
        }
        #expect(session.exchanges.values.count == 3)
    }

    @Test("Of 500 requests with random ends, none retains a permit or a place in the queue")
    func randomEnds() async throws {
        let limiter = ConcurrencyLimiter(.aimd(initial: 8, maximum: 12))
        let service = service(limiter)
        var generator = SeededGenerator(seed: 7)
        var tasks: [TypedTask<Data>] = []
        var answered = 0
        for number in 0..<500 {
            tasks.append(service.GET("\(number)").data().validateNothing().resume())
            if let task = tasks.randomElement(using: &generator), Int.random(in: 0..<3, using: &generator) == 0 {
                task.cancel()
            }
            while answered < session.exchanges.values.count, Bool.random(using: &generator) {
                respond(answered, status: [200, 200, 200, 503].randomElement(using: &generator) ?? 200)
                answered += 1
            }
            #expect(limiter.requestsInFlight <= 12)
        }
        for task in tasks.shuffled(using: &generator).prefix(100) { task.cancel() }
        await eventually {
            while answered < session.exchanges.values.count {
                respond(answered)
                answered += 1
            }
            return tasks.allSatisfy { $0.task.result != nil }
        }
        await eventually { limiter.requestsInFlight == 0 }
        #expect(limiter.waitingRequests == 0)
        #expect(session.exchanges.values.count > 100)
    }

    @Test("Each origin, or each custom key, has its own limit, which services share with the limiter")
    func keys() async throws {
        let limiter = ConcurrencyLimiter(.fixed(1))
        let services = [service(limiter), service(limiter)]
        for url in ["https://h/a", "http://h/a", "https://h:444/a", "https://other/a"] {
            _ = await start(url, services[0], limiter)
        }
        #expect(limiter.waitingRequests == 0)
        _ = await start("https://H:443/b", services[1], limiter)
        #expect(limiter.waitingRequests == 1)
        let byMethod = ConcurrencyLimiter(.fixed(1), by: { $0.method.rawValue })
        let third = service(byMethod)
        _ = await start("https://h/a", third, byMethod)
        _ = await start("https://other/a", third, byMethod)
        #expect(byMethod.waitingRequests == 1)
    }

    @Test("Idle keys are forgotten: with a fixed limit at once, with an adaptive one after an hour")
    func memory() async throws {
        for limit in [ConcurrencyLimit.fixed(1), .aimd(), .gradient()] {
            let limiter = ConcurrencyLimiter(limit)
            let service = WebService.make(HandSession(text: "x"), timekeeper: clock)
            service.interceptors = [limiter]
            for number in 0..<600 {
                if number == 500 {
                    #expect(limit.isAdaptive ? limiter.keyCount == 500 : limiter.keyCount <= 128)
                    clock.advance(by: .seconds(3_600))
                }
                _ = try await service.GET("https://h\(number)/").data().value
            }
            #expect(limiter.keyCount <= 128)
        }
    }

    @Test("The state of a key with a request in flight is retained")
    func memoryOfRequestsInFlight() async throws {
        let limiter = ConcurrencyLimiter(.fixed(1))
        let service = service(limiter)
        for number in 0..<65 { _ = await start("https://h\(number)/a", service, limiter) }
        #expect(limiter.requestsInFlight == 65)
        _ = await start("https://h0/b", service, limiter)
        #expect(limiter.waitingRequests == 1)
    }

    @Test("The dot syntax creates a limiter with the given values")
    func dotSyntax() throws {
        let service = WebService.make()
        service.interceptors = [.retry(), .concurrencyLimit(.fixed(5), maximumWaiting: 7, by: { "\($0.method)" })]
        let limiter = try #require(service.interceptors.last as? ConcurrencyLimiter)
        #expect(limiter.maximumWaiting == 7)
    }
}
