import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// A delegate that records every call and runs the closures of the test.
private final class Recorder: ServicePassthroughDelegate {
    let calls = Collected<String>()
    let sent = Collected<URLRequest>()
    let modify: @Sendable (URLRequest) -> URLRequest?
    let validate: @Sendable (URLResponse?, (any Error)?) throws -> Void
    let ends = Collected<String>()

    init(
        modify: @escaping @Sendable (URLRequest) -> URLRequest? = { _ in nil },
        validate: @escaping @Sendable (URLResponse?, (any Error)?) throws -> Void = { _, _ in }
    ) {
        self.modify = modify
        self.validate = validate
    }

    func requestSent(request: URLRequest) {
        calls.add("sent")
        sent.add(request)
    }

    func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {
        calls.add(
            "received \((response as? HTTPURLResponse)?.statusCode ?? 0) \(data?.count ?? -1) "
                + "\(request?.url?.path ?? "") \(error != nil)")
    }

    func modifiedRequest(request: URLRequest) -> URLRequest? {
        calls.add("modify")
        return modify(request)
    }

    func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {
        calls.add("validate")
        try validate(response, error)
    }

    func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error) {
        calls.add("failure \((error as? TestError)?.name ?? "other") \(request?.url?.path ?? "")")
    }

    func updateUIBegin(response: URLResponse?) { calls.add("begin") }
    func updateUIEnd(response: URLResponse?) { calls.add("end") }

    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?, error: (any Error)?
    ) {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        ends.add(
            "\(request.url?.path ?? "") \(status) \(data?.count ?? -1) \((error as? URLError)?.code.rawValue ?? 0)")
        calls.add("metrics \(metrics.responseTime != nil)")
    }
}

/// A session whose tasks call their completion when they are cancelled, resumed or not, like
/// `URLSession`.
private final class AnsweringCancel: Session {
    final class Exchange: DataTask {
        let completion: @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        let cancelled: Collected<Void>
        init(
            _ completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void, _ cancelled: Collected<Void>
        ) {
            self.completion = completion
            self.cancelled = cancelled
        }
        var state: DataTaskState { .suspended }
        func resume() {}
        func suspend() {}
        func cancel() {
            completion(nil, nil, URLError(.cancelled))
            cancelled.add(())
        }
    }

    let cancelled = Collected<Void>()
    /// Called before a task is returned.
    let willReturn: @Sendable () -> Void

    init(_ willReturn: @escaping @Sendable () -> Void) { self.willReturn = willReturn }

    func dataTask(
        request: any URLRequestEncodable, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        willReturn()
        return Exchange(completion, cancelled)
    }
}

@Suite("Passthrough delegate", .permit)
struct ServicePassthroughDelegateTests {
    @Test("Each delegate method is called once, in the order of the pipeline")
    func order() async {
        let recorder = Recorder()
        WebService.make(HandSession(text: "{}"), delegate: recorder).GET("/x")
            .response { _, _ in recorder.calls.add("handler") }
            .updateUI { _ in recorder.calls.add("ui") }
            .resume()
        let calls = await recorder.calls.wait(for: 9)
        #expect(
            calls == [
                "modify", "sent", "received 200 2 /v1/x false", "validate", "handler", "begin", "ui", "end",
                "metrics true",
            ])
    }

    @Test("The delegate receives the response of a streaming session with its whole body")
    func streamingSession() async throws {
        let (session, recorder) = (HandStreamingSession(), Recorder())
        let task = WebService.make(session, delegate: recorder).GET("/x").string().resume()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        _ = try exchange.receive("ale")
        exchange.complete()
        #expect(try await task.value == "ale")
        #expect(recorder.calls.values.prefix(4) == ["modify", "sent", "received 200 3 /v1/x false", "validate"])
    }

    @Test("A request modified by the delegate is sent")
    func modified() async {
        let recorder = Recorder(modify: { request in
            var request = request
            request.setValue("1", forHTTPHeaderField: "X-Signed")
            return request
        })
        let session = HandSession(text: "{}")
        WebService.make(session, delegate: recorder).POST("/x").setBody(Data("b".utf8), contentType: "text/plain")
            .resume()
        await recorder.calls.wait(for: 5)
        let sent = session.exchanges.values.first?.request.urlRequestValue
        #expect(sent?.value(forHTTPHeaderField: "X-Signed") == "1")
        #expect(sent?.value(forHTTPHeaderField: "Content-Type") == "text/plain")
        #expect(sent?.httpBody == Data("b".utf8))
        #expect(recorder.sent.values.first == sent)
    }

    @Test("A modified request has the connect timeout and the maximum body size of the original")
    func modifiedLimits() async throws {
        let (session, recorder) = (HandSession(text: "{}"), Recorder(modify: { $0 }))
        let service = WebService.make(session, delegate: recorder)
        var request = service.request(.GET, path: "/x")
        request.options.maximumResponseBytes = 7
        request.options.connectTimeout = .seconds(3)
        #expect(try await service.sessionTask(request: request).string().value == "{}")
        let sent = try #require(session.exchanges.values.first?.request as? EncodedRequest)
        #expect(sent.maximumResponseBytes == 7)
        #expect(sent.source.options.connectTimeout == .seconds(3))
        #expect(recorder.calls.values.first == "modify")
    }

    @Test("An error other than a transport error is delivered unchanged")
    func otherError() async {
        let session = HandSession { $0.completion(nil, nil, TestError(name: "of the session")) }
        let result = await WebService.make(session).GET("/x").string().result
        #expect(throws: TestError(name: "of the session")) { try result.get() }
    }

    @Test("An invalid request from the delegate is the error of the task and is not sent")
    func modifiedBadly() async {
        let recorder = Recorder(modify: { request in
            var request = request
            request.setValue("5", forHTTPHeaderField: "Content-Length")
            return request
        })
        let session = HandSession()
        let errors = Collected<WebServiceError.Code?>()
        WebService.make(session, delegate: recorder).GET("/x").responseError {
            errors.add(($0 as? WebServiceError)?.code)
        }.resume()
        #expect(await errors.wait() == [.invalidHeader])
        #expect(session.exchanges.values.isEmpty)
        #expect(!recorder.calls.values.contains("sent"))
    }

    @Test("A rejected response is passed to the error handlers, and the delegate is notified of the failure")
    func rejected() async {
        let recorder = Recorder(validate: { response, _ in
            if (response as? HTTPURLResponse)?.statusCode != 200 { throw TestError(name: "status") }
        })
        let errors = Collected<String>()
        WebService.make(HandSession(text: "{}", status: 404), delegate: recorder).GET("/x")
            .response { _, _ in errors.add("must not run") }
            .responseError { errors.add(($0 as? TestError)?.name ?? "") }.resume()
        #expect(await errors.wait() == ["status"])
        let calls = await recorder.calls.wait(for: 6)
        #expect(calls.suffix(3) == ["validate", "failure status /v1/x", "metrics true"])
    }

    @Test("Transport errors are validated and not reported as failures")
    func transportError() async {
        let validated = Collected<URLError.Code?>()
        let recorder = Recorder(validate: { response, error in
            if response == nil { validated.add((error as? URLError)?.code) }
        })
        let session = HandSession { $0.completion(nil, nil, URLError(.notConnectedToInternet)) }
        let errors = Collected<URLError.Code?>()
        WebService.make(session, delegate: recorder).GET("/x").responseError { errors.add(($0 as? URLError)?.code) }
            .resume()
        #expect(await errors.wait() == [.notConnectedToInternet])
        #expect(
            await recorder.calls.wait(for: 5) == [
                "modify", "sent", "received 0 -1 /v1/x true", "validate", "metrics true",
            ])
        #expect(validated.values == [.notConnectedToInternet])
        #expect(recorder.ends.values == ["/v1/x 0 -1 -1009"])
    }

    @Test("The validation can replace a transport error, for handlers and for typed tasks")
    func replacedError() async {
        let recorder = Recorder(validate: { _, error in if error != nil { throw TestError(name: "offline") } })
        let session = HandSession { $0.completion(nil, nil, URLError(.notConnectedToInternet)) }
        let service = WebService.make(session, delegate: recorder)
        let errors = Collected<String>()
        service.GET("/x").responseError { errors.add(($0 as? TestError)?.name ?? "\($0)") }.resume()
        #expect(await errors.wait() == ["offline"])
        #expect(await recorder.calls.wait(for: 6).suffix(3) == ["validate", "failure offline /v1/x", "metrics true"])
        let result = await service.GET("/y").data().result
        #expect(throws: TestError(name: "offline")) { try result.get() }
    }

    @Test("A task that cannot be encoded is validated, and its metrics contain its own request")
    func notEncodable() async throws {
        let recorder = Recorder()
        WebService.make(delegate: recorder).GET("/x").setHeaderValue("5", forName: "Content-Length").resume()
        #expect(await recorder.calls.wait(for: 2) == ["validate", "metrics false"])
        try #require(recorder.ends.values.count == 1)
        #expect(recorder.ends.values[0].hasSuffix(" 0 -1 0"))
    }

    @Test("The metrics are delivered with the request, the response and its body")
    func metricsWithData() async {
        let recorder = Recorder()
        let metrics = Collected<String>()
        WebService.make(HandSession(text: "abc", status: 201), delegate: recorder).GET("/x")
            .metricsCollected { _, response in metrics.add("\((response as? HTTPURLResponse)?.statusCode ?? 0)") }
            .resume()
        #expect(await recorder.ends.wait() == ["/v1/x 201 3 0"])
        #expect(await metrics.wait() == ["201"])
    }

    private enum Feature: RequestTagKey {
        static let defaultValue = "unknown"
    }

    @Test("The current request of a delegate contains the tags of the exchange in each method")
    func currentRequest() async {
        final class Tags: ServicePassthroughDelegate {
            let tags = Collected<String>()
            private func add(_ name: String) { tags.add("\(name) \(currentRequest?.options[Feature.self] ?? "none")") }
            func requestSent(request: URLRequest) { add("sent") }
            func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {
                add("received")
            }
            func modifiedRequest(request: URLRequest) -> URLRequest? {
                add("modify")
                return nil
            }
            func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws { add("validate") }
            func serviceResultFailure(
                response: URLResponse?, data: Data?, request: URLRequest?, error: any Error
            ) { add("failure") }
            func updateUIBegin(response: URLResponse?) { add("begin") }
            func updateUIEnd(response: URLResponse?) { add("end") }
            func didFinishCollectingTaskMetrics(
                metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?,
                error: (any Error)?
            ) { add("metrics") }
        }
        let delegate = Tags()
        let service = WebService.make(HandSession(text: "{}"), delegate: delegate)
        service.GET("/x").configure { $0.options[Feature.self] = "search" }
            .response { _, _ in throw TestError() }.recover { _ in .empty }.updateUI { _ in }.resume()
        let tags = await delegate.tags.wait(for: 8)
        let names = ["modify", "sent", "received", "validate", "failure", "begin", "end", "metrics"]
        #expect(tags == names.map { "\($0) search" })
        #expect(delegate.currentRequest == nil)
    }

    @Test("A failure is reported with its first cause, and again after a recovery")
    func firstCause() async {
        let recorder = Recorder()
        WebService.make(HandSession(text: "{}"), delegate: recorder).GET("/x")
            .response { _, _ in throw TestError(name: "first") }
            .recover { _ in throw TestError(name: "second") }
            .recover { _ in .empty }
            .response { _, _ in throw TestError(name: "third") }
            .resume()
        let calls = await recorder.calls.wait(for: 7)
        #expect(calls.filter { $0.hasPrefix("failure") } == ["failure first /v1/x", "failure third /v1/x"])
    }

    @Test("The failure of a typed step is reported once, even if further steps follow")
    func typedFailure() async throws {
        let recorder = Recorder()
        let task = WebService.make(HandSession(text: "{}"), delegate: recorder).GET("/x").data()
            .map { _ -> Int in throw TestError(name: "typed") }.map { $0 + 1 }
        await #expect(throws: TestError(name: "typed")) { try await task.value }
        let calls = await recorder.calls.wait(for: 6)
        #expect(calls.suffix(3) == ["validate", "failure typed /v1/x", "metrics true"])
    }

    @Test("updateUIBegin and updateUIEnd are called only for the UI handlers that run")
    func typedUI() async throws {
        let recorder = Recorder()
        let task = WebService.make(HandSession(text: "{}"), delegate: recorder).GET("/x").data()
            .updateErrorUI { _ in recorder.calls.add("must not run") }
            .updateUI { _ in recorder.calls.add("ui") }
        _ = try await task.value
        let calls = await recorder.calls.wait(for: 7)
        #expect(calls.filter { ["begin", "end", "ui", "must not run"].contains($0) } == ["begin", "ui", "end"])
    }

    @Test(
        "The delegate is not notified of sending or receiving if a task is cancelled before it is sent",
        arguments: [false, true])
    func cancelledBeforeSending(isInSession: Bool) async {
        let task = Mutex<SessionTask?>(nil)
        let cancelling = Recorder(modify: { _ in
            if !isInSession { task.withLock { $0 }?.cancel() }
            return nil
        })
        let session = AnsweringCancel { task.withLock { $0 }?.cancel() }
        let errors = Collected<URLError.Code?>()
        let made = WebService.make(session, delegate: cancelling).GET("/x").responseError {
            errors.add(($0 as? URLError)?.code)
        }
        task.withLock { $0 = made }
        made.resume()
        #expect(await errors.wait() == [.cancelled])
        await cancelling.calls.wait(for: 2)
        #expect(!cancelling.calls.values.contains { $0 == "sent" || $0.hasPrefix("received") })
        #expect(session.cancelled.values.count == (isInSession ? 1 : 0))
        #expect(!cancelling.calls.values.contains { $0.hasPrefix("received") })
    }

    @Test("A data task that is resumed twice notifies the delegate of one request")
    func resumedTwice() throws {
        let recorder = Recorder()
        let request = try Request(url: "https://h/").urlRequest()
        let task = Announcement(recorder, request, nil).announcing {
            HandSession.Exchange(request, $0) { _ in }
        }
        task.resume()
        task.resume()
        #expect(recorder.calls.values == ["sent"])
    }

    @Test("A data task that has completed before it is resumed does not notify the delegate")
    func completedBeforeResume() throws {
        let recorder = Recorder()
        let request = try Request(url: "https://h/").urlRequest()
        let task = Announcement(recorder, request, nil).announcing { completion in
            completion(nil, nil, URLError(.cancelled))
            return HandSession.Exchange(request, completion) { _ in }
        }
        task.resume()
        #expect(recorder.calls.values == [])
    }

    @Test(
        "A session that completes twice is reported once, and its redirect is followed once", arguments: [false, true])
    func twice(hasDelegate: Bool) async throws {
        let recorder = Recorder()
        let url = try #require(URL(string: "https://h/v1/x"))
        let session = HandSession()
        let service = WebService.make(session, delegate: hasDelegate ? recorder : nil)
        let task = service.POST("/x").data()
        task.resume()
        // Both completions arrive before the response to the next request.
        let redirect = HTTPURLResponse(
            url: url, statusCode: 307, httpVersion: "HTTP/1.1", headerFields: ["Location": "/y"])
        for _ in 0..<2 { session.exchanges.values[0].completion(Data(), redirect, nil) }
        let second = await session.exchanges.wait(for: 2)[1]
        for _ in 0..<2 { second.respond() }
        let response = try await task.response
        #expect(response.status == 200)
        #expect(response.redirects == [url])
        #expect(session.exchanges.values.count == 2)
        #expect(recorder.calls.values.filter { $0.hasPrefix("received") }.count == (hasDelegate ? 2 : 0))
        #expect(task.task.timeline.events.filter { $0.kind == .redirect }.count == 1)
    }

    @Test("A service holds a weak reference to its delegate")
    func weak() {
        let service: WebService
        do {
            let recorder = Recorder()
            service = WebService.make(delegate: recorder)
            #expect(service.passthroughDelegate === recorder)
        }
        #expect(!(service.passthroughDelegate is Recorder))
    }

    @Test("The delegate of a service used as a session is notified of every request sent through it")
    func serviceAsSession() async throws {
        let recorder = Recorder()
        let inner = WebService.make(HandSession(text: "{}"), delegate: recorder)
        let outer = WebService.make(inner, base: "https://other")
        let done = Collected<Int>()
        outer.GET("/y").response { data, _ in done.add(data?.count ?? 0) }.resume()
        #expect(await done.wait() == [2])
        #expect(recorder.calls.values.prefix(3) == ["modify", "sent", "received 200 2 /y false"])

        let plain = URLRequest(url: try #require(URL(string: "https://plain/z")))
        let task = inner.dataTask(request: plain) { data, _, _ in done.add(data?.count ?? 0) }
        #expect(recorder.sent.values.count == 1)
        task.resume()
        #expect(recorder.sent.values.last == plain)
        #expect(done.values == [2, 2])
    }

    @Test("A service used as a session completes an invalid request once with an error, on resume")
    func invalidThroughService() {
        let recorder = Recorder()
        let service = WebService.make(delegate: recorder)
        let errors = Collected<WebServiceError.Code?>()
        let task = service.dataTask(request: Request(url: "ftp://h/")) { _, _, error in
            errors.add((error as? WebServiceError)?.code)
        }
        #expect(errors.values.isEmpty)
        task.resume()
        task.resume()
        task.cancel()
        #expect(errors.values == [.invalidURL])
    }

    @Test("A URLRequest and a request of a custom type can be sent")
    func encodables() async throws {
        struct Signed: URLRequestEncodable {
            let url: URL
            var urlRequestValue: URLRequest {
                var request = URLRequest(url: url)
                request.httpMethod = "PATCH"
                return request
            }
        }
        let url = try #require(URL(string: "https://plain/z?a=1"))
        let session = HandSession(text: "{}")
        let service = WebService.make(session)
        service.sessionTask(request: URLRequest(url: url)).resume()
        service.sessionTask(request: Signed(url: url)).resume()
        let sent = session.exchanges.values.map(\.request.urlRequestValue)
        #expect(sent.map(\.url) == [url, url])
        #expect(sent.map(\.httpMethod) == ["GET", "PATCH"])
    }
}
