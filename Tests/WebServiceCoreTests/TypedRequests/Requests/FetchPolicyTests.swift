import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Cache policies", .timeLimit(.minutes(10)))
struct FetchPolicyTests {
    /// The request as it goes over HTTP: its answers lie where those of `ValueText` do.
    private struct HTTPText: HTTPServiceRequest, ValueStorableRequest {
        typealias Output = String
        var storageIdentifier: String? { ValueText().storageIdentifier }
        func request(for service: WebService) -> Request { service.request(.GET, path: "http://h/gone") }
    }

    private let endpoint = HandEndpoint()
    private let service: WebService
    private let ends = Collected<String>()
    private let early = Collected<String>()

    init() {
        // No machine is too slow for a clock that stands still.
        service = WebService(baseURLString: "", passthroughDelegate: nil, timekeeper: ManualTimekeeper())
        service.endpoints = [endpoint]
        service.storages = [MemoryStorage()]
    }

    private func store(_ text: String) async {
        let count = endpoint.fetches.values.count
        let task = service.perform(ValueText()).resume()
        await endpoint.fetches.wait(for: count + 1)[count].answer(text)
        _ = await task.result
        await service.finishStoring()
    }

    /// A task whose observers leave behind what they hear.
    private func task(_ policy: FetchPolicy, maximumAge: Duration? = nil) -> TypedTask<String> {
        service.perform(ValueText(), fetchPolicy: policy, maximumAge: maximumAge)
            .onCacheSuccess { [early] in early.add("\($0.value) \($0.source)") }
            // Which one it is, is asked elsewhere.
            .onCompletion { [ends] result in ends.add((try? result.get()) ?? "error") }
            .resume()
    }

    @Test("serverOnly asks the server and stores what it says")
    func serverOnly() async throws {
        await store("old")
        let task = task(.serverOnly)
        await endpoint.fetches.wait(for: 2)[1].answer("new")
        #expect(try await task.value == "new")
        #expect(try await service.stored(ValueText()).value.value == "new")
        #expect(early.values.isEmpty)
        #expect(await ends.wait() == ["new"])
    }

    @Test("cacheOnly sends nothing, and nothing stored is its error")
    func cacheOnly() async throws {
        let error = await #expect(throws: WebServiceError.self) { try await self.task(.cacheOnly).value }
        #expect(error?.code == .noStoredData)
        await store("old")
        let task = task(.cacheOnly)
        #expect(try await task.value == "old")
        #expect(try await task.response.source == .storage)
        #expect(try await task.response.age ?? .seconds(-1) >= .zero)
        #expect(endpoint.fetches.values.count == 1)
        #expect(await ends.wait(for: 2) == ["error", "old"])
    }

    @Test("cacheThenServer brings what is stored ahead, then what the server says, and ends once")
    func cacheThenServer() async throws {
        await store("old")
        let task = task(.cacheThenServer)
        let fetch = await endpoint.fetches.wait(for: 2)[1]
        #expect(await early.wait() == ["old storage"])
        #expect(ends.values.isEmpty)
        fetch.answer("new")
        #expect(try await task.value == "new")
        #expect(await ends.wait() == ["new"])
        // Added after the end: there is a newer value.
        task.onCacheSuccess { [early] _ in early.add("late") }
        #expect(early.values == ["old storage"])
    }

    @Test(
        "cacheThenServer ends with the server's error, also behind a stored value; with nothing stored only the server speaks"
    )
    func cacheThenServerFails() async throws {
        let first = task(.cacheThenServer)
        await endpoint.fetches.wait(for: 1)[0].answer("one")
        #expect(try await first.value == "one")
        #expect(early.values.isEmpty)
        await service.finishStoring()
        let second = task(.cacheThenServer)
        await early.wait()
        await endpoint.fetches.wait(for: 2)[1].fail(TestError())
        await #expect(throws: TestError()) { try await second.value }
        #expect(early.values == ["one storage"])
        #expect(await ends.wait(for: 2) == ["one", "error"])
    }

    @Test(
        "what is shown ahead is shown before the result, on the main actor and in the background, whatever is quicker")
    func order() async throws {
        await store("old")
        for turn in 0..<200 {
            let shown = Collected<String>()
            let task = service.perform(ValueText(), fetchPolicy: .cacheThenServer)
                .updateCacheUI { _ in shown.add("old") }
                .onCacheSuccess { _ in shown.add("old") }
                .updateUI { _ in shown.add("new") }
                .resume()
            let fetch = await endpoint.fetches.wait(for: turn + 2)[turn + 1]
            if turn % 2 == 0 { await shown.wait(for: 2) }
            fetch.answer("old")
            _ = await task.result
            let all = await shown.wait()
            #expect(all.last == "new" && all.filter { $0 == "new" }.count == 1, "\(all)")
        }
    }

    @Test("the timeline of serverElseCache shows what the server said, not what stood in for it")
    func timeline() async throws {
        await store("old")
        service.endpoints = [HTTPEndpoint()]
        service.session = HandSession(text: "gone", status: 404)
        let task = service.perform(HTTPText(), fetchPolicy: .serverElseCache)
        #expect(try await task.value == "old")
        #expect(task.task.timeline.events.map(\.status) == [404])
        #expect(String(decoding: task.task.httpArchive(), as: UTF8.self).contains(#""status" : 404"#))
    }

    @Test(
        "serverElseCache ends with the server's value; with what is stored where that fails; with the server's error where nothing is"
    )
    func serverElseCache() async throws {
        let first = task(.serverElseCache)
        await endpoint.fetches.wait(for: 1)[0].fail(TestError(name: "server"))
        await #expect(throws: TestError(name: "server")) { try await first.value }
        await store("old")
        let second = task(.serverElseCache)
        await endpoint.fetches.wait(for: 3)[2].fail(TestError(name: "server"))
        #expect(try await second.value == "old")
        #expect(try await second.response.source == .storage)
        let third = task(.serverElseCache)
        await endpoint.fetches.wait(for: 4)[3].answer("new")
        #expect(try await third.value == "new")
        #expect(await ends.wait(for: 3) == ["error", "old", "new"])
        #expect(early.values.isEmpty)
    }

    @Test("a request that is cancelled, or a duplicate, reads nothing instead")
    func cancelled() async throws {
        await store("old")
        let task = task(.serverElseCache)
        await endpoint.fetches.wait(for: 2)
        let duplicate = service.perform(ValueText(), fetchPolicy: .serverElseCache, duplicates: .reject)
        #expect(await duplicate.serviceResponse.isDuplicate)
        task.cancel()
        #expect(await task.serviceResponse.isCanceled)
        #expect(await ends.wait() == ["error"])
    }

    @Test("a stored value that is too old counts as none")
    func tooOld() async throws {
        await store("old")
        let error = await #expect(throws: WebServiceError.self) {
            try await self.task(.cacheOnly, maximumAge: .seconds(-1)).value
        }
        #expect(error?.code == .noStoredData)
        let task = task(.cacheThenServer, maximumAge: .seconds(-1))
        await endpoint.fetches.wait(for: 2)[1].answer("new")
        #expect(try await task.value == "new")
        #expect(early.values.isEmpty)
    }

    @Test("the values of a task come as a sequence with their labels, and end once")
    func values() async throws {
        await store("old")
        let task = service.perform(ValueText(), fetchPolicy: .cacheThenServer)
        var seen: [String] = []
        for try await value in task.values {
            seen.append("\(value.value) \(value.source) \(value.isStored) \(value.age == nil)")
            if seen.count == 1 { await endpoint.fetches.wait(for: 2)[1].answer("new") }
        }
        #expect(seen == ["old storage true false", "new endpoint false true"])

        let failing = service.perform(ValueText(), fetchPolicy: .cacheThenServer)
        seen = []
        await #expect(throws: TestError()) {
            for try await value in failing.values {
                seen.append(value.value)
                await endpoint.fetches.wait(for: 3)[2].fail(TestError())
            }
        }
        #expect(seen == ["new"])
    }

    @Test("a reader of the values that stops cancels the request")
    func valuesStop() async throws {
        await store("old")
        let task = service.perform(ValueText(), fetchPolicy: .cacheThenServer)
        let reader = Task {
            for try await _ in task.values {}
        }
        await endpoint.fetches.wait(for: 2)
        reader.cancel()
        _ = await reader.result
        #expect(await task.serviceResponse.isCanceled)
    }
}
