import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCore

/// Responses with an error of the body, over custom sessions.
@Suite("Responses whose status decides", .permit)
struct UnneededResponseTests {
    private static let failure = URLError(.networkConnectionLost)

    /// Returns a session that completes with the response, a part of its body and an error, and then
    /// with a response without an error.
    private func session(_ status: Int, _ error: any Error = failure) -> HandSession {
        let count = Collected<Int>()
        return HandSession { exchange in
            count.add(1)
            guard count.values.count == 1 else { return exchange.respond("end") }
            exchange.completion(Data("part".utf8), HandSession.response(status), error)
        }
    }

    @Test(
        "An error that accompanies a response with another status than 200 to 299 is that of its body"
    )
    func completion() async throws {
        for isStreamed in [false, true] {
            let service = WebService.make(session(503), timekeeper: nil)
            service.interceptors = [.retry(baseDelay: .zero, maximumDelay: .zero)]
            let task = service.GET("/x")
            if isStreamed {
                let body = try await task.stream().value.body
                #expect(try await body.collect(upTo: 10) == Data("end".utf8))
            } else {
                #expect(try await task.string().value == "end")
            }
            let attempts = task.timeline.events.filter { $0.kind == .attempt }
            #expect(attempts.map(\.status) == [503, 200])
            #expect(attempts.map(\.detail) == ["URLError -1005", ""])
        }
    }

    @Test("The error of a response is that of its status, with the error of the body as its cause")
    func error() async throws {
        let task = WebService.make(session(404)).GET("/x").data()
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.message == "the server responded with 404 Not Found, and the body is incomplete: URLError -1005")
        #expect(error?.body == Data("part".utf8))
        #expect((error?.underlying as? URLError)?.code == .networkConnectionLost)
        #expect(error?.request?.method == .GET)
        // Also for handlers, which accept every status.
        let failures = Collected<String>()
        let untyped = WebService.make(session(404)).GET("/x").response { _, _ in failures.add("response") }
            .responseError { failures.add("\(($0 as? WebServiceError)?.code as Any)") }.resume()
        #expect(await failures.wait() == ["\(WebServiceError.Code.unacceptableStatus as Any?)"])
        _ = untyped
    }

    @Test(
        "An error of a successful response, of no response and a cancellation are not those of a body")
    func otherErrors() async throws {
        for status in [200, 204, 299] {
            let task = WebService.make(session(status)).GET("/x").data()
            let error = await #expect(throws: URLError.self, "\(status)") { try await task.value }
            #expect(error?.code == .networkConnectionLost, "\(status)")
        }
        let cancelled = WebService.make(session(503, URLError(.cancelled))).GET("/x").data()
        let cancellation = await #expect(throws: URLError.self) { try await cancelled.value }
        #expect(cancellation?.code == .cancelled)
        let url = try #require(URL(string: "file:///x"))
        let other = URLResponse(url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
        for response in [nil, other] {
            let session = HandSession { $0.completion(nil, response, Self.failure) }
            let task = WebService.make(session).GET("/x").data()
            let error = await #expect(throws: URLError.self) { try await task.value }
            #expect(error?.code == .networkConnectionLost)
        }
    }

    @Test("A body over the limit keeps its status, and an interceptor may replace it")
    func tooLarge() async throws {
        let service = WebService.make(HandSession(text: "0123456789", status: 500))
        let task = service.GET("/x").configure { $0.options.maximumResponseBytes = 4 }.data()
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.status == 500)
        #expect(error?.body == Data("0123".utf8))
        #expect((error?.underlying as? WebServiceError)?.code == .responseTooLarge)
        let replaced = service.GET("/x").configure { $0.options.maximumResponseBytes = 4 }.intercepted(
            by: .closure { request, next in
                var response = try await next(request)
                #expect(response.data == Data("0123".utf8))
                response.data = Data("new".utf8)
                return response
            })
        #expect(try await replaced.string().validateNothing().value == "new")
    }

    @Test("A redirect whose body is longer than 1 MiB ends its attempt at the head, or after 1 MiB")
    func longRedirect() throws {
        let bytes = Array("HTTP/1.1 302 Found\r\nLocation: /y\r\n\r\n".utf8)
        let head = try #require(ResponseHead(bytes: bytes, url: "https://mock.test/x"))
        func receiver() -> ResponseReceiver {
            ResponseReceiver(
                Request(url: "https://mock.test/x"), bodyLength: 0, source: .network)
        }
        #expect(throws: WebServiceError.self) {
            try receiver().didReceive(head, length: 2 << 20, decoder: nil)
        }
        let endless = receiver()
        try endless.didReceive(head, length: nil, decoder: nil)
        let part = [UInt8](repeating: 0, count: 600 << 10)
        let receive = { _ = try part.withUnsafeBytes { try endless.didReceive($0) } }
        try receive()
        try receive()  // the rest is discarded
        #expect(throws: WebServiceError.self) { try receive() }
    }

    @Test("The limit of 1 MiB does not apply to the body of a redirect that is not followed")
    func deliveredRedirect() async throws {
        let session = HandStreamingSession()
        let task = WebService.make(session).GET("/x").configure { $0.options.redirectPolicy = .manual }.data()
            .validateNothing().resume()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 302, fields: "Location: /y\r\n")
        let part = String(repeating: "x", count: 600 << 10)
        for _ in 0..<2 { _ = try exchange.receive(part) }
        exchange.complete()
        #expect(try await task.value.count == 1_200 << 10)
    }

    @Test("An error within the body of a successful response is the result")
    func interruptedSuccess() async throws {
        let session = HandStreamingSession()
        let task = WebService.make(session).GET("/x").data().resume()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        _ = try exchange.receive("part")
        exchange.receiver.didComplete(.failure(Self.failure), metrics: nil)
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .networkConnectionLost)
    }

    private struct InvalidCoding: ContentDecoder {
        func decodeBytes(
            _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
        ) throws -> Int { throw URLError(.cannotDecodeContentData) }

        func finish() throws {}
    }

    @Test("After an error in a body that is not needed, the exchange waits one second for its end")
    func stalledBody() async throws {
        let (session, clock) = (HandStreamingSession(), ManualTimekeeper())
        let task = WebService.make(session, timekeeper: clock).GET("/x").data().resume()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 503, decoder: InvalidCoding())
        _ = try exchange.receive("abc")
        clock.advance(by: .milliseconds(999))
        #expect(exchange.log == ["resume"])
        clock.advance(by: .milliseconds(1))
        #expect(exchange.log == ["resume", "cancel"])
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.status == 503)
    }

    @Test("An error mapper receives the response with the bytes before the error")
    func mapper() async throws {
        let mapper: any ErrorMapper = .closure {
            TestError(name: "\($0.status) \(String(decoding: $0.data, as: UTF8.self))")
        }
        struct Get: HTTPServiceRequest {
            typealias Output = Data
            func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
        }
        let service = WebService.make(session(404))
        service.errorMapper = mapper
        await #expect(throws: TestError(name: "404 part")) { try await service.GET("/x").data().value }
        service.session = session(404)
        await #expect(throws: TestError(name: "404 part")) { try await service.perform(Get()).value }
        service.session = session(404)
        await #expect(throws: TestError(name: "404 part")) { try await service.GET("/x").stream().value }
        // A status that the task accepts is not mapped.
        service.session = session(404)
        let error = await #expect(throws: WebServiceError.self) {
            try await service.GET("/x").data().validate(statuses: [404]).value
        }
        #expect(error?.code == .unacceptableStatus)
    }

    @Test(
        "A session around another one and the delegate receive the response together with the error")
    func wrapped() async throws {
        struct Wrapper: Session {
            let base: HandStreamingSession
            func dataTask(
                request: any URLRequestEncodable,
                completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
            ) -> any DataTask { base.dataTask(request: request, completion: completion) }
        }
        final class Delegate: PartialDelegate {
            let received = Collected<String>()
            func responseReceived(
                response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?
            ) {
                let status = (response as? HTTPURLResponse)?.statusCode ?? 0
                received.add("\(status) \(data?.count ?? -1) \((error as? URLError)?.code.rawValue ?? 0)")
            }
        }
        let base = HandStreamingSession()
        for (index, session) in ([base, Wrapper(base: base)] as [any Session]).enumerated() {
            let delegate = Delegate()
            let service = WebService.make(session, delegate: delegate)
            let task = service.GET("/x").data().resume()
            let exchange = await base.exchanges.wait(for: index + 1)[index]
            try exchange.receive(status: 404)
            _ = try exchange.receive("abc")
            exchange.receiver.didComplete(.failure(Self.failure), metrics: nil)
            let error = await #expect(throws: WebServiceError.self) { try await task.value }
            #expect(error?.status == 404)
            #expect(delegate.received.values == ["404 3 -1005"])
        }
    }

    @Test("An attempt timeout within the body of a 503 is followed by a retry of the status")
    func attemptTimeout() async throws {
        let (session, clock) = (HandStreamingSession(), ManualTimekeeper())
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [.retry(baseDelay: .zero, maximumDelay: .zero)]
        let task = service.GET("/x").configure { $0.options.attemptTimeout = .seconds(5) }.string().resume()
        let first = await session.exchanges.wait()[0]
        try first.receive(status: 503, fields: "Retry-After: 0\r\n")
        _ = try first.receive("abc")
        clock.advance(by: .seconds(5))
        await eventually {
            clock.advance(by: .zero)  // the pause of the retry
            return session.exchanges.values.count == 2
        }
        let second = await session.exchanges.wait(for: 2)[1]
        #expect(first.log == ["resume", "cancel"])
        first.receiver.didComplete(.failure(URLError(.cancelled)), metrics: nil)
        try second.receive(status: 200)
        _ = try second.receive("end")
        second.complete()
        #expect(try await task.value == "end")
    }

    @Test("The delegate receives the response whose body was interrupted, and not the cancellation")
    func interruptedAnnouncement() async throws {
        let (session, clock, delegate) = (HandStreamingSession(), ManualTimekeeper(), ResponseRecorder())
        let service = WebService.make(session, timekeeper: clock)
        service.passthroughDelegate = delegate
        service.interceptors = [.retry(baseDelay: .zero, maximumDelay: .zero)]
        let task = service.GET("/x").configure { $0.options.attemptTimeout = .seconds(5) }.string().resume()
        let first = await session.exchanges.wait()[0]
        try first.receive(status: 503, fields: "Retry-After: 0\r\n")
        _ = try first.receive("abc")
        clock.advance(by: .seconds(5))
        first.receiver.didComplete(.failure(URLError(.cancelled)), metrics: nil)
        #expect(await delegate.responses.wait() == ["503 abc"])
        task.cancel()
    }
}

/// Collects the status and the body of each response.
private final class ResponseRecorder: ServicePassthroughDelegate {
    let responses = Collected<String>()

    func requestSent(request: URLRequest) {}

    func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {
        let status = (response as? HTTPURLResponse)?.statusCode
        responses.add("\(status ?? 0) \(String(decoding: data ?? Data(), as: UTF8.self))")
    }

    func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error) {}
    func updateUIBegin(response: URLResponse?) {}
    func updateUIEnd(response: URLResponse?) {}
    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?, error: (any Error)?
    ) {}
}
