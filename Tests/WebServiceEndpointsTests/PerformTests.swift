import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("Performing typed requests", .permit)
struct PerformTests {
    private let endpoint = HandEndpoint()

    struct Beer: Codable, Sendable, Equatable {
        var name: String
    }

    struct Get<Output: Sendable>: HTTPServiceRequest {
        var path = "/beers"
        var decoding: @Sendable (Response) throws -> Output
        func request(for service: WebService) -> Request { service.request(.GET, path: path) }
        func decode(_ response: Response) throws -> Output { try decoding(response) }
    }

    struct VoidRequest: HTTPServiceRequest {
        typealias Output = Void
        func request(for service: WebService) -> Request { service.request(.DELETE, path: "/beers/1") }
    }

    struct DataRequest: HTTPServiceRequest {
        typealias Output = Data
        func request(for service: WebService) -> Request { service.request(.GET, path: "/beers") }
    }

    struct StringRequest: HTTPServiceRequest {
        typealias Output = String
        func request(for service: WebService) -> Request { service.request(.GET, path: "/beers") }
    }

    struct BeerRequest: HTTPServiceRequest {
        typealias Output = Beer
        func request(for service: WebService) throws -> Request { service.request(.GET, path: "/beers/1") }
    }

    struct OptionalRequest: HTTPServiceRequest {
        typealias Output = Beer?
        func request(for service: WebService) throws -> Request { service.request(.GET, path: "/beers/1") }
    }

    struct BrokenRequest: HTTPServiceRequest {
        typealias Output = String
        func request(for service: WebService) throws -> Request { throw TestError(name: "broken") }
    }

    @Test("An HTTP request is decoded as its output type: Void, Data, String, Decodable or Optional")
    func outputs() async throws {
        let service = WebService.make(HandSession(text: #"{"name":"Pale"}"#))
        try await service.perform(VoidRequest()).value
        #expect(try await service.perform(DataRequest()).value == Data(#"{"name":"Pale"}"#.utf8))
        #expect(try await service.perform(StringRequest()).value == #"{"name":"Pale"}"#)
        #expect(try await service.perform(BeerRequest()).value == Beer(name: "Pale"))
        #expect(try await service.perform(OptionalRequest()).value == Beer(name: "Pale"))
        service.session = HandSession(text: "")
        #expect(try await service.perform(OptionalRequest()).value == nil)
        let error = await #expect(throws: WebServiceError.self) { try await service.perform(BeerRequest()).value }
        #expect(error?.code == .emptyResponse)
    }

    @Test("A task of a typed request that was changed fails and names the place of the options")
    func changedTask() async throws {
        let session = HandSession(text: "x")
        let service = WebService.make(session)
        let changes: [@Sendable (TypedTask<String>) -> Void] = [
            { $0.task.setTimeout(.seconds(1)) }, { $0.task.setDeadline(.seconds(1)) },
            { $0.task.setHeaderValue("1", forName: "X-A") }, { $0.task.intercepted(by: RetryPolicy()) },
            { _ = $0.configure { $0.options.maximumResponseBytes = 9 } },
        ]
        for change in changes {
            let task = service.perform(StringRequest())
            change(task)
            let error = await #expect(throws: WebServiceError.self) { try await task.value }
            #expect(error?.code == .encoding)
            #expect(error?.message.contains("request(for:)") == true)
        }
        #expect(session.exchanges.values.isEmpty)
        let task = service.perform(StringRequest())
        #expect(try await task.value == "x")
        task.task.setTimeout(.seconds(1))
        #expect(try await task.value == "x")
    }

    @Test("A request is sent to its path below the base URL")
    func sends() async throws {
        let session = HandSession(text: "{}")
        let service = WebService.make(session)
        let task = service.perform(DataRequest())
        _ = try await task.value
        #expect(session.exchanges.values.first?.request.urlRequestValue.url?.absoluteString == "https://h/v1/beers")
        #expect(task.task.request.url?.absoluteString == "https://h/v1/beers")
        #expect(try await task.response.status == 200)
        #expect(try await task.response.source == .network)
        #expect(task.task.metrics.responseTime != nil)
        #expect(task.task.timeline.events.count == 1)
    }

    @Test("A custom decode method is used, and the error that it throws is the error of the task")
    func ownDecoding() async throws {
        let service = WebService.make(HandSession(text: "abc"))
        #expect(try await service.perform(Get(decoding: { $0.data.count })).value == 3)
        await #expect(throws: TestError(name: "no")) {
            try await service.perform(Get<Int>(decoding: { _ in throw TestError(name: "no") })).value
        }
    }

    @Test("A status outside 200 to 299 is an error with the request, the response and the body")
    func status() async throws {
        let service = WebService.make(HandSession(text: "gone", status: 410))
        let task = service.perform(StringRequest())
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.status == 410)
        #expect(error?.body == Data("gone".utf8))
        #expect(error?.request?.url?.absoluteString == "https://h/v1/beers")
        #expect(try await task.response.status == 410)
    }

    @Test("A transport error is a URLError, and a request that fails to build throws its own error without being sent")
    func failures() async throws {
        let session = HandSession { $0.completion(nil, nil, URLError(.cannotConnectToHost)) }
        let service = WebService.make(session)
        let error = await #expect(throws: URLError.self) { try await service.perform(StringRequest()).value }
        #expect(error?.code == .cannotConnectToHost)
        await #expect(throws: TestError(name: "broken")) { try await service.perform(BrokenRequest()).value }
        #expect(session.exchanges.values.count == 1)
    }

    @Test("A request without a matching endpoint fails with noEndpoint")
    func noEndpoint() async throws {
        let service = WebService(endpoints: [HTTPEndpoint()])
        let error = await #expect(throws: WebServiceError.self) { try await service.perform(TextRequest()).value }
        #expect(error?.code == .noEndpoint)
        #expect(error?.message.contains("TextRequest") == true)
        let none = WebService(endpoints: [])
        let second = await #expect(throws: WebServiceError.self) { try await none.perform(DataRequest()).value }
        #expect(second?.code == .noEndpoint)
    }

    @Test("The first endpoint that supports a request handles it")
    func order() async throws {
        let (first, second) = (HandEndpoint(), HandEndpoint())
        let service = WebService(endpoints: [HTTPEndpoint(where: { _ in false }), first, second])
        let task = service.perform(TextRequest()).resume()
        await first.fetches.wait()[0].respond("one")
        #expect(try await task.value == "one")
        #expect(try await task.response.source == .endpoint)
        #expect(second.fetches.values.isEmpty)
    }

    @Test("A task has no effect before resume and is deallocated if it is never resumed")
    func lazy() async throws {
        let service = WebService(endpoints: [endpoint])
        let freed = Collected<String>()
        do {
            let canary = Canary { freed.add("freed") }
            _ = service.perform(TextRequest()).onCompletion { _ in canary.touch() }
        }
        #expect(freed.values == ["freed"])
        #expect(endpoint.fetches.values.isEmpty)
        #expect(!service.containsRequests())
    }

    @Test("A value of the wrong type is an error that names both types")
    func wrongOutput() async throws {
        let endpoint = HandEndpoint { text, _ in text.count }
        let service = WebService(endpoints: [endpoint])
        let task = service.perform(TextRequest()).resume()
        await endpoint.fetches.wait()[0].respond("one")
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .unexpectedOutput)
        #expect(error?.message == "the endpoint returned Int for TextRequest instead of String")
    }

    @Test("The completion handler runs on the main actor with data, an error or a cancellation")
    func closures() async throws {
        let service = WebService(endpoints: [endpoint])
        let answers = Collected<String>()
        let hear: @MainActor @Sendable (ServiceResponse<String>) -> Void = { response in
            MainActor.assertIsolated()
            answers.add(
                "\(response.data ?? "-") \(response.error.map { "\($0)" } ?? "-") "
                    + "\(response.isCanceled) \(response.isDuplicate)")
        }
        service.perform(TextRequest(), completion: hear)
        await endpoint.fetches.wait()[0].respond("one")
        #expect(await answers.wait().last == "one - false false")
        service.perform(TextRequest(), completion: hear)
        await endpoint.fetches.wait(for: 2)[1].fail(TestError())
        #expect(await answers.wait(for: 2).last == "- TestError(name: \"test\") false false")
        service.perform(TextRequest(), completion: hear).cancel()
        #expect(await answers.wait(for: 3).last == "- - true false")
        service.perform(TextRequest(), key: "k", completion: { _ in })
        service.perform(TextRequest(), key: "k", duplicates: .reject, completion: hear)
        #expect(await answers.wait(for: 4).last == "- - true true")
    }

    @Test("The delegate receives the request, the key and the source, and the service references it weakly")
    func delegates() async throws {
        final class Delegate: ServiceDelegate {
            let calls = Collected<String>()
            func serviceDidRespond(
                _ response: ServiceResponse<any Sendable>, to request: any ServiceRequest,
                key: (any Hashable & Sendable)?, isFromStorage: Bool
            ) {
                if let request = request as? TextRequest {
                    calls.add(
                        "\(request.name) \(response.convert(for: request).data ?? "-") "
                            + "\(key as? Int ?? 0) \(isFromStorage)")
                }
            }
        }
        let service = WebService(endpoints: [endpoint])
        var delegate: Delegate? = Delegate()
        let calls = try #require(delegate?.calls)
        if let delegate { service.perform(TextRequest(name: "x"), key: 7, delegate: delegate) }
        await endpoint.fetches.wait()[0].respond("one")
        #expect(await calls.wait() == ["x one 7 false"])

        let task = try #require(delegate.map { service.perform(TextRequest(), delegate: $0) })
        delegate = nil
        await endpoint.fetches.wait(for: 2)[1].respond("two")
        #expect(try await task.value == "two")
        #expect(calls.values.count == 1)
    }

    @Test("A response can be converted only to the output type of its request")
    func conversion() {
        let response = ServiceResponse<any Sendable>.data("text")
        #expect(response.convert(for: TextRequest()).data == "text")
        #expect((response.convert(to: Int.self).error as? WebServiceError)?.code == .unexpectedOutput)
        #expect(ServiceResponse<any Sendable>.canceledRequest(duplicate: true).convert(to: Int.self).isDuplicate)
    }

    @Test("The passthrough delegate receives each call of the exchange once and is notified of a decoding error")
    func passthrough() async throws {
        final class Delegate: PartialDelegate {
            let calls = Collected<String>()
            func requestSent(request: URLRequest) { calls.add("sent") }
            func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {
                calls.add("received")
            }
            func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {
                calls.add("validate")
            }
            func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error) {
                calls.add(
                    "failure \((error as? WebServiceError)?.code.description ?? "?") \(request?.url?.path ?? "-")")
            }
        }
        let delegate = Delegate()
        let service = WebService.make(HandSession(text: "no JSON"), delegate: delegate)
        _ = await service.perform(BeerRequest()).result
        #expect(delegate.calls.values == ["sent", "received", "validate", "failure decoding /v1/beers/1"])
    }

    @Test("The error of the delegate is that of a typed request whose deadline has passed", arguments: [false, true])
    func rejectedDeadline(hasInterceptor: Bool) async throws {
        final class Delegate: PartialDelegate {
            func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {
                if error != nil { throw TestError(name: "rejected") }
            }
        }
        let (delegate, session, clock) = (Delegate(), HandSession(), ManualTimekeeper())
        let service = WebService.make(session, delegate: delegate, timekeeper: clock)
        if hasInterceptor { service.interceptors = [.userAgent("test")] }
        let task = service.perform(BeerRequest()).resume()
        await session.exchanges.wait()
        clock.advance(by: .seconds(3_600))
        await #expect(throws: TestError(name: "rejected")) { try await task.value }
    }

    @Test("A task without a request of its own ignores the handling of duplicates")
    func duplicatesOfOwners() async throws {
        let passive = PassiveTask<Int>()
        passive.task.task.setDuplicates(.join)
        passive.task.resume()
        #expect(passive.complete(1))
        #expect(try await passive.task.value == 1)
        let typed = WebService.make(HandSession(text: "no JSON")).perform(BeerRequest())
        typed.task.setDuplicates(.join)
        let error = await #expect(throws: WebServiceError.self) { try await typed.value }
        #expect(error?.code == .decoding)
    }

    @Test("Interceptors, deadlines and progress apply to typed requests")
    func policies() async throws {
        struct Tagging: Interceptor {
            func intercept(_ request: Request, next: Next) async throws -> Response {
                var request = request
                request.headers["X-Tag"] = "1"
                return try await next(request)
            }
        }
        struct Limited: HTTPServiceRequest {
            typealias Output = Data
            func request(for service: WebService) -> Request {
                var request = service.request(.GET, path: "/slow")
                request.options.deadline = .seconds(5)
                return request
            }
        }
        let session = HandSession()
        let clock = ManualTimekeeper()
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [Tagging()]
        let task = service.perform(Limited()).resume()
        let exchange = await session.exchanges.wait()[0]
        #expect(exchange.request.urlRequestValue.value(forHTTPHeaderField: "X-Tag") == "1")
        clock.advance(by: .seconds(6))
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .deadline)

        let mock = MockSession()
        mock.addStub(MockResponse(statusCode: 200, data: Data(count: 11)))
        service.session = mock
        let progress = Collected<TransferProgress>()
        #expect(try await service.perform(Limited()).onProgress { progress.add($0) }.value.count == 11)
        #expect(progress.values == [TransferProgress(bytesReceived: 11, bytesToReceive: 11)])
    }

    @Test("A progress handler that is added to a running typed request is called")
    func lateProgress() async throws {
        let session = HandStreamingSession()
        let task = WebService.make(session).perform(DataRequest()).resume()
        let exchange = await session.exchanges.wait()[0]
        let progress = Collected<Int64>()
        task.onProgress { progress.add($0.bytesReceived) }
        try exchange.receive(status: 200)
        _ = try exchange.receive("abc")
        #expect(await progress.wait() == [3])
        exchange.complete()
        _ = try await task.value
    }

    @Test("Cancelling a task cancels its exchange once")
    func cancelOnWire() async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let task = service.perform(DataRequest()).resume()
        let exchange = await session.exchanges.wait()[0]
        task.cancel()
        #expect(await task.serviceResponse.isCanceled)
        await eventually { exchange.log.contains("cancel") }
        #expect(exchange.log == ["resume", "cancel"])
    }

    @Test("Cancelling the awaiting Swift task cancels the request")
    func cancelAwaiting() async throws {
        let service = WebService(endpoints: [endpoint])
        let awaiting = Task { try await service.perform(TextRequest()).value }
        let fetch = await endpoint.fetches.wait()[0]
        awaiting.cancel()
        await #expect(throws: URLError(.cancelled)) { try await awaiting.value }
        await endpoint.cancels.wait()
        #expect(fetch.wasCancelled)
        #expect(!service.containsRequests())
    }

    @Test("Requests count as activity while an endpoint handles them, unless the endpoint opts out")
    func activity() async throws {
        let service = WebService.make(HandSession(text: ""))
        service.endpoints = [HTTPEndpoint(countsAsActivity: false), endpoint]
        let counter = ActivityCounter()
        service.activity = counter
        var counts = counter.counts.makeAsyncIterator()
        #expect(await counts.next() == 0)
        let first = service.perform(TextRequest()).resume()
        let joined = service.perform(TextRequest(), duplicates: .join).resume()
        await endpoint.fetches.wait()
        #expect(await counts.next() == 1)
        let second = service.perform(TextRequest()).resume()
        await endpoint.fetches.wait(for: 2)
        #expect(await counts.next() == 2)
        try await service.perform(VoidRequest()).value
        #expect(counter.count == 2)
        endpoint.fetches.values[1].respond("")
        _ = await second.result
        #expect(counter.count == 1)
        endpoint.fetches.values[0].fail(TestError())
        _ = await (first.result, joined.result)
        #expect(counter.count == 0)
        #expect(await counts.next() == 0)
    }
}
