import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceStorage

/// A service with a clock that is none of this package.
@Suite(.permit) struct ServiceClockTests {
    /// A clock that stands still until it is advanced.
    private final class HandClock: Clock {
        struct Instant: InstantProtocol {
            var time: Duration
            func advanced(by duration: Duration) -> Instant { Instant(time: time + duration) }
            func duration(to other: Instant) -> Duration { other.time - time }
            static func < (first: Instant, second: Instant) -> Bool { first.time < second.time }
        }

        private struct State {
            var now = Instant(time: .seconds(1_000))
            var sleepers: [UUID: (deadline: Instant, continuation: CheckedContinuation<Void, any Error>)] = [:]
            var cancelled: Set<UUID> = []
        }

        private let state = Mutex(State())
        /// The error of each sleep; `nil` for none.
        let failure: (any Error)?

        init(failure: (any Error)? = nil) { self.failure = failure }

        var now: Instant { state.withLock { $0.now } }
        var minimumResolution: Duration { .nanoseconds(1) }

        /// The durations until the ends of the sleeps.
        var delays: [Duration] {
            state.withLock { state in state.sleepers.values.map { state.now.duration(to: $0.deadline) }.sorted() }
        }

        func sleep(until deadline: Instant, tolerance: Duration?) async throws {
            if let failure { throw failure }
            let id = UUID()
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let result: Result<Void, any Error>? = state.withLock { state in
                        if state.cancelled.contains(id) { return .failure(CancellationError()) }
                        if state.now >= deadline { return .success(()) }
                        state.sleepers[id] = (deadline, continuation)
                        return nil
                    }
                    if let result { continuation.resume(with: result) }
                }
            } onCancel: {
                let sleeper = state.withLock { state in
                    state.cancelled.insert(id)
                    return state.sleepers.removeValue(forKey: id)
                }
                sleeper?.continuation.resume(throwing: CancellationError())
            }
        }

        func advance(by duration: Duration) {
            let due = state.withLock { state in
                state.now = state.now.advanced(by: duration)
                let ids = state.sleepers.filter { $0.value.deadline <= state.now }.keys
                return ids.compactMap { state.sleepers.removeValue(forKey: $0)?.continuation }
            }
            for continuation in due { continuation.resume() }
        }

        /// Waits until the shortest sleep has a duration.
        func awaitSleep(for duration: Duration) async {
            await eventually("a sleep of \(duration)") { self.delays.first == duration }
        }
    }

    private let clock = HandClock()
    private let mock = MockSession()

    private func service(_ clock: any Clock<Duration>) -> WebService {
        let service = WebService(baseURLString: "https://h/v1", clock: clock)
        service.session = mock
        return service
    }

    private static var silence: MockResponse {
        var response = MockResponse(statusCode: 200)
        response.wire = .noResponse
        return response
    }

    @Test("The clock of a service is the one with which it was created")
    func identity() throws {
        let service = service(clock)
        #expect(service.clock as? HandClock === clock)
        #expect(service.clone().clock as? HandClock === clock)
        #expect(WebService(baseURL: URL(string: "https://h"), clock: clock).clock as? HandClock === clock)
    }

    @Test("Deadlines follow the clock, the earliest first")
    func deadlines() async throws {
        mock.on(.any, Self.silence)
        let service = service(clock)
        let late = service.GET("/late").setDeadline(.seconds(60)).data().resume()
        await clock.awaitSleep(for: .seconds(60))
        let early = service.GET("/early").setDeadline(.seconds(20)).data().resume()
        await clock.awaitSleep(for: .seconds(20))
        clock.advance(by: .seconds(20))
        #expect(await failure(early) == .deadline)
        await clock.awaitSleep(for: .seconds(40))
        clock.advance(by: .seconds(40))
        #expect(await failure(late) == .deadline)
    }

    private func failure(_ task: TypedTask<Data>) async -> WebServiceError.Code? {
        do { _ = try await task.value } catch { return (error as? WebServiceError)?.code }
        return nil
    }

    @Test("The pauses of retries follow the clock")
    func retries() async throws {
        mock.on(.GET, "/v1/brewers", [.status(503).header("Retry-After", "30"), .text("ale")])
        let service = service(clock)
        service.interceptors = [.retry()]
        let task = service.GET("/brewers").string().resume()
        await eventually("the pause begins") { self.clock.delays.first.map { $0 < .seconds(60) } ?? false }
        #expect(mock.receivedRequests.count == 1)
        clock.advance(by: .seconds(60))
        #expect(try await task.value == "ale")
        #expect(mock.receivedRequests.count == 2)
    }

    private struct Brewers: HTTPServiceRequest, RawStorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "brewers" }
        func request(for service: WebService) throws -> Request { service.request(.GET, path: "/brewers") }
    }

    @Test("The age of stored values follows the clock")
    func storedValues() async throws {
        mock.on(.any, .text("Long Trail"))
        let service = service(clock)
        service.storages = [MemoryStorage()]
        service.endpoints = [HTTPEndpoint()]
        _ = try await service.perform(Brewers()).value
        await service.finishStoring()
        clock.advance(by: .seconds(3_600))
        let age = try #require(try await service.stored(Brewers(), maximumAge: .seconds(3_601)).value.age)
        #expect(age > .seconds(3_599))
        #expect(age < .seconds(3_601))
        let error = await #expect(throws: WebServiceError.self) {
            try await service.stored(Brewers(), maximumAge: .seconds(3_599)).value
        }
        #expect(error?.code == .noStoredData)
    }

    @Test("The freshness of cached responses follows the clock")
    func cache() async throws {
        let stub = mock.on(.any, .text("ale").header(.cacheControl, "max-age=60"))
        let service = service(clock)
        let cache = ResponseCache(storage: MemoryStorage())
        service.interceptors = [cache]
        for (seconds, calls) in [(0, 1), (58, 1), (3, 2)] {
            clock.advance(by: .seconds(seconds))
            _ = try await service.GET("/").string().value
            #expect(await cache.finishStoring())
            #expect(stub.callCount == calls)
        }
    }

    @Test("A clock whose sleep fails ends a pause early, and no request waits forever")
    func failingClock() async throws {
        mock.on(.any, Self.silence)
        let service = service(HandClock(failure: POSIXError(.EINTR)))
        #expect(await failure(service.GET("/").setDeadline(.seconds(60)).data().resume()) == .deadline)
    }

    @Test("500 requests at the same time have one sleep, which their ends do not leave behind")
    func manyDeadlines() async throws {
        mock.on(.any) { .text($0.path) }
        let service = service(clock)
        await withTaskGroup(of: Bool.self) { group in
            for number in 1...500 {
                group.addTask {
                    let task = service.GET("/\(number)").setDeadline(.seconds(1_000 - number)).string()
                    return (try? await task.value) == "/v1/\(number)"
                }
            }
            for await isRight in group { #expect(isRight) }
        }
        await eventually("the replaced sleeps end") { self.clock.delays.count <= 1 }
        clock.advance(by: .seconds(1_000))
        await eventually("the last sleep ends") { self.clock.delays.isEmpty }
    }
}
