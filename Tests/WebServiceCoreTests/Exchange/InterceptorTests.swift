import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

@Suite("Interceptors", .permit)
struct InterceptorTests {
    private let session = HandSession(text: "x")

    private func naming(_ name: String, _ log: Collected<String>) -> any Interceptor {
        ClosureInterceptor { request, next in
            log.add("\(name) in")
            var request = request
            request.headers.add(name, for: "X-Path")
            let response = try await next(request)
            log.add("\(name) out")
            return response
        }
    }

    @Test("Interceptors of the service wrap those of the request, and earlier interceptors wrap later ones")
    func order() async throws {
        let log = Collected<String>()
        let service = WebService.make(session)
        service.interceptors = [naming("a", log), naming("b", log)]
        let task = service.GET("/x").intercepted(by: naming("c", log)).intercepted(by: naming("d", log))
        #expect(try await task.string().value == "x")
        #expect(log.values == ["a in", "b in", "c in", "d in", "d out", "c out", "b out", "a out"])
        #expect(
            session.exchanges.values.first?.request.urlRequestValue.value(forHTTPHeaderField: "X-Path") == "a, b, c, d")
    }

    @Test("The interceptor of a request runs over a service without interceptors")
    func ofRequest() async throws {
        let log = Collected<String>()
        let task = WebService.make(session).GET("/x").intercepted(by: naming("a", log))
        #expect(try await task.string().value == "x")
        #expect(log.values == ["a in", "a out"])
    }

    @Test("The `CancellationError` of an interceptor is delivered as `URLError.cancelled`")
    func cancellationError() async {
        let service = WebService.make(HandSession(text: "x"))
        service.interceptors = [.closure { _, _ in throw CancellationError() }]
        let result = await service.GET("/x").string().result
        #expect(throws: URLError(.cancelled)) { try result.get() }
    }

    @Test("An interceptor can respond without sending, send the request again or throw an error")
    func freedom() async throws {
        let service = WebService.make(session)
        let url = try #require(URL(string: "https://h/"))
        service.interceptors = [
            .closure { _, _ in
                try #require(
                    Response(
                        status: 203, headers: ["Content-Type": "text/plain"], data: Data("mine".utf8), url: url,
                        source: .mock))
            }
        ]
        let response = try await service.GET("/x").data().response
        #expect(response.status == 203)
        #expect(response.source == .mock)
        #expect(response.attempts == 0)
        #expect(session.exchanges.values.isEmpty)

        service.interceptors = [
            .closure { request, next in
                _ = try await next(request)
                return try await next(request)
            }
        ]
        #expect(try await service.GET("/x").data().value.count == 1)
        #expect(session.exchanges.values.count == 2)

        service.interceptors = [.closure { _, _ in throw TestError(name: "mine") }]
        let result = await service.GET("/x").data().result
        #expect(throws: TestError(name: "mine")) { try result.get() }
    }

    @Test("The header field interceptor adds missing fields and preserves existing ones")
    func headers() async throws {
        let service = WebService.make(session)
        service.interceptors = [.headers(["Accept": "a/b", "X-App": "1"])]
        _ = try await service.GET("/x").setHeaderValue("c/d", forName: "accept").data().value
        let sent = try #require(session.exchanges.values.first).request.urlRequestValue
        #expect(sent.value(forHTTPHeaderField: "Accept") == "c/d")
        #expect(sent.value(forHTTPHeaderField: "X-App") == "1")
    }

    @Test("The header field interceptor preserves repeated fields")
    func repeatedHeaders() async throws {
        let service = WebService.make(session)
        service.interceptors = [.headers(["X-App": "1", "x-app": "2"])]
        _ = try await service.GET("/x").data().value
        let sent = try #require(session.exchanges.values.first).request.urlRequestValue
        #expect(sent.value(forHTTPHeaderField: "X-App") == "1, 2")
    }

    @Test("The user agent interceptor adds the field to requests without one")
    func userAgent() async throws {
        let service = WebService.make(session)
        service.interceptors = [.userAgent("Brewery/1.0")]
        _ = try await service.GET("/x").data().value
        _ = try await service.GET("/x").setHeaderValue("Own/2", forName: .userAgent).data().value
        let sent = session.exchanges.values.map { $0.request.urlRequestValue.value(forHTTPHeaderField: "User-Agent") }
        #expect(sent == ["Brewery/1.0", "Own/2"])
    }

    @Test("An interceptor receives the data of a body provider, which is called once")
    func provider() async throws {
        let service = WebService.make(session)
        let seen = Collected<Data?>()
        let made = Collected<Int>()
        service.interceptors = [
            .closure { request, next in
                seen.add(request.body)
                _ = try await next(request)
                return try await next(request)
            }
        ]
        _ = try await service.POST("/x").setBody(contentType: "a/b") {
            made.add(1)
            return Data("body".utf8)
        }.data().value
        #expect(seen.values == [Data("body".utf8)])
        #expect(made.values.count == 1)
        #expect(
            session.exchanges.values.map(\.request.urlRequestValue.httpBody) == [Data("body".utf8), Data("body".utf8)])
        #expect(
            session.exchanges.values.last?.request.urlRequestValue.value(forHTTPHeaderField: "Content-Type") == "a/b")
    }

    @Test("Cancelling an exchange cancels the interceptor and the transport once")
    func cancel() async {
        let session = HandSession()
        let service = WebService.make(session)
        let ended = Collected<String>()
        service.interceptors = [
            .closure { request, next in
                do { return try await next(request) } catch {
                    ended.add("\((error as? URLError)?.code == .cancelled)")
                    throw error
                }
            }
        ]
        let errors = Collected<URLError.Code?>()
        let task = service.GET("/x").responseError { errors.add(($0 as? URLError)?.code) }
        task.resume()
        let exchange = await session.exchanges.wait()[0]
        task.cancel()
        #expect(await errors.wait() == [.cancelled])
        #expect(await ended.wait() == ["true"])
        exchange.respond("late")
        #expect(exchange.log == ["resume", "cancel"])
        #expect(errors.values.count == 1)
    }

    @Test("The deadline ends an exchange whose interceptor does not return")
    func deadline() async {
        let clock = ManualTimekeeper()
        let service = WebService.make(HandSession(), timekeeper: clock)
        let began = Collected<Int>()
        service.interceptors = [
            .closure { _, next in
                began.add(1)
                try await next.task.service.clock.sleep(for: .seconds(3600))
                throw TestError()
            }
        ]
        let errors = Collected<WebServiceError.Code?>()
        service.GET("/x").setDeadline(.seconds(5)).responseError { errors.add(($0 as? WebServiceError)?.code) }.resume()
        await began.wait()
        clock.advance(by: .seconds(5))
        #expect(await errors.wait() == [.deadline])
    }

    @Test(
        "The number of requests in an exchange is limited, even if an interceptor sends in an endless loop")
    func messageLimit() async throws {
        let service = WebService.make(session)
        service.interceptors = [
            .closure { request, next in
                while true { _ = try await next(request) }
            }
        ]
        let result = await service.GET("/x").data().result
        let error = #expect(throws: WebServiceError.self) { try result.get() }
        #expect(error?.code == .tooManyAttempts)
        #expect(session.exchanges.values.count == SessionTask.maximumAttempts)
    }

    @Test("Without interceptors, an exchange over a synchronous session ends within resume()")
    func noTask() {
        let task = WebService.make(session).GET("/x")
        task.resume()
        #expect(session.exchanges.values.count == 1)
        #expect(task.state == .completed)
    }

    @Test(
        "Each of many intercepted exchanges ends exactly once, even if it is cancelled at any time")
    func races() async {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200))
        let service = WebService.make(session)
        service.interceptors = [.closure { try await $1($0) }, .retry()]
        let count = amount(1_000, thorough: 5_000) / CancelRaceTests.scale
        let ends = Collected<Int>()
        for index in 0..<count {
            let task = service.GET("/x").response { _, _ in ends.add(index) }.responseError { _ in ends.add(index) }
            task.resume()
            if index % 3 == 0 {
                task.cancel()
            } else if index % 3 == 1 {
                DispatchQueue.global().async { task.cancel() }
            }
        }
        #expect(Set(await ends.wait(for: count)).count == count)
        #expect(ends.values.count == count)
    }
}
