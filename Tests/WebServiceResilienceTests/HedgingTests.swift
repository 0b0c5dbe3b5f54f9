import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Hedging", .permit)
struct HedgingTests {
    private let clock = TestClock()
    private let mock: MockService

    init() { mock = MockService(clock: clock) }

    private static func text(_ text: String, _ milliseconds: Int, status: Int = 200) -> MockResponse {
        .text(text, status: status).after(.milliseconds(milliseconds))
    }

    private var service: WebService { mock.service }

    /// Sends a GET request to a server with two responses; the second request follows after 50 ms.
    private func send(
        _ responses: [MockResponse], _ hedging: Hedging = .hedging(after: .fixed(.milliseconds(50)))
    ) async -> (task: TypedTask<String>, text: String?, elapsed: Duration) {
        mock.on(.GET, "/beer", responses)
        service.interceptors = [hedging]
        let task = service.GET("/beer").string().resume()
        let start = clock.elapsed
        let ended = Mutex<Duration?>(nil)
        let result = Task(executorPreference: clock.executor) { [clock] in
            let text = try? await task.value  // the test compares the result with nil
            ended.withLock { $0 = clock.elapsed - start }
            return text
        }
        await clock.advance(by: .seconds(10))
        return (task, await result.value, ended.withLock { $0 } ?? .zero)
    }

    private func error<Value>(of task: TypedTask<Value>) async -> WebServiceError? {
        await #expect(throws: WebServiceError.self) { try await task.value }
    }

    private func decisions(_ task: SessionTask) -> [String] {
        task.timeline.events.filter { $0.kind == .hedging }.map(\.detail)
    }

    private static let second = "second request, because the first one took longer than 0.05 seconds"

    @Test("If the first response is late, the second one is returned as soon as it arrives")
    func secondWins() async {
        let (task, text, elapsed) = await send([Self.text("first", 1_000), Self.text("second", 10)])
        #expect(text == "second")
        #expect(elapsed == .milliseconds(60))
        #expect(mock.receivedRequests.count == 2)
        #expect(decisions(task.task) == [Self.second, "the response to the second request arrived first"])
        #expect(
            task.timeline.events.filter { $0.kind == .attempt }.map { $0.status ?? 0 } == [0, 200])
        #expect(task.timeline.explain().contains("hedging: the response to the second request arrived first."))
    }

    @Test("If the first response arrives first after all, it is returned")
    func firstWins() async {
        let (task, text, elapsed) = await send([Self.text("first", 70), Self.text("second", 1_000)])
        #expect(text == "first")
        #expect(elapsed == .milliseconds(70))
        #expect(decisions(task.task) == [Self.second])
    }

    @Test("A response within the delay needs no second request")
    func inTime() async {
        let (task, text, elapsed) = await send([Self.text("first", 49), Self.text("second", 1)])
        #expect(text == "first")
        #expect(elapsed == .milliseconds(49))
        #expect(mock.receivedRequests.count == 1)
        #expect(decisions(task.task).isEmpty)
    }

    @Test("A failure within the delay is returned, and is left to a retry policy")
    func earlyFailure() async {
        let (task, text, elapsed) = await send([Self.text("", 20, status: 503), Self.text("second", 1)])
        #expect(text == nil)
        #expect(elapsed == .milliseconds(20))
        #expect(task.metrics.responseTime == .milliseconds(20))
    }

    @Test("A failure does not count while the other request is in flight")
    func failureOfOne() async {
        let (_, text, elapsed) = await send([Self.text("", 60, status: 503), Self.text("second", 50)])
        #expect(text == "second")
        #expect(elapsed == .milliseconds(100))
    }

    @Test("A failure of the second request has no effect")
    func failureOfSecond() async {
        let (_, text, elapsed) = await send([Self.text("first", 90), Self.text("", 10, status: 503)])
        #expect(text == "first")
        #expect(elapsed == .milliseconds(90))
    }

    @Test("If both requests fail, the result is that of the first one", arguments: [10, 90])
    func failureOfBoth(milliseconds: Int) async {
        let (task, text, elapsed) = await send([
            Self.text("", 100, status: 503), Self.text("", milliseconds, status: 500),
        ])
        #expect(text == nil)
        #expect(elapsed == .milliseconds(max(100, 50 + milliseconds)))
        #expect(await error(of: task)?.status == 503)
    }

    @Test("Without a token of the budget, no second request is sent")
    func budget() async {
        let budget = RetryPolicy.Budget(capacity: 2, ratio: 0)
        for round in 0..<4 {
            let before = mock.receivedRequests.count
            let (task, text, _) = await send(
                [Self.text("first", 1_000)], .hedging(after: .fixed(.milliseconds(50)), budget: budget))
            #expect(text == "first")
            #expect(mock.receivedRequests.count - before == (round < 2 ? 2 : 1))
            if round == 2 { #expect(decisions(task.task) == ["no second request: the budget is exhausted"]) }
        }
    }

    @Test("The percentile of the response times is the delay, once there are enough")
    func percentile() async {
        let number = Mutex(0)
        mock.on(.GET, "/beer") { _ in
            // Most requests take from 1 to 100 ms.
            let index = number.withLock { number in
                number += 1
                return number
            }
            return index > 102 ? Self.text("late", index == 103 ? 1_000 : 1) : Self.text("", (index * 37) % 100 + 1)
        }
        let hedging = Hedging(after: .percentile(0.9))
        service.interceptors = [hedging]
        let run = Task(executorPreference: clock.executor) { [service] in
            for _ in 0..<102 { _ = try await service.GET("/beer").data().value }
            return service.GET("/beer").data()
        }
        await clock.advance(by: .seconds(60))
        #expect(mock.receivedRequests.count == 102)
        guard let task = try? await run.value.resume() else { return #expect(Bool(false)) }
        await clock.advance(by: .seconds(60))
        #expect(mock.receivedRequests.count == 104)
        #expect(decisions(task.task).first == "second request, because the first one took longer than 0.091 seconds")
        #expect(hedging.keyCount == 1)
    }

    @Test("Only idempotent requests with a body that can be read twice are sent a second time")
    func kinds() async {
        service.interceptors = [.hedging(after: .fixed(.milliseconds(50)))]
        mock.on(.any, Self.text("", 1_000))
        let once = AsyncStream<Data> { $0.finish() }
        let tasks: [(Int, TypedTask<Data>)] = [
            (2, service.GET("/").data()), (2, service.PUT("/").setBody(Data("beer".utf8)).data()),
            (2, service.DELETE("/").data()), (1, service.POST("/").setBody(Data("beer".utf8)).data()),
            (1, service.PUT("/").setBody(.stream(once)).data()),
            (1, service.GET("/").configure { $0.options[UpgradeTag.self] = true }.data()),
        ]
        for (count, task) in tasks {
            let before = mock.receivedRequests.count
            task.resume()
            await clock.advance(by: .seconds(5))
            #expect(mock.receivedRequests.count - before == count, "\(task.task.request.debugDescription)")
            #expect(decisions(task.task).isEmpty == (count == 1))
        }
    }

    @Test("A cancelled exchange cancels both requests")
    func cancellation() async {
        let session = HandSession()
        service.session = session
        service.interceptors = [.hedging(after: .fixed(.milliseconds(50)))]
        let task = service.GET("/").data().resume()
        await clock.advance(by: .seconds(1))
        #expect(session.exchanges.values.count == 2)
        task.cancel()
        #expect(await task.serviceResponse.isCanceled)
        await eventually { session.exchanges.values.allSatisfy { $0.log == ["resume", "cancel"] } }
        #expect(service.exchanges.isEmpty)
    }

    @Test("The request that is not needed any longer is cancelled", arguments: [0, 1])
    func loser(winner: Int) async throws {
        let session = HandSession()
        service.session = session
        service.interceptors = [.hedging(after: .fixed(.milliseconds(50)))]
        let task = service.GET("/").data().resume()
        await clock.advance(by: .seconds(1))
        session.exchanges.values[winner].respond("beer")
        #expect(try await task.value == Data("beer".utf8))
        await eventually { session.exchanges.values[1 - winner].log == ["resume", "cancel"] }
        #expect(session.exchanges.values[winner].log == ["resume"])
    }

    @Test("The deadline includes both requests")
    func deadline() async {
        mock.on(.GET, "/", Self.text("", 10_000))
        service.interceptors = [.hedging(after: .fixed(.milliseconds(50)))]
        let task = service.GET("/").setDeadline(.seconds(1)).data().resume()
        await clock.advance(by: .seconds(1))
        #expect(await error(of: task)?.code == .deadline)
    }

    @Test("Observers see two exchanges, of which the second belongs to the first")
    func observers() async {
        let recorder = EventRecorder()
        service.observers = [recorder]
        _ = await send([Self.text("first", 1_000), Self.text("second", 10)])
        await eventually { recorder.lines(1).last?.hasPrefix("ended") == true }
        #expect(recorder.exchanges.map(\.parent) == [nil, recorder.exchanges.first?.id])
        #expect(
            recorder.lines(1) == [
                "created GET https://mock.test/beer", "attempt 1 started GET https://mock.test/beer", "head 200",
                "attempt 1 ended 200 mock", "ended 200 mock",
            ])
        #expect(
            recorder.lines(0) == [
                "created GET https://mock.test/beer", "attempt 1 started GET https://mock.test/beer",
                "hedging: \(Self.second)", "attempt 1 ended URLError -999",
                "hedging: the response to the second request arrived first", "ended 200 mock",
            ])
    }

    @Test("A typed request is sent a second time as well")
    func typedRequest() async throws {
        mock.on(.GET, "/beer", [Self.text("first", 1_000), Self.text("second", 10)])
        service.interceptors = [.hedging(after: .fixed(.milliseconds(50)))]
        let task = service.perform(BeerRequest())
        task.resume()
        await clock.advance(by: .seconds(5))
        #expect(try await task.value == "second")
        #expect(mock.receivedRequests.count == 2)
    }

    @Test("A hedged request has the credential of its exchange")
    func authentication() async {
        let source = TokenSource({ Credential.bearer("old") }) { _ in .bearer("new") }
        mock.on(.GET, "/beer", [Self.text("first", 1_000), Self.text("second", 10)])
        service.interceptors = [Authentication(source), .hedging(after: .fixed(.milliseconds(50)))]
        let task = service.GET("/beer").data().resume()
        await clock.advance(by: .seconds(5))
        #expect(await (try? task.value) == Data("second".utf8))
        #expect(mock.receivedRequests.map { $0.headers["Authorization"] } == ["Bearer old", "Bearer old"])
    }

    /// Returns a response whose first bytes arrive after a delay, and the second ones 100 ms later.
    private static func pieces(_ text: String, _ milliseconds: Int) -> MockResponse {
        MockResponse(statusCode: 200) { writer in
            try writer.write(Data("\(text) 1".utf8))
            writer.pause(for: .milliseconds(100))
            try writer.write(Data(", \(text) 2".utf8))
        }.after(.milliseconds(milliseconds))
    }

    @Test(
        "The body of a stream is that of the response whose head arrived first", arguments: [10, 200])
    func stream(milliseconds: Int) async throws {
        mock.on(.GET, "/", [Self.pieces("first", 100), Self.pieces("second", milliseconds)])
        service.interceptors = [.hedging(after: .fixed(.milliseconds(50)))]
        let progress = Collected<TransferProgress>()
        let task = service.GET("/").onProgress { progress.add($0) }.stream()
        let run = Task(executorPreference: clock.executor) { [service] in
            let response = try await task.value
            let isListed = service.exchanges.count == 1
            return (try await String(decoding: response.body.collect(upTo: 1_000), as: UTF8.self), isListed)
        }
        await clock.advance(by: .seconds(5))
        let (text, isListed) = try await run.value
        let winner = milliseconds < 50 ? "second" : "first"
        #expect(text == "\(winner) 1, \(winner) 2")
        #expect(isListed)
        await eventually { service.exchanges.isEmpty }
        let bodies = task.timeline.events.filter { $0.kind == .body }
        #expect(bodies.map(\.detail) == ["\(text.utf8.count) bytes"])
        await eventually { progress.values.last?.bytesReceived == Int64(text.utf8.count) }
    }

    @Test("The body of a stream that has ended with its head ends once", arguments: [10, 200])
    func wholeStream(milliseconds: Int) async throws {
        mock.on(.GET, "/", [Self.text("first", 100), Self.text("second", milliseconds)])
        service.interceptors = [.hedging(after: .fixed(.milliseconds(50)))]
        let task = service.GET("/").stream().resume()
        await clock.advance(by: .seconds(5))
        let text = try await String(decoding: task.value.body.collect(upTo: 100), as: UTF8.self)
        #expect(text == (milliseconds < 50 ? "second" : "first"))
        await eventually { service.exchanges.isEmpty }
        #expect(task.timeline.events.filter { $0.kind == .body }.count == 1)
    }

    @Test("The end of the body that is not used has no effect on the stream")
    func discardedStream() async throws {
        var first = Self.pieces("first", 60)
        first.statusCode = 203
        mock.on(.GET, "/", [first, Self.pieces("second", 50)])
        service.interceptors = [
            .hedging(after: .fixed(.milliseconds(50)), isFailure: { (try? $0.get())?.status == 203 })
        ]
        let progress = Collected<TransferProgress>()
        let task = service.GET("/").onProgress { progress.add($0) }.stream().resume()
        await clock.advance(by: .milliseconds(120))
        #expect(service.exchanges.count == 1)
        let body = try await task.value.body
        await clock.advance(by: .seconds(5))
        #expect(try await body.collect(upTo: 100) == Data("second 1, second 2".utf8))
        await eventually { service.exchanges.isEmpty }
        #expect(task.timeline.events.filter { $0.kind == .body }.map(\.detail) == ["18 bytes"])
        await eventually { progress.values.last?.bytesReceived == 18 }
    }

    @Test("An interceptor that sends a hedged stream twice does not end the process")
    func repeatedStream() async throws {
        mock.on(.GET, "/", [Self.text("first", 1_000), Self.text("pending", 1, status: 202), Self.text("second", 1)])
        service.interceptors = [
            .hedging(after: .fixed(.milliseconds(50))),
            .closure { request, next in
                let response = try await next(request)
                return response.status == 202 ? try await next(request) : response
            },
        ]
        let task = service.GET("/").stream().resume()
        await clock.advance(by: .seconds(5))
        #expect(try await task.value.body.collect(upTo: 100) == Data("second".utf8))
        #expect(mock.receivedRequests.count == 3)
    }

    @Test("Cancelling the requests of a service ends the adopted body of a stream")
    func cancelledStream() async throws {
        mock.on(.GET, "/", [Self.pieces("first", 1_000), Self.pieces("second", 10)])
        service.interceptors = [.hedging(after: .fixed(.milliseconds(50)))]
        let task = service.GET("/").stream().resume()
        await clock.advance(by: .milliseconds(70))
        let response = try await task.value
        service.cancelAll()
        await #expect(throws: URLError(.cancelled)) { try await response.body.collect(upTo: 1_000) }
        #expect(service.exchanges.isEmpty)
    }

    // MARK: Several requests and failures

    private static func several(
        _ maximum: Int, hedgesFailures: Bool = false, budget: RetryPolicy.Budget? = nil
    ) -> Hedging {
        .hedging(
            after: .fixed(.milliseconds(50)), maximumHedges: maximum, hedgesFailures: hedgesFailures, budget: budget)
    }

    @Test("Several requests are sent, each after the delay, and the response that arrives first is returned")
    func several() async {
        let (task, text, elapsed) = await send(
            [Self.text("first", 1_000), Self.text("second", 1_000), Self.text("third", 10)], Self.several(2))
        #expect(text == "third")
        #expect(elapsed == .milliseconds(110))
        #expect(
            decisions(task.task) == [
                Self.second, "request 3, because no response arrived within 0.05 seconds of the one before",
                "the response to request 3 arrived first",
            ])
    }

    @Test("No more than the maximum number of requests are sent", arguments: [(-1, 2), (1, 2), (3, 4)])
    func maximum(hedges: Int, requests: Int) async {
        let (_, text, elapsed) = await send([Self.text("beer", 1_000)], Self.several(hedges))
        #expect(text == "beer")
        #expect(elapsed == .milliseconds(1_000))
        #expect(mock.receivedRequests.count == requests)
    }

    @Test("Each further request takes a token of the budget")
    func budgetOfSeveral() async {
        let budget = RetryPolicy.Budget(capacity: 1, ratio: 0)
        let (task, text, _) = await send([Self.text("beer", 1_000)], Self.several(3, budget: budget))
        #expect(text == "beer")
        #expect(mock.receivedRequests.count == 2)
        #expect(decisions(task.task) == [Self.second, "no request 3: the budget is exhausted"])
    }

    @Test("A failure is followed by the next request at once, if that is requested")
    func failureAtOnce() async {
        let (task, text, elapsed) = await send(
            [Self.text("", 20, status: 503), Self.text("second", 10)], Self.several(1, hedgesFailures: true))
        #expect(text == "second")
        #expect(elapsed == .milliseconds(30))
        #expect(
            decisions(task.task) == [
                "second request, because the first one failed", "the response to the second request arrived first",
            ])
    }

    @Test("A transport error is followed by the next request at once")
    func errorAtOnce() async {
        let session = ScriptedSession([.error(.cannotConnectToHost), .status(200)])
        service.session = session
        service.interceptors = [Self.several(1, hedgesFailures: true)]
        let task = service.GET("/beer").data().resume()
        await eventually { task.settled != nil }
        #expect(await (try? task.response.status) == 200)
        #expect(session.sent.count == 2)
    }

    @Test("After a request that follows a failure, the delay begins again")
    func delayAfterFailure() async {
        let (_, text, elapsed) = await send(
            [Self.text("", 20, status: 503), Self.text("second", 1_000), Self.text("third", 5)],
            Self.several(2, hedgesFailures: true))
        #expect(text == "third")
        #expect(elapsed == .milliseconds(75))
    }

    @Test("The failure of a later request is followed by the next one at once")
    func laterFailure() async {
        let (task, text, elapsed) = await send(
            [Self.text("first", 1_000), Self.text("", 10, status: 503), Self.text("third", 5)],
            Self.several(2, hedgesFailures: true))
        #expect(text == "third")
        #expect(elapsed == .milliseconds(65))
        #expect(decisions(task.task).contains("request 3, because an earlier one failed"))
    }

    @Test("If all requests fail, the result is that of the first one, without waiting for a delay")
    func failureOfAll() async {
        let (task, text, elapsed) = await send(
            [503, 500, 502].map { Self.text("", 10, status: $0) }, Self.several(2, hedgesFailures: true))
        #expect(text == nil)
        #expect(elapsed == .milliseconds(30))
        #expect(await error(of: task)?.status == 503)
        #expect(mock.receivedRequests.count == 3)
    }

    @Test("Without a token of the budget, a failure is the result")
    func failureWithoutBudget() async {
        let (task, text, elapsed) = await send(
            [Self.text("", 20, status: 503), Self.text("second", 10)],
            Self.several(1, hedgesFailures: true, budget: RetryPolicy.Budget(capacity: 0, ratio: 0)))
        #expect(text == nil)
        #expect(elapsed == .milliseconds(20))
        #expect(await error(of: task)?.status == 503)
        #expect(decisions(task.task) == ["no second request: the budget is exhausted"])
    }

    @Test("A response with Retry-After, and an error of another kind, are not followed by a request at once")
    func requestedPause() async {
        let busy = Self.text("", 20, status: 503).headers(["Retry-After": "5"])
        let (_, text, elapsed) = await send([busy, Self.text("second", 10)], Self.several(1, hedgesFailures: true))
        #expect(text == nil)
        #expect(elapsed == .milliseconds(20))
        let count = mock.receivedRequests.count
        service.interceptors = [Self.several(1, hedgesFailures: true), .closure { _, _ in throw TestError() }]
        let task = service.GET("/beer").string()
        await #expect(throws: TestError()) { try await task.value }
        #expect(mock.receivedRequests.count == count)
        #expect(decisions(task.task).isEmpty)
    }

    @Test("A POST that fails is not sent a second time")
    func failedPost() async {
        mock.on(.POST, "/beer", [Self.text("", 20, status: 503), Self.text("second", 10)])
        service.interceptors = [Self.several(3, hedgesFailures: true)]
        let task = service.POST("/beer").string().resume()
        await clock.advance(by: .seconds(1))
        #expect(await error(of: task)?.status == 503)
        #expect(mock.receivedRequests.count == 1)
    }

    @Test("All requests that are not needed any longer are cancelled", arguments: 0..<3)
    func losers(winner: Int) async throws {
        let session = HandSession()
        service.session = session
        service.interceptors = [Self.several(2)]
        let task = service.GET("/").data().resume()
        await clock.advance(by: .seconds(1))
        #expect(session.exchanges.values.count == 3)
        session.exchanges.values[winner].respond("beer")
        #expect(try await task.value == Data("beer".utf8))
        for loser in 0..<3 where loser != winner {
            await eventually { session.exchanges.values[loser].log == ["resume", "cancel"] }
        }
        #expect(session.exchanges.values[winner].log == ["resume"])
        #expect(service.exchanges.isEmpty)
    }

    @Test("Extreme values neither trap nor prevent a response")
    func extremes() async {
        #expect(Hedging(maximumHedges: .max).maximumHedges == 100)
        for delay in [Hedging.Delay.fixed(.seconds(Int64.min)), .percentile(.nan), .percentile(7), .percentile(-1)] {
            let (_, text, _) = await send([Self.text("first", 5)], .hedging(after: delay))
            #expect(text == "first")
        }
    }
}

private struct BeerRequest: HTTPServiceRequest {
    typealias Output = String

    func request(for service: WebService) -> Request { service.request(.GET, path: "/beer") }
}
