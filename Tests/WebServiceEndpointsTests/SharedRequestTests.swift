import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("Plain requests that are compared with others", .permit)
struct SharedRequestTests {
    private let clock = ManualTimekeeper()
    private let session = HandSession()
    private let service: WebService

    init() {
        service = WebService.make(session, timekeeper: clock)
    }

    private func isCancelled(_ result: Result<some Sendable, any Error>) -> Bool {
        guard case .failure(let error as URLError) = result else { return false }
        return error.code == .cancelled
    }

    private func code(_ result: Result<some Sendable, any Error>) -> WebServiceError.Code? {
        guard case .failure(let error as WebServiceError) = result else { return nil }
        return error.code
    }

    @Test("Tasks that join share one exchange, and each ends once")
    func join() async throws {
        let ends = Collected<String>()
        let tasks = (0..<3).map { number in
            service.GET("/x").setDuplicates(.join).string().onCompletion { _ in ends.add("\(number)") }.resume()
        }
        let exchange = await session.exchanges.wait()[0]
        #expect(service.exchanges.map(\.kind) == [.request, .request, .request])
        #expect(service.exchanges.allSatisfy { $0.request?.url?.path == "/v1/x" })
        exchange.respond("one")
        for task in tasks { #expect(try await task.value == "one") }
        #expect(await ends.wait(for: 3).sorted() == ["0", "1", "2"])
        #expect(try await tasks[0].response.source == .network)
        #expect(try await tasks[1].response.source == .joined)
        #expect(tasks[1].timeline.events.map(\.kind) == [.joined, .attempt])
        #expect(tasks[2].request.url?.path == "/v1/x")
        #expect(session.exchanges.values.count == 1)
        #expect(service.exchanges.isEmpty)
        #expect(!service.containsRequests())
        // The next one is sent again.
        let next = service.GET("/x").setDuplicates(.join).string().resume()
        await session.exchanges.wait(for: 2)[1].respond("two")
        #expect(try await next.value == "two")
    }

    @Test("Cancelling one of several joined tasks leaves the others; the last one ends the exchange")
    func cancelJoined() async throws {
        let first = service.GET("/x").setDuplicates(.join).string().resume()
        let second = service.GET("/x").setDuplicates(.join).string().resume()
        let exchange = await session.exchanges.wait()[0]
        first.cancel()
        #expect(isCancelled(await first.result))
        #expect(!exchange.log.contains("cancel"))
        exchange.respond("x")
        #expect(try await second.value == "x")

        let others = (0..<2).map { _ in service.GET("/y").setDuplicates(.join).string().resume() }
        let other = await session.exchanges.wait(for: 2)[1]
        for task in others { task.cancel() }
        for task in others { #expect(isCancelled(await task.result)) }
        await eventually { other.log.contains("cancel") }
        #expect(!service.containsRequests())
    }

    @Test("A duplicate is rejected with an error that names the request")
    func reject() async throws {
        let first = service.GET("/x?token=secret").setDuplicates(.reject).string().resume()
        let second = service.GET("/x?token=secret").setDuplicates(.reject).string()
        let error = await #expect(throws: WebServiceError.self) { try await second.value }
        #expect(error?.code == .duplicateRequest)
        #expect(
            error?.message == "an equal request is in flight: GET https://h/v1/x; use .join instead of .reject to "
                + "share its response")
        #expect(error?.request?.method == .GET)
        await session.exchanges.wait()[0].respond("x")
        #expect(try await first.value == "x")
        #expect(session.exchanges.values.count == 1)
    }

    @Test("A duplicate replaces the request in flight, or waits for it")
    func replaceAndQueue() async throws {
        let first = service.GET("/x").setDuplicates(.allow).string().resume()
        await session.exchanges.wait()
        let second = service.GET("/x").setDuplicates(.replace).string().resume()
        #expect(isCancelled(await first.result))
        let exchanges = await session.exchanges.wait(for: 2)
        await eventually { exchanges[0].log.contains("cancel") }
        let third = service.GET("/x").setDuplicates(.queue).string().resume()
        #expect(third.timeline.events.map(\.kind) == [.queued])
        #expect(session.exchanges.values.count == 2)
        exchanges[1].respond("second")
        #expect(try await second.value == "second")
        await session.exchanges.wait(for: 3)[2].respond("third")
        #expect(try await third.value == "third")
    }

    @Test(
        "Method, URL, body and header fields make requests different, the context of a trace does not",
        arguments: [
            (nil as String?, true), ("method", false), ("path", false), ("query", false), ("body", false),
            ("type", false), ("header", false), ("cookies", false), ("policy", false), ("trace", true), ("case", true),
            ("file", false), ("provider", false),
        ])
    func comparison(difference: String?, isEqual: Bool) async throws {
        let folder = TemporaryFolder.forTest().url
        let file = folder.appendingPathComponent("body")
        try Data("body".utf8).write(to: file)
        func task(_ differs: Bool) -> SessionTask {
            let change = differs ? difference : nil
            let task = change == "method" ? service.PUT("/x") : service.POST(change == "path" ? "/y" : "/x")
            task.setQueryParameters(["a": change == "query" ? 2 : 1])
            task.setBody(
                Data((change == "body" ? "other" : "body").utf8), contentType: change == "type" ? "b/b" : "a/a")
            task.setHeaderValue(
                change == "header" ? "de" : "en", forName: change == "case" ? "x-LANGUAGE" : "X-Language")
            if change == "trace" { task.setHeaderValue("00-1-2-01", forName: "Traceparent") }
            if difference == "file" { task.setBody(file: file) }
            if difference == "provider" { task.setBody { Data("body".utf8) } }
            return task.configure { request in
                if change == "cookies" { request.options.shouldHandleCookies = false }
                if change == "policy" { request.options.cachePolicy = .reloadIgnoringLocalCacheData }
            }
        }
        let first = task(false).setDuplicates(.reject).string().resume()
        let second = task(true).setDuplicates(.reject).string().resume()
        let count = isEqual ? 1 : 2
        for exchange in await session.exchanges.wait(for: count) { exchange.respond("x") }
        #expect(try await first.value == "x")
        #expect(code(await second.result) == (isEqual ? .duplicateRequest : nil))
        #expect(session.exchanges.values.count == count)
    }

    @Test("A key identifies a request in place of its content, also among typed requests")
    func keys() async throws {
        let first = service.GET("/x").setDuplicates(.join, key: "k").string().resume()
        let second = service.GET("/y").setDuplicates(.join, key: "k").string().resume()
        let typed = service.perform(PathRequest(), key: "k", duplicates: .reject)
        #expect(code(await typed.result) == .duplicateRequest)
        #expect(service.containsRequest(key: "k"))
        await session.exchanges.wait()[0].respond("x")
        #expect(try await first.value == "x")
        #expect(try await second.value == "x")
        let third = service.GET("/z").setDuplicates(.allow, key: "k").string().resume()
        service.cancelRequests(key: "k")
        #expect(isCancelled(await third.result))
    }

    @Test("Cancelling everything ends each of the joined tasks, and the exchange")
    func cancelAll() async throws {
        let tasks = (0..<3).map { _ in service.GET("/x").setDuplicates(.join).string().resume() }
        let exchange = await session.exchanges.wait()[0]
        service.cancelAll()
        for task in tasks { #expect(isCancelled(await task.result)) }
        await eventually { exchange.log.contains("cancel") }
        #expect(service.exchanges.isEmpty)
    }

    @Test("A plain request continues when the service is deallocated")
    func deallocatedService() async throws {
        var service: WebService? = WebService.make(session, timekeeper: clock)
        let task = service?.GET("/x").setDuplicates(.join).string().resume()
        service = nil
        await session.exchanges.wait()[0].respond("x")
        #expect(try await task?.value == "x")
    }

    @Test("Requests of different accounts are not equal")
    func accounts() async throws {
        let authentication = Authentication(TokenSource(.bearer("a")))
        service.interceptors = [authentication]
        let first = service.GET("/me").setDuplicates(.join).string().resume()
        authentication.clear()
        let second = service.GET("/me").setDuplicates(.join).string().resume()
        for (index, exchange) in await session.exchanges.wait(for: 2).enumerated() { exchange.respond("\(index)") }
        #expect(Set([try await first.value, try await second.value]) == ["0", "1"])
    }

    @Test("Each joined task has its own deadline")
    func deadlines() async throws {
        let first = service.GET("/x").setDeadline(.seconds(5)).setDuplicates(.join).string().resume()
        let exchange = await session.exchanges.wait()[0]
        let second = service.GET("/x").setDeadline(.seconds(60)).setDuplicates(.join).string().resume()
        clock.advance(by: .seconds(5))
        #expect(code(await first.result) == .deadline)
        clock.advance(by: .seconds(30))
        #expect(!exchange.log.contains("cancel"))
        exchange.respond("x")
        #expect(try await second.value == "x")
        #expect(clock.pending == 0)
    }

    @Test("An error reaches each of the joined tasks, and each follows its own rules")
    func errors() async throws {
        let tasks = [
            service.GET("/x").setDuplicates(.join).string().resume(),
            service.GET("/x").setDuplicates(.join).string().validate(statuses: [404]).resume(),
        ]
        await session.exchanges.wait()[0].respond("missing", status: 404)
        #expect(code(await tasks[0].result) == .unacceptableStatus)
        #expect(try await tasks[1].value == "missing")
    }

    @Test("A stream cannot be shared, and an invalid request is an error")
    func refused() async {
        #expect(code(await service.GET("/x").setDuplicates(.join).stream().result) == .encoding)
        #expect(code(await service.GET("/x").setDuplicates(.join).setBody(Data([1])).data().result) == .encoding)
        #expect(session.exchanges.values.isEmpty)
        #expect(service.exchanges.isEmpty)
    }
}

private struct PathRequest: HTTPServiceRequest, Hashable {
    typealias Output = String
    func request(for service: WebService) -> Request { service.request(.GET, path: "/typed") }
}
