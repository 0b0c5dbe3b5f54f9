import Foundation
import TestSupport
import Testing
import WebServiceStorage

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("Request registry", .permit)
struct RegistryTests {
    struct Key: Hashable, Sendable {
        var value: String
    }

    enum OtherScope {
        struct Key: Hashable, Sendable {
            var value: String
        }
    }

    private let endpoint = HandEndpoint()
    private let service: WebService

    init() {
        service = WebService(endpoints: [endpoint])
    }

    @Test("A request in flight is found by its value, type, key and key type, and by nothing else")
    func contains() async throws {
        #expect(!service.containsRequests())
        let task = service.perform(TextRequest(name: "x"), key: Key(value: "k")).resume()
        await endpoint.fetches.wait()
        #expect(service.containsRequests())
        #expect(service.containsRequest(TextRequest(name: "x")))
        #expect(!service.containsRequest(TextRequest(name: "y")))
        #expect(service.containsRequest(type: TextRequest.self))
        #expect(!service.containsRequest(type: OtherRequest.self))
        #expect(service.containsRequest(key: Key(value: "k")))
        #expect(!service.containsRequest(key: Key(value: "l")))
        #expect(service.containsRequest(keyType: Key.self))
        #expect(!service.containsRequest(keyType: OtherScope.Key.self))
        #expect(!service.containsRequest(key: OtherScope.Key(value: "k")))
        endpoint.fetches.values[0].respond("")
        _ = try await task.value
        #expect(!service.containsRequests())
        #expect(!service.containsRequest(TextRequest(name: "x")))
    }

    @Test("A request is no longer registered when its handler runs")
    func goneInHandler() async throws {
        let seen = Collected<Bool>()
        service.perform(TextRequest()).onCompletion { [service] _ in seen.add(service.containsRequests()) }.resume()
        await endpoint.fetches.wait()[0].respond("")
        #expect(await seen.wait() == [false])
    }

    enum Way: CaseIterable { case all, value, type, key, keyType }

    @Test("Cancelling by value, type, key or key type cancels only the matching requests", arguments: Way.allCases)
    func cancel(_ way: Way) async throws {
        let meant = service.perform(TextRequest(name: "x"), key: Key(value: "k")).resume()
        await endpoint.fetches.wait()
        let other = service.perform(OtherRequest(), key: OtherScope.Key(value: "k")).resume()
        await endpoint.fetches.wait(for: 2)
        switch way {
        case .all: service.cancelRequests()
        case .value: service.cancelRequests(TextRequest(name: "x"))
        case .type: service.cancelRequests(type: TextRequest.self)
        case .key: service.cancelRequests(key: Key(value: "k"))
        case .keyType: service.cancelRequests(keyType: Key.self)
        }
        #expect(await meant.serviceResponse.isCanceled)
        #expect(await meant.serviceResponse.isDuplicate == false)
        #expect(endpoint.fetches.values[0].wasCancelled)
        #expect(service.containsRequest(OtherRequest()) == (way != .all))
        if way != .all {
            endpoint.fetches.values[1].respond("two")
            #expect(try await other.value == "two")
        }
    }

    @Test("A duplicate is rejected, and a key takes precedence over the equality of the requests")
    func reject() async throws {
        let first = service.perform(TextRequest(), key: 1, duplicates: .reject).resume()
        await endpoint.fetches.wait()
        let error = await #expect(throws: WebServiceError.self) {
            try await service.perform(OtherRequest(), key: 1, duplicates: .reject).value
        }
        #expect(error?.code == .duplicateRequest)
        // With different keys, equal requests are not duplicates.
        let second = service.perform(TextRequest(), key: 2, duplicates: .reject).resume()
        await endpoint.fetches.wait(for: 2)
        // Without a key, the requests are compared.
        #expect(await service.perform(TextRequest(), duplicates: .reject).serviceResponse.isDuplicate)
        // A request that is not Hashable and has no key has no duplicates.
        let third = service.perform(PlainRequest(), duplicates: .reject).resume()
        let fourth = service.perform(PlainRequest(), duplicates: .reject).resume()
        await endpoint.fetches.wait(for: 4)
        for fetch in endpoint.fetches.values { fetch.respond("") }
        for task in [first, second, third, fourth] { #expect(await task.serviceResponse.data == "") }
        #expect(!service.containsRequests())
    }

    @Test("The error of a duplicate of another type names the key", arguments: [DuplicateMode.join, .reject])
    func otherType(mode: DuplicateMode) async throws {
        let first = service.perform(TextRequest(), key: 1).resume()
        await endpoint.fetches.wait()
        let error = await #expect(throws: WebServiceError.self) {
            try await service.perform(OtherRequest(), key: 1, duplicates: mode).value
        }
        #expect(error?.code == .duplicateRequest)
        #expect(
            error?.message == "a request of another type with the same key is in flight and cannot share its response "
                + "with OtherRequest; use another key")
        first.cancel()
    }

    @Test("Keys of different types are different even if their values are equal")
    func keyTypes() async throws {
        let first = service.perform(TextRequest(), key: 1).resume()
        let second = service.perform(TextRequest(), key: 1.0, duplicates: .reject).resume()
        let third = service.perform(TextRequest(), key: UInt8(1), duplicates: .reject).resume()
        await endpoint.fetches.wait(for: 3)
        for fetch in endpoint.fetches.values { fetch.respond("") }
        for task in [first, second, third] { #expect(await task.serviceResponse.data == "") }
    }

    @Test("Of 1,000 equal requests resumed concurrently, exactly one is sent and 999 are rejected")
    func oneStep() async throws {
        let service = service
        let tasks = (0..<1_000).map { _ in service.perform(TextRequest(), duplicates: .reject) }
        await withTaskGroup { group in
            for task in tasks { group.addTask { _ = task.resume() } }
        }
        let fetches = await endpoint.fetches.wait()
        #expect(fetches.count == 1)
        fetches[0].respond("one")
        var answers: [String: Int] = [:]
        for task in tasks { answers[await task.serviceResponse.isDuplicate ? "duplicate" : "data", default: 0] += 1 }
        #expect(answers == ["duplicate": 999, "data": 1])
    }

    @Test("Joined requests share one response, and cancelling one does not end the others")
    func join() async throws {
        let tasks = (0..<4).map { _ in service.perform(TextRequest(), duplicates: .join).resume() }
        let fetch = await endpoint.fetches.wait()[0]
        tasks[0].cancel()
        tasks[2].cancel()
        #expect(await tasks[0].serviceResponse.isCanceled)
        #expect(!fetch.wasCancelled)
        fetch.respond("one")
        #expect(try await tasks[1].value == "one")
        #expect(try await tasks[3].value == "one")
        #expect(await tasks[2].serviceResponse.isCanceled)
        #expect(try await tasks[1].response.source == .joined)
        #expect(endpoint.fetches.values.count == 1)
        // A request after the response is a new one.
        let next = service.perform(TextRequest(), duplicates: .join).resume()
        await endpoint.fetches.wait(for: 2)[1].respond("two")
        #expect(try await next.value == "two")
    }

    @Test("Cancelling the last joined task cancels the request")
    func lastLeaves() async throws {
        let tasks = (0..<3).map { _ in service.perform(TextRequest(), duplicates: .join).resume() }
        let fetch = await endpoint.fetches.wait()[0]
        tasks[1].cancel()
        tasks[0].cancel()
        #expect(!fetch.wasCancelled)
        tasks[2].cancel()
        await endpoint.cancels.wait()
        #expect(fetch.wasCancelled)
        #expect(!service.containsRequests())
    }

    @Test(
        "If the task that started a joined HTTP request is cancelled, the others receive its response")
    func joinHTTP() async throws {
        struct Get: HTTPServiceRequest, Hashable {
            typealias Output = String
            func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
        }
        let session = HandSession()
        let service = WebService.make(session)
        service.interceptors = [.retry()]
        let first = service.perform(Get(), duplicates: .join).resume()
        let exchange = await session.exchanges.wait()[0]
        let second = service.perform(Get(), duplicates: .join).resume()
        first.cancel()
        #expect(await first.serviceResponse.isCanceled)
        #expect(!exchange.log.contains("cancel"))
        exchange.respond("one")
        #expect(try await second.value == "one")
        #expect(second.task.request.url?.absoluteString == "https://h/v1/x")
    }

    @Test("A request of one account does not join that of another")
    func joinOtherAccount() async throws {
        service.storageAccount = "alice"
        let alice = service.perform(TextRequest(), duplicates: .join).resume()
        await endpoint.fetches.wait()
        service.storageAccount = "bob"
        let bob = service.perform(TextRequest(), duplicates: .join).resume()
        await endpoint.fetches.wait(for: 2)
        endpoint.fetches.values[0].respond("alice's")
        endpoint.fetches.values[1].respond("bob's")
        #expect(try await alice.value == "alice's")
        #expect(try await bob.value == "bob's")
    }

    @Test("The most recently started of several equal requests in flight is joined")
    func joinLast() async throws {
        let older = service.perform(TextRequest()).resume()
        await endpoint.fetches.wait()
        let newer = service.perform(TextRequest()).resume()
        await endpoint.fetches.wait(for: 2)
        let joined = service.perform(TextRequest(), duplicates: .join).resume()
        endpoint.fetches.values[1].respond("newer")
        #expect(try await newer.value == "newer")
        #expect(service.containsRequest(TextRequest()))
        endpoint.fetches.values[0].respond("older")
        #expect(try await older.value == "older")
        #expect(try await joined.value == "newer")
        #expect(endpoint.fetches.values.count == 2)
    }

    @Test("A request of another type with the same key cannot be joined")
    func joinOtherType() async throws {
        service.perform(TextRequest(), key: 1).resume()
        await endpoint.fetches.wait()
        #expect(await service.perform(OtherRequest(), key: 1, duplicates: .join).serviceResponse.isDuplicate)
        service.cancelRequests()
    }

    @Test("A replacing request cancels the equal requests in flight, and only its own response is delivered")
    func replace() async throws {
        let first = service.perform(TextRequest()).resume()
        let second = service.perform(TextRequest()).resume()
        await endpoint.fetches.wait(for: 2)
        let third = service.perform(TextRequest(), duplicates: .replace).resume()
        #expect(await first.serviceResponse.isCanceled)
        #expect(await second.serviceResponse.isCanceled)
        let fetches = await endpoint.fetches.wait(for: 3)
        #expect(fetches[0].wasCancelled)
        #expect(fetches[1].wasCancelled)
        fetches[2].respond("three")
        #expect(try await third.value == "three")
    }

    @Test("Queued requests start one after another, and a cancelled one is skipped")
    func queue() async throws {
        let tasks = (0..<4).map { _ in service.perform(TextRequest(), duplicates: .queue).resume() }
        await endpoint.fetches.wait()
        tasks[1].cancel()
        #expect(await tasks[1].serviceResponse.isCanceled)
        #expect(endpoint.fetches.values.count == 1)
        endpoint.fetches.values[0].fail(TestError())
        #expect(await tasks[0].serviceResponse.error is TestError)
        let third = await endpoint.fetches.wait(for: 2)[1]
        #expect(endpoint.fetches.values.count == 2)
        #expect(service.containsRequest(TextRequest()))
        third.respond("three")
        #expect(try await tasks[2].value == "three")
        await endpoint.fetches.wait(for: 3)[2].respond("four")
        #expect(try await tasks[3].value == "four")
        #expect(!service.containsRequests())
    }

    @Test(
        "A queued request waits for the requests with the same key or, without a key, for the equal ones"
    )
    func queueOfBoth() async throws {
        let first = service.perform(TextRequest(), key: 1).resume()
        await endpoint.fetches.wait()
        let keyed = service.perform(TextRequest(), key: 1, duplicates: .queue).resume()
        let plain = service.perform(TextRequest(), duplicates: .queue).resume()
        let last = service.perform(TextRequest(name: "b"), key: 1, duplicates: .queue).resume()
        endpoint.fetches.values[0].respond("first")
        #expect(try await first.value == "first")
        await endpoint.fetches.wait(for: 2)[1].respond("keyed")
        #expect(try await keyed.value == "keyed")
        // These two requests are not duplicates of each other.
        let fetches = await endpoint.fetches.wait(for: 4)
        for fetch in fetches[2...] { fetch.respond((fetch.request as? TextRequest)?.name ?? "") }
        #expect(try await plain.value == "a")
        #expect(try await last.value == "b")
    }

    @Test("A queued request with a key does not start because an equal request without that key has ended")
    func queueOfTwoLines() async throws {
        let equal = service.perform(TextRequest()).resume()
        await endpoint.fetches.wait()
        let sameKey = service.perform(TextRequest(name: "b"), key: 1).resume()
        await endpoint.fetches.wait(for: 2)
        let queued = service.perform(TextRequest(), key: 1, duplicates: .queue).resume()
        endpoint.fetches.values[0].respond("equal")
        #expect(try await equal.value == "equal")
        // Gives the queued request time to start too early.
        for _ in 0..<2_000 { await Task.yield() }
        #expect(endpoint.fetches.values.count == 2)
        endpoint.fetches.values[1].respond("same key")
        #expect(try await sameKey.value == "same key")
        await endpoint.fetches.wait(for: 3)[2].respond("queued")
        #expect(try await queued.value == "queued")
    }

    @Test(
        "Queued requests never start if they are replaced or cancelled, or if their service is deallocated",
        arguments: ["replace", "cancel", "go"])
    func queueThatEnds(how: String) async throws {
        var service: WebService? = WebService(endpoints: [endpoint])
        let results = Collected<Bool>()
        for _ in 0..<20 {
            service?.perform(TextRequest(), duplicates: .queue).onCompletion {
                results.add(ServiceResponse($0).isCanceled)
            }.resume()
        }
        await endpoint.fetches.wait()
        switch how {
        case "replace": service?.perform(TextRequest(), duplicates: .replace).resume()
        case "cancel": service?.cancelRequests()
        default: service = nil
        }
        #expect(await results.wait(for: 20).allSatisfy { $0 })
        // A queued request that started would be recorded before the last one.
        let other = WebService(endpoints: [endpoint])
        other.perform(OtherRequest()).resume()
        let expected = how == "replace" ? 3 : 2
        #expect(await endpoint.fetches.wait(for: expected).count == expected)
        service?.cancelRequests()
        other.cancelRequests()
    }

    @TaskLocal private static var caller = "nobody"

    @Test("A queued request starts with the task-local values of its caller, not of the previous request")
    func queueOfTwoCallers() async throws {
        let seen = Collected<String>()
        let endpoint = HandEndpoint { text, _ in
            seen.add("\(Self.caller) \(Refresh.current.count)")
            return text
        }
        service.endpoints = [endpoint]
        let first = Self.$caller.withValue("first") {
            Refresh.$current.withValue([ObjectIdentifier(service)]) {
                service.perform(TextRequest(), duplicates: .queue).resume()
            }
        }
        let second = Self.$caller.withValue("second") { service.perform(TextRequest(), duplicates: .queue).resume() }
        await endpoint.fetches.wait()[0].respond("")
        await endpoint.fetches.wait(for: 2)[1].respond("")
        _ = await (first.result, second.result)
        #expect(seen.values == ["first 1", "second 0"])
    }

    @Test("IDs are unique across services")
    func ids() async throws {
        let other = WebService(endpoints: [endpoint])
        for _ in 0..<50 {
            service.perform(TextRequest()).resume()
            other.perform(TextRequest()).resume()
        }
        let fetches = await endpoint.fetches.wait(for: 100)
        #expect(Set(fetches.map(\.id)).count == 100)
        service.cancelRequests()
        other.cancelRequests()
    }

    @Test("A clone shares endpoints, storages and the session, but has separate requests")
    func clone() async throws {
        let original = WebService.make(HandSession(text: "s"))
        original.endpoints = [endpoint]
        original.storages = [MemoryStorage()]
        let clone = original.clone()
        #expect(clone.baseURLString == original.baseURLString)
        #expect(clone.endpoints.count == 1)
        let task = original.perform(RawText()).resume()
        await endpoint.fetches.wait()
        #expect(!clone.containsRequests())
        clone.cancelRequests()
        let same = clone.perform(RawText(), duplicates: .reject).resume()
        await endpoint.fetches.wait(for: 2)[1].respond("two")
        #expect(try await same.value == "two")
        #expect(try await original.stored(RawText()).value.value == "two")
        endpoint.fetches.values[0].respond("one")
        #expect(try await task.value == "one")
        clone.endpoints = []
        #expect(original.endpoints.count == 1)
        #expect(try await clone.GET("/x").string().value == "s")
    }

    @Test(
        "A typed task and its steps retain the service until the task completes",
        arguments: [false, true])
    func owner(isMapped: Bool) async throws {
        var service: WebService? = WebService(endpoints: [endpoint])
        weak var released: WebService?
        released = service
        var task = try #require(service?.perform(TextRequest()))
        if isMapped { task = task.map { $0 + "!" } }
        task.resume()
        service = nil
        await endpoint.fetches.wait()[0].respond("one")
        #expect(try await task.value == (isMapped ? "one!" : "one"))
        #expect(released == nil)
        withExtendedLifetime(task) {}
    }

    @Test("Deallocating a service cancels its requests immediately, and those of its clone continue")
    func release() async throws {
        var service: WebService? = WebService(endpoints: [endpoint])
        let clone = try #require(service?.clone())
        let results = Collected<Bool>()
        let task = try #require(
            service?.perform(TextRequest()).onCompletion { results.add(ServiceResponse($0).isCanceled) }.resume().task)
        let late = try #require(
            service?.perform(TextRequest()).onCompletion { results.add((try? $0.get()) == "late") }.task)
        await endpoint.fetches.wait()
        let others = clone.perform(TextRequest()).resume()
        await endpoint.fetches.wait(for: 2)
        service = nil
        #expect(task.state != .running)
        #expect(await results.wait() == [true])
        #expect(endpoint.fetches.values[0].wasCancelled)
        // The task was not in flight, so it is performed when it is resumed.
        late.resume()
        await endpoint.fetches.wait(for: 3)[2].respond("late")
        #expect(await results.wait(for: 2) == [true, true])
        endpoint.fetches.values[1].respond("clone")
        #expect(try await others.value == "clone")
    }

    @Test(
        "A request of a temporary service is performed when its value is awaited",
        arguments: ["endpoint", "HTTP", "storage", "mapped"])
    func temporary(kind: String) async throws {
        struct Get: HTTPServiceRequest {
            typealias Output = String
            func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
        }
        let endpoint = MockEndpointForText()
        switch kind {
        case "endpoint": #expect(try await WebService(endpoints: [endpoint]).perform(TextRequest()).value == "text")
        case "mapped":
            let task = WebService(endpoints: [endpoint]).perform(TextRequest()).map(\.count).mapAsync { $0 + 1 }
            #expect(try await task.value == 5)
        case "HTTP": #expect(try await WebService.make(HandSession(text: "x")).perform(Get()).value == "x")
        default:
            let storage = MemoryStorage()
            let service = WebService(endpoints: [endpoint], storages: [storage])
            _ = try await service.perform(RawText()).value
            // Reads of the same service follow the write.
            #expect(try await service.stored(RawText()).value.value == "text")
            #expect(
                try await WebService(endpoints: [endpoint], storages: [storage]).stored(RawText()).value.value == "text"
            )
            #expect(
                try await WebService(endpoints: [endpoint], storages: [storage]).perform(
                    RawText(), fetchPolicy: .cacheThenServer
                ).value == "text")
        }
    }

    private struct MockEndpointForText: ServiceEndpoint {
        func supports(_ request: any ServiceRequest) -> Bool { true }
        func fetch(_ request: any ServiceRequest, in context: EndpointContext) -> any RawDataSource {
            Data("text".utf8)
        }
        func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) -> any Sendable
        { "text" }
    }

    /// A request whose equality and hash use the service.
    private struct Curious: ServiceRequest, Hashable {
        typealias Output = String
        let number: Int
        let service: WebService

        static func == (left: Curious, right: Curious) -> Bool {
            _ = left.service.containsRequests()
            left.service.perform(PlainRequest()).resume().cancel()
            return left.number == right.number
        }

        func hash(into hasher: inout Hasher) {
            _ = service.containsRequest(type: Curious.self)
            service.cancelRequests(key: "none")
            hasher.combine(number % 2)
        }
    }

    @Test(
        "Equality and hash of requests and keys may use the service, because they run outside the registry lock",
        arguments: ["request", "key"])
    func comparing(by: String) async throws {
        let (service, endpoint) = (service, endpoint)
        let results = Collected<String>()
        let done = DispatchSemaphore(value: 0)
        Thread {
            func perform(_ number: Int, _ mode: DuplicateMode) -> TypedTask<String> {
                let curious = Curious(number: number, service: service)
                let task =
                    by == "key"
                    ? service.perform(TextRequest(), key: curious, duplicates: mode)
                    : service.perform(curious, duplicates: mode)
                // Any error counts as failed.
                return task.onCompletion { results.add((try? $0.get()) ?? "failed") }.resume()
            }
            let tasks = [
                perform(1, .allow), perform(3, .reject), perform(1, .join), perform(3, .reject), perform(1, .queue),
            ]
            _ = service.containsRequest(Curious(number: 1, service: service))
            withExtendedLifetime(tasks) { _ = done.signal() }
        }.start()
        let isOver = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: done.wait(timeout: .now() + 60)) }
        }
        try #require(isOver == .success)
        let fetches = await endpoint.fetches.wait(for: 2).filter { !($0.request is PlainRequest) }
        for fetch in fetches { fetch.respond("one") }
        await eventually("every request ends") {
            for fetch in endpoint.fetches.values { fetch.respond("one") }
            return results.values.count >= 5
        }
        #expect(results.values.count { $0 == "one" } == 4)
    }

    @Test("Each task completes exactly once while 64 threads perform, cancel and find requests")
    func stress() async throws {
        struct Quick: ServiceEndpoint {
            func supports(_ request: any ServiceRequest) -> Bool { true }
            func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
                await Task.yield()
                return Data("x".utf8)
            }
            func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool)
                -> any Sendable
            { "x" }
        }
        let service = WebService(endpoints: [Quick()], storages: [MemoryStorage(maximumCount: 4)])
        let answers = Mutex<[Int: Int]>([:])
        let turns = amount(20, thorough: 150)
        let count = 64 * turns
        let finished = Collected<Void>()
        let modes: [DuplicateMode] = [.allow, .reject, .join, .replace, .queue]
        Thread.concurrently(64) { thread in
            for turn in 0..<turns {
                let number = thread * turns + turn
                let task = service.perform(
                    RawText(name: "\(number % 7)"), key: number % 3 == 0 ? number % 5 : nil,
                    duplicates: modes[number % 5])
                task.onCompletion { _ in
                    let isLast = answers.withLock { answers in
                        answers[number, default: 0] += 1
                        return answers.count == count
                    }
                    if isLast { finished.add(()) }
                }.resume()
                switch number % 6 {
                case 0: task.cancel()
                case 1: service.cancelRequests(RawText(name: "\(number % 7)"))
                case 2: service.cancelRequests(key: number % 5)
                case 3: _ = service.containsRequest(type: RawText.self)
                case 4: _ = service.containsRequest(RawText(name: "1"))
                default: service.stored(RawText(name: "\(number % 7)")).resume()
                }
            }
        }
        await finished.wait()
        #expect(answers.withLock { $0 }.values.allSatisfy { $0 == 1 })
        #expect(answers.withLock { $0 }.count == count)
        await eventually { !service.containsRequests() }
    }
}
