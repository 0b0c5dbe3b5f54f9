import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceTransfers
@testable import WebServiceCore

@Suite("Observers", .permit)
struct ObserverTests {
    private let session = HandStreamingSession()
    private let recorder = EventRecorder()

    private func service(_ session: any Session, timekeeper: (any Timekeeper)? = ManualTimekeeper()) -> WebService {
        let service = WebService.make(session, timekeeper: timekeeper)
        service.observers = [recorder]
        return service
    }

    @Test("A plain exchange has the events created, attempt started, head, attempt ended and ended")
    func plain() async throws {
        let clock = ManualTimekeeper()
        let session = HandSession()
        let task = service(session, timekeeper: clock).GET("/x?q=1").data()
        #expect(recorder.events.values.isEmpty)
        clock.advance(by: .seconds(1))
        task.resume()
        clock.advance(by: .seconds(2))
        await session.exchanges.wait()[0].respond("abc")
        #expect(try await task.value == Data("abc".utf8))
        #expect(
            recorder.lines() == [
                "created GET https://h/v1/x", "attempt 1 started GET https://h/v1/x", "head 200",
                "attempt 1 ended 200 network", "ended 200 network",
            ])
        let events = recorder.events.values
        #expect(events.map(\.time) == [.zero, .zero, .seconds(2), .seconds(2), .seconds(2)])
        #expect(events.map { $0.date.timeIntervalSince(events[0].exchange.date) } == [0, 0, 2, 2, 2])
        #expect(Set(events.map(\.exchange.id)).count == 1)
        #expect(events[0].exchange.parent == nil)
        guard case .attemptEnded(_, .success(let response), _) = events[3].kind, case .ended(let end) = events[4].kind
        else {
            Issue.record("the events have no response")
            return
        }
        #expect(response.data == Data("abc".utf8))
        #expect(end.attempts == 1)
        #expect(!end.isStreamed)
        #expect(end.timeline.events.map(\.kind) == [.attempt])
        #expect(end.metrics.responseTime == .seconds(2))
    }

    @Test("The head of a final response is no interim head, whatever its status", arguments: [0, 103])
    func finalHead(_ status: Int) async throws {
        let session = HandSession()
        service(session).GET("/x").response { _, _ in }.resume()
        let url = try #require(URL(string: "https://h/v1/x"))
        let response =
            status == 0
            ? URLResponse(url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
            : try #require(HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: nil))
        await session.exchanges.wait()[0].completion(Data(), response, nil)
        let heads = await recorder.ended().filter { $0.hasPrefix("interim") || $0.hasPrefix("head") }
        #expect(heads == ["head \(status)"])
    }

    @Test("The head of an attempt that has ended is no event, also while the next one waits")
    func lateHead() async throws {
        let clock = ManualTimekeeper()
        let service = service(session, timekeeper: clock)
        service.interceptors = [.retry()]
        let task = service.GET("/x").data().resume()
        let first = await session.exchanges.wait()[0]
        first.receiver.didComplete(.failure(URLError(.networkConnectionLost)), metrics: nil)
        await recorder.events.wait(for: 3)  // created, started, ended
        try first.receive(status: 200)
        task.cancel()
        #expect(await !recorder.ended().contains("head 200"))
    }

    @Test("While a retry waits, the task does not retain the receiver of the attempt that has ended")
    func receivers() async throws {
        let service = service(session)
        service.interceptors = [.retry()]
        let task = service.GET("/x").data().resume()
        let first = await session.exchanges.wait()[0]
        #expect(task.task.call.withLock { $0.receivers.count } == 1)
        first.receiver.didComplete(.failure(URLError(.networkConnectionLost)), metrics: nil)
        await recorder.events.wait(for: 3)  // created, started, ended
        #expect(task.task.call.withLock { $0.receivers.count } == 0)
        task.cancel()
    }

    @Test("The bytes of a body that fails are an event before the end of the attempt")
    func partialBody() async throws {
        let task = service(session).GET("/x").data().resume()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        _ = try exchange.receive("abc")
        exchange.receiver.didComplete(.failure(URLError(.networkConnectionLost)), metrics: nil)
        _ = await task.result
        #expect(
            await recorder.ended() == [
                "created GET https://h/v1/x", "attempt 1 started GET https://h/v1/x", "head 200", "bytes 3",
                "attempt 1 ended URLError -1005", "ended URLError -1005",
            ])
    }

    @Test("The first bytes of a streamed body are events up to the limit of the observers")
    func streamedBytes() async throws {
        let service = service(session)
        let other = EventRecorder(streamedBodyLimit: 4)
        service.observers.append(other)
        let task = service.GET("/x").stream(bufferSize: 3)
        async let response = task.value
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        var body = try await response.body.makeAsyncIterator()
        for text in ["abc", "def", "ghi"] {
            _ = try exchange.receive(text)
            #expect(try await body.next() == Data(text.utf8))
        }
        exchange.complete()
        #expect(try await body.next() == nil)
        await eventually { recorder.lines().contains { $0.hasPrefix("body") } }
        for recorder in [recorder, other] {
            #expect(recorder.lines().filter { $0.hasPrefix("bytes") } == ["bytes 3", "bytes 1"])
        }
        let bytes = recorder.events.values.compactMap {
            if case .bodyReceived(let data) = $0.kind { data } else { nil }
        }
        #expect(bytes == [Data("abc".utf8), Data("d".utf8)])
    }

    @Test("A streamed body that its reader cannot decode is a failure in the timeline")
    func undecodableStream() async throws {
        struct Decoder: ContentDecoder {
            func decodeBytes(
                _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
            ) throws -> Int { throw URLError(.cannotDecodeContentData) }
            func finish() throws {}
        }
        let task = service(session).GET("/x").stream()
        async let response = task.value
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200, decoder: Decoder())
        let body = try await response.body
        _ = try exchange.receive("abc")
        exchange.complete()
        await #expect(throws: URLError(.cannotDecodeContentData)) { for try await _ in body {} }
        await eventually { recorder.lines().contains("failure: URLError -1016") }
        #expect(recorder.lines().contains("body: 3 bytes"))
    }

    @Test("The explanation of a stream does not state an end before the end of its body")
    func explanationOfStream() async throws {
        for isCut in [false, true] {
            let session = HandStreamingSession()
            let task = service(session).GET("/x").stream()
            async let response = task.value
            let exchange = await session.exchanges.wait()[0]
            try exchange.receive(status: 200)
            let body = try await response.body
            let explanation = { task.timeline.explain().split(separator: "\n").last }
            #expect(explanation() == "The response had status 200, and its body is being received.")
            exchange.receiver.didComplete(
                isCut ? .failure(URLError(.networkConnectionLost)) : .success([:]), metrics: nil)
            #expect(
                explanation()
                    == (isCut ? "The exchange failed: URLError -1005." : "The exchange ended with status 200."))
            withExtendedLifetime(body) {}
        }
    }

    @Test("A retry, a redirect and their waits are events in order")
    func retryAndRedirect() async throws {
        let service = service(
            ScriptedSession([
                .status(503), .status(302, headers: ["Location": "/v1/y"]), .status(200, body: "x"),
            ]))
        service.interceptors = [RetryPolicy(random: { 1 }, pause: { _ in })]
        _ = try await service.GET("/x").data().value
        #expect(
            recorder.lines() == [
                "created GET https://h/v1/x", "attempt 1 started GET https://h/v1/x", "head 503",
                "attempt 1 ended 503 network", "retry: status 503, pause of 0.5 seconds", "wait",
                "attempt 2 started GET https://h/v1/x", "head 302", "attempt 2 ended 302 network", "redirect",
                "attempt 3 started GET https://h/v1/y", "head 200", "attempt 3 ended 200 network", "ended 200 network",
            ])
    }

    @Test("A refresh is an event between two attempts")
    func refresh() async throws {
        let service = service(ScriptedSession([.status(401), .status(200)]))
        let source = TokenSource({ .bearer("canary-old") }, refresh: { _ in .bearer("canary-new") })
        service.interceptors = [Authentication(source)]
        _ = try await service.GET("/x").data().value
        #expect(
            recorder.lines().dropFirst(3) == [
                "attempt 1 ended 401 network", "refresh: status 401", "retry: with a newer credential",
                "attempt 2 started GET https://h/v1/x", "head 200", "attempt 2 ended 200 network", "ended 200 network",
            ])
    }

    @Test("A failed attempt and an exchange that cannot be encoded end with their errors")
    func failures() async {
        let service = service(ScriptedSession([.error(.cannotConnectToHost)]))
        _ = await service.GET("/x").data().result
        #expect(
            recorder.lines() == [
                "created GET https://h/v1/x", "attempt 1 started GET https://h/v1/x",
                "attempt 1 ended URLError -1004", "ended URLError -1004",
            ])
        _ = await service.GET("/{id}").data().result
        #expect(recorder.lines(1).last == "ended invalidURL")
        #expect(recorder.lines(1).count == 2)
    }

    @Test("A task that is cancelled before it is resumed has no events")
    func cancelledBefore() async {
        let session = HandSession()
        let task = service(session).GET("/x")
        task.cancel()
        task.resume()
        _ = await task.data().result
        #expect(recorder.events.values.isEmpty)
        #expect(session.exchanges.values.isEmpty)
    }

    @Test("Cancelling an exchange ends its attempt, and a late response has no events")
    func cancelledInside() async {
        let session = HandSession()
        let task = service(session).GET("/x").data()
        task.resume()
        let exchange = await session.exchanges.wait()[0]
        task.cancel()
        exchange.respond()
        _ = await task.result
        #expect(
            recorder.lines() == [
                "created GET https://h/v1/x", "attempt 1 started GET https://h/v1/x",
                "attempt 1 ended URLError -999", "ended URLError -999",
            ])
    }

    @Test("The deadline is the error of the attempt and of the exchange")
    func deadline() async {
        let clock = ManualTimekeeper()
        let task = service(HandSession(), timekeeper: clock).GET("/x").configure { $0.options.deadline = .seconds(5) }
        task.resume()
        clock.advance(by: .seconds(5))
        _ = await task.data().result
        #expect(recorder.lines().suffix(2) == ["attempt 1 ended deadline", "ended deadline"])
        #expect(recorder.events.values.last?.time == .seconds(5))
    }

    @Test("The head of a response is reported before its body has arrived")
    func earlyHead() async throws {
        let task = service(session).GET("/x").data()
        task.resume()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        await eventually { recorder.lines().last == "head 200" }
        _ = try exchange.receive("abc")
        exchange.complete()
        _ = try await task.value
        #expect(
            await recorder.ended() == [
                "created GET https://h/v1/x", "attempt 1 started GET https://h/v1/x", "head 200",
                "attempt 1 ended 200 network", "ended 200 network",
            ])
    }

    @Test("The body of a streamed response is recorded after the end of the exchange")
    func stream() async throws {
        let task = service(session).GET("/x").stream()
        task.resume()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        let response = try await task.value
        let lines = await recorder.ended()
        #expect(lines.suffix(3) == ["head 200", "attempt 1 ended 200 network", "ended 200 network"])
        guard case .ended(let summary) = recorder.events.values.last?.kind else {
            Issue.record("the last event is not the end")
            return
        }
        #expect(summary.isStreamed)
        _ = try exchange.receive("abc")
        exchange.complete()
        #expect(try await response.body.collect(upTo: 10) == Data("abc".utf8))
        await eventually { recorder.lines().last == "body: 3 bytes" }
        #expect(recorder.lines().count == lines.count + 1)
    }

    @Test("Events retain neither the stream of a response nor the connection")
    func releasedStream() async throws {
        let service = service(session)
        do {
            let task = service.GET("/x").stream()
            task.resume()
            try await session.exchanges.wait()[0].receive(status: 200)
            _ = try await task.value
            _ = await recorder.ended()
        }
        await eventually { session.exchanges.values[0].log.contains("cancel") }
        #expect(recorder.events.values.count == 5)
    }

    @Test("A download is an exchange whose requests have exchanges of their own")
    func download() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // best effort
        let task = service(session).GET("/x").download(to: folder.appendingPathComponent("x"))
        task.resume()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        _ = try exchange.receive("abc")
        exchange.complete()
        #expect(try await task.value.byteCount == 3)
        #expect(await recorder.ended() == ["created GET https://h/v1/x", "ended 200 network"])
        await eventually { recorder.lines(1).last == "body: 3 bytes" }
        #expect(
            recorder.lines(1) == [
                "created GET https://h/v1/x", "attempt 1 started GET https://h/v1/x", "head 200",
                "attempt 1 ended 200 network", "ended 200 network", "body: 3 bytes",
            ])
        #expect(recorder.exchanges[1].parent == recorder.exchanges[0].id)
        #expect(recorder.exchanges[0].parent == nil)
    }

    // MARK: Observers and tags

    private enum Feature: RequestTagKey {
        static let defaultValue = "unknown"
    }

    @Test("The tags of a request are available in each of its events and in its attempts")
    func tags() async throws {
        let service = service(HandSession(text: "x"))
        service.options[Feature.self] = "menu"
        _ = try await service.GET("/x").configure { $0.options[Feature.self] += "/search" }.data().value
        #expect(recorder.events.values.map { $0.exchange[Feature.self] } == Array(repeating: "menu/search", count: 5))
        guard case .attemptStarted(_, let request) = recorder.events.values[1].kind else {
            Issue.record("the second event is not the start of the attempt")
            return
        }
        #expect(request.source.options[Feature.self] == "menu/search")
    }

    @Test("Each observer receives an event before the next event is delivered, the first observer first")
    func several() async throws {
        let calls = Collected<String>()
        let service = service(HandSession(text: "x"))
        service.observers = ["a", "b"].map { name in
            EventRecorder { calls.add("\(name) \(EventRecorder.line($0).prefix(8))") }
        }
        _ = try await service.GET("/x").data().value
        #expect(
            calls.values
                == [
                    "a created ", "b created ", "a attempt ", "b attempt ", "a head 200", "b head 200", "a attempt ",
                    "b attempt ", "a ended 20", "b ended 20",
                ].map { String($0.prefix(10)) })
    }

    @Test("A task reads the observers when it is resumed")
    func captured() async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let first = service.GET("/1").data()
        first.resume()
        service.observers = [recorder]
        let second = service.GET("/2").data()
        second.resume()
        service.observers = []
        for exchange in await session.exchanges.wait(for: 2) { exchange.respond() }
        _ = try await (first.value, second.value)
        #expect(recorder.exchanges.map(\.name) == ["GET https://h/v1/2"])
        #expect(recorder.events.values.count == 5)
    }

    @Test("A clone has the observers of its original, and both can be changed independently")
    func clone() async throws {
        let service = service(HandSession(text: "x"))
        let clone = service.clone()
        service.observers = []
        _ = try await (service.GET("/1").data().value, clone.GET("/2").data().value)
        #expect(recorder.exchanges.map(\.name) == ["GET https://h/v1/2"])
    }

    @Test("An observer can use the service and cancel the task of the event")
    func reentrant() async {
        let task = Mutex<SessionTask?>(nil)
        let recorder = EventRecorder { event in
            guard case .attemptStarted = event.kind else { return }
            task.withLock { $0 }?.cancel()
        }
        let service = WebService.make(HandSession(text: "x"))
        service.observers = [recorder]
        let made = service.GET("/x")
        task.withLock { $0 = made }
        _ = await made.data().result
        // The thread that delivers the start of the attempt also delivers the end of the exchange.
        #expect(
            await recorder.ended() == [
                "created GET https://h/v1/x", "attempt 1 started GET https://h/v1/x",
                "attempt 1 ended URLError -999", "ended URLError -999",
            ])
    }

    @Test("The events of many concurrent exchanges are in order for each of them")
    func concurrent() async throws {
        let session = HandSession { exchange in DispatchQueue.global().async { exchange.respond("x") } }
        let service = service(session, timekeeper: nil)
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<200 {
                group.addTask {
                    let task = service.GET("/\(index)").data()
                    task.resume()
                    if index.isMultiple(of: 3) { task.cancel() }
                    _ = await task.result
                }
            }
        }
        #expect(recorder.exchanges.count == 200)
        // The thread that delivers an earlier event of an exchange also delivers its end.
        await eventually("every exchange ends") {
            recorder.events.values.count { if case .ended = $0.kind { true } else { false } } == 200
        }
        let all = Dictionary(grouping: recorder.events.values, by: \.exchange.id)
        for events in all.values {
            let lines = events.map { String(EventRecorder.line($0).prefix { $0 != " " }) }
            #expect(lines.first == "created")
            #expect(lines.last == "ended")
            #expect(lines.filter { $0 == "ended" }.count == 1)
            #expect([2, 4, 5].contains(lines.count), "\(lines)")
            #expect(events.map(\.time) == events.map(\.time).sorted())
        }
    }

    @Test("A slow observer delays only its own exchange and never the thread of the session", .exclusive)
    func slow() async throws {
        let gate = DispatchSemaphore(value: 0)
        let recorder = EventRecorder { event in
            guard event.exchange.name.hasSuffix("/slow"), case .headReceived = event.kind else { return }
            _ = gate.wait(timeout: .now() + 50)
        }
        let service = WebService.make(session, timekeeper: nil)
        service.observers = [recorder]
        let (slow, fast) = (service.GET("/slow").data(), service.GET("/fast").data())
        slow.resume()
        fast.resume()
        // The test is the only thread of the session.
        for exchange in await session.exchanges.wait(for: 2) {
            try exchange.receive(status: 200)
            _ = try exchange.receive("x")
            exchange.complete()
        }
        _ = try await fast.value
        #expect(recorder.exchanges[0].name.hasSuffix("/slow"))
        // The head of the slow exchange is delivered on another thread.
        await eventually { recorder.lines().last == "head 200" }
        gate.signal()
        _ = try await slow.value
        #expect(await recorder.ended().count == 5)
    }

    @Test("An observer may read a task in each of its members")
    func membersOutsideLocks() async throws {
        struct Reading: Observer {
            let task: @Sendable () -> SessionTask?
            var streamedBodyLimit: Int { task()?.state == .running ? 1 : 0 }
            func observe(_ event: ExchangeEvent) { _ = task()?.timeline }
        }
        let service = WebService.make(HandSession(text: "x"))
        let tasks = Collected<SessionTask>()
        service.observers = [Reading { tasks.values.last }]
        let task = service.GET("/x")
        tasks.add(task)
        #expect(try await task.data().value == Data("x".utf8))
        service.observers = []
    }

    @Test("Observers are deallocated outside locks, when the service and its tasks have released them")
    func release() async throws {
        struct Holding: Observer {
            let canary: Canary
            func observe(_ event: ExchangeEvent) { canary.touch() }
        }
        let released = Collected<Bool>()
        let session = HandSession(text: "x")
        let service = WebService.make(session)
        // The closure would wait for a lock of the service that is held.
        service.observers = [Holding(canary: Canary { released.add(service.observers.isEmpty) })]
        do {
            let task = service.GET("/x").data()
            _ = try await task.value
            #expect(released.values.isEmpty)
            service.observers = []
            #expect(task.task.state == .completed)
            #expect(released.values.isEmpty)
        }
        session.exchanges.removeAll()  // they retain their tasks
        #expect(await released.wait() == [true])
    }
}
