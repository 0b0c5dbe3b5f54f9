import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking
import WebServiceTransfers

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Exchanges in flight", .permit)
struct ExchangesInFlightTests {
    enum Feature: RequestTagKey {
        static let defaultValue = "none"
    }

    struct Brewers: HTTPServiceRequest, Hashable {
        typealias Output = Data
        func request(for service: WebService) -> Request { service.request(.GET, path: "/brewers") }
    }

    private func names(_ service: WebService) -> [String] {
        service.exchanges.map { "\($0.kind) \($0.request?.method.rawValue ?? "-")" }
    }

    // MARK: List

    @Test("Tasks are listed from resume to result, in the order in which they began")
    func list() async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let file = try TemporaryFolder.forTest().file("upload", Data("x".utf8))
        let tasks = [service.GET("/1"), service.POST("/2").setBody(file: file)]
        #expect(names(service) == [])
        for task in tasks { task.resume() }
        #expect(names(service) == ["request GET", "upload POST"])
        await session.exchanges.wait(for: 2)
        session.exchanges.values.first?.respond()
        _ = await tasks[0].data().result
        #expect(names(service) == ["upload POST"])
        tasks[1].cancel()
        #expect(names(service) == [])
    }

    @Test("A typed request is one exchange with its type, without the request of its endpoint")
    func typed() async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let task = service.perform(Brewers()).resume()
        await session.exchanges.wait(for: 1)
        #expect(service.exchanges.map(\.kind) == [.typedRequest])
        #expect(service.exchanges.first?.type == Brewers.self)
        #expect(service.exchanges.first?.request == nil)
        session.exchanges.values.first?.respond("x")
        #expect(try await task.value == Data("x".utf8))
        #expect(service.exchanges.isEmpty)
    }

    @Test("A snapshot has the tags and the state of a task, and no body")
    func snapshot() {
        let service = WebService.make()
        let task = service.POST("/x").setBody(Data("body".utf8)).configure { $0.options[Feature.self] = "search" }
        task.resume().suspend()
        let exchange = service.exchanges.first
        #expect(exchange?[Feature.self] == "search")
        #expect(exchange?.state == .suspended)
        #expect(exchange?.request?.body == nil)
        #expect(exchange?.request?.url?.path == "/v1/x")
        task.cancel()
    }

    enum Start: CaseIterable {
        case handlers, awaited, typedRequest, download
    }

    @Test(
        "A task that is cancelled before the service has listed it does not stay in the list",
        arguments: Start.allCases)
    func cancelledBeforeListing(_ start: Start) async throws {
        let clock = InterruptingClock()
        let service = WebService.make(timekeeper: clock)
        let folder = TemporaryFolder.forTest()
        let completions = Collected<String>()
        let (task, finish): (SessionTask, @Sendable () async -> Void)
        switch start {
        case .handlers, .awaited:
            let typed = service.GET("/x").data().onCompletion { completions.add("\($0)") }
            (task, finish) = (typed.task, { _ = await typed.result })
        case .typedRequest:
            let typed = service.perform(Brewers()).onCompletion { completions.add("\($0)") }
            (task, finish) = (typed.task, { _ = await typed.result })
        case .download:
            let typed = service.GET("/x").download(to: folder.url.appendingPathComponent("x"))
                .onCompletion { completions.add("\($0)") }
            (task, finish) = (typed.task, { _ = await typed.result })
        }
        await service.withDeadline(.seconds(5)) {
            clock.interrupt {
                // The scope of the deadline is read before the task is listed.
                guard task.state == .running else { return false }
                #expect(service.exchanges.isEmpty)
                task.cancel()
                return true
            }
            if start == .awaited { await finish() } else { task.resume() }
        }
        await finish()
        #expect(await completions.wait().count == 1)
        #expect(clock.hasInterrupted)
        #expect(service.exchanges.isEmpty)
    }

    @Test("A stream is listed until the end of its body")
    func stream() async throws {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200, data: Data("body".utf8)))
        let service = WebService.make(session, timekeeper: nil)
        let response = try await service.GET("/x").stream().value
        #expect(try await response.body.collect(upTo: 100) == Data("body".utf8))
        await eventually { service.exchanges.isEmpty }
    }

    @Test("The updates begin with the current exchanges and end with the newest")
    func updates() async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let task = service.GET("/x").resume()
        var counts: [Int] = []
        for await exchanges in service.exchangeUpdates {
            counts.append(exchanges.count)
            if exchanges.isEmpty { break }
            task.cancel()
        }
        #expect(counts == [1, 0])
    }

    // MARK: Cancellation

    @Test("cancelAll() ends each task once with URLError.cancelled, and later ones are sent")
    func cancelAll() async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let ends = Collected<URLError.Code?>()
        for index in 0..<3 {
            service.GET("/\(index)").responseError { ends.add(($0 as? URLError)?.code) }.resume()
        }
        await session.exchanges.wait(for: 3)
        service.cancelAll()
        service.cancelAll()
        #expect(await ends.wait(for: 3) == [.cancelled, .cancelled, .cancelled])
        for exchange in session.exchanges.values { exchange.respond() }
        service.GET("/later").resume()
        await session.exchanges.wait(for: 4)
        let logs = session.exchanges.values.map { $0.log.joined(separator: " ") }
        #expect(logs == ["resume cancel", "resume cancel", "resume cancel", "resume"])
        service.cancelAll()
        #expect(ends.values.count == 3)
    }

    @Test("cancelAll(where:) ends the exchanges that satisfy the predicate")
    func cancelSome() async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let tasks = ["a", "b"].map { tag in
            service.GET("/x").configure { $0.options[Feature.self] = tag }.data().resume()
        }
        await session.exchanges.wait(for: 2)
        service.cancelAll { $0[Feature.self] == "b" }
        session.exchanges.values.first?.respond("x")
        #expect(try await tasks[0].value == Data("x".utf8))
        await #expect(throws: URLError(.cancelled)) { try await tasks[1].value }
    }

    @Test("A queued typed request does not start when all are cancelled")
    func queued() async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let tasks = (0..<3).map { _ in service.perform(Brewers(), duplicates: .queue).resume() }
        await session.exchanges.wait(for: 1)
        service.cancelAll()
        for task in tasks { await #expect(throws: URLError(.cancelled)) { try await task.value } }
        #expect(session.exchanges.values.count == 1)
    }

    @Test("A stream that is cancelled with all others throws URLError.cancelled to its reader")
    func cancelledStream() async throws {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200, data: Data(repeating: 1, count: 1 << 20)))
        let service = WebService.make(session, timekeeper: nil)
        let response = try await service.GET("/x").stream(bufferSize: 1).value
        var bytes = response.body.makeAsyncIterator()
        _ = try await bytes.next()
        service.cancelAll()
        await #expect(throws: URLError(.cancelled)) { while try await bytes.next() != nil {} }
        #expect(service.exchanges.isEmpty)
    }

    @Test("An event stream that waits for its next connection is listed, and ends with all others")
    func reconnection() async throws {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 503))
        let keeper = ManualTimekeeper()
        let service = WebService.make(session, timekeeper: keeper)
        let reader = Task {
            for try await _ in service.GET("/x").events(.reconnecting()) {}
        }
        await eventually { service.exchanges.map(\.kind) == [.reconnection] }
        service.cancelAll()
        await #expect(throws: URLError(.cancelled)) { try await reader.value }
        #expect(service.exchanges.isEmpty)
    }

    @Test("cancelAll() ends an event stream whose next connection has not begun")
    func beforeConnection() async throws {
        let session = HandSession { exchange in
            let isFirst = exchange.request.urlRequestValue.value(forHTTPHeaderField: "Last-Event-ID") == nil
            exchange.completion(Data("id: \(isFirst ? 1 : 2)\ndata: a\n\n".utf8), .eventStream, nil)
        }
        let keeper = InterruptedWaits()
        let service = WebService.make(session, timekeeper: keeper)
        let events = Collected<String?>()
        let reader = Task {
            for try await event in service.GET("/x").events(.reconnecting()) { events.add(event.id) }
        }
        await eventually { service.exchanges.map(\.kind) == [.reconnection] }
        keeper.interrupt { service.cancelAll() }
        keeper.advance(by: .seconds(60))
        await #expect(throws: URLError(.cancelled)) { try await reader.value }
        #expect(events.values == ["1"])
        #expect(service.exchanges.isEmpty)
    }

    // MARK: Invalidation

    @Test("After invalidate(), a task fails with serviceInvalidated and sends nothing")
    func invalidated() async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let running = service.GET("/1").data().resume()
        await session.exchanges.wait(for: 1)
        service.invalidate()
        await #expect(throws: URLError(.cancelled)) { try await running.value }
        for result in [
            await service.GET("/2").data().result, await service.perform(Brewers()).result,
        ] {
            let error = #expect(throws: WebServiceError.self) { try result.get() }
            #expect(error?.code == .serviceInvalidated)
        }
        #expect(session.exchanges.values.count == 1)
    }

    @Test("A clone of an invalidated service sends requests")
    func clone() async throws {
        let service = WebService.make(HandSession(text: "x"))
        service.invalidate()
        #expect(try await service.clone().GET("/x").string().value == "x")
    }
}

/// A clock that does not advance, and calls a closure when it is read.
private final class InterruptingClock: Timekeeper {
    private let alarms = AlarmTimer()
    private let interruption = Mutex<(@Sendable () -> Bool)?>(nil)
    private let flag = OnceFlag()

    var hasInterrupted: Bool { flag.isSet }

    /// Sets a closure that is called with each access until it returns `true`.
    func interrupt(_ body: @escaping @Sendable () -> Bool) { interruption.withLock { $0 = body } }

    var instant: UInt64 {
        let body = interruption.withLock { $0.take() }
        if let body { if body() { _ = flag.set() } else { interrupt(body) } }
        return 1
    }

    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm { alarms.add(at: 1, target) }
    func cancel(_ alarm: Alarm) { alarms.cancel(alarm) }
}

/// A clock that calls a closure when a wait has ended, before its caller continues.
private final class InterruptedWaits: Timekeeper {
    private let base = ManualTimekeeper()
    private let interruption = Mutex<(@Sendable () -> Void)?>(nil)

    var instant: UInt64 { base.instant }

    func interrupt(_ body: @escaping @Sendable () -> Void) { interruption.withLock { $0 = body } }

    func advance(by duration: Duration) { base.advance(by: duration) }

    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        base.schedule(after: delay, target)
    }

    func cancel(_ alarm: Alarm) {
        base.cancel(alarm)
        interruption.withLock { $0.take() }?()
    }
}

extension URLResponse {
    fileprivate static var eventStream: HTTPURLResponse? {
        HTTPURLResponse(
            url: URL(fileURLWithPath: "/"), statusCode: 200, httpVersion: nil,
            headerFields: ["Content-Type": "text/event-stream"])
    }
}
