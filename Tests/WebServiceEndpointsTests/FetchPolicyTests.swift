import Foundation
import TestSupport
import Testing
import WebServiceStorage

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("Cache policies", .exclusive)
struct FetchPolicyTests {
    /// An HTTP request whose responses have the storage identifier of `ValueText`.
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
        // A clock that does not advance makes the tests independent of the speed of the machine.
        service = WebService(baseURLString: "", passthroughDelegate: nil, timekeeper: ManualTimekeeper())
        service.endpoints = [endpoint]
        service.storages = [MemoryStorage()]
    }

    private func store(_ text: String) async {
        let count = endpoint.fetches.values.count
        let task = service.perform(ValueText()).resume()
        await endpoint.fetches.wait(for: count + 1)[count].respond(text)
        _ = await task.result
        await service.finishStoring()
    }

    /// Returns a task whose observers record the values they receive.
    private func task(_ policy: FetchPolicy, maximumAge: Duration? = nil) -> TypedTask<String> {
        service.perform(ValueText(), fetchPolicy: policy, maximumAge: maximumAge)
            .onCacheSuccess { [early] in early.add("\($0.value) \($0.source)") }
            // Other expectations verify the error.
            .onCompletion { [ends] result in ends.add((try? result.get()) ?? "error") }
            .resume()
    }

    @Test("serverOnly sends the request and stores the response")
    func serverOnly() async throws {
        await store("old")
        let task = task(.serverOnly)
        await endpoint.fetches.wait(for: 2)[1].respond("new")
        #expect(try await task.value == "new")
        #expect(try await service.stored(ValueText()).value.value == "new")
        #expect(early.values.isEmpty)
        #expect(await ends.wait() == ["new"])
    }

    @Test("cacheOnly sends nothing and fails if no value is stored")
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

    @Test("cacheThenServer delivers the stored value, then the response of the server, and ends once")
    func cacheThenServer() async throws {
        await store("old")
        let task = task(.cacheThenServer)
        let fetch = await endpoint.fetches.wait(for: 2)[1]
        #expect(await early.wait() == ["old storage"])
        #expect(ends.values.isEmpty)
        fetch.respond("new")
        #expect(try await task.value == "new")
        #expect(await ends.wait() == ["new"])
        // The observer is added after the end, so the stored value is outdated.
        task.onCacheSuccess { [early] _ in early.add("late") }
        #expect(early.values == ["old storage"])
    }

    @Test(
        "cacheThenServer ends with the server error after a stored value; without one only the response is delivered"
    )
    func cacheThenServerFails() async throws {
        let first = task(.cacheThenServer)
        await endpoint.fetches.wait(for: 1)[0].respond("one")
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
        "A stored value is delivered before the result, on the main actor and in the background, in any timing")
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
            fetch.respond("old")
            _ = await task.result
            let all = await shown.wait()
            #expect(all.last == "new", "\(all)")
            #expect(all.filter { $0 == "new" }.count == 1, "\(all)")
        }
    }

    @Test("The timeline of serverElseCache contains the response of the server, not the stored value")
    func timeline() async throws {
        await store("old")
        service.endpoints = [HTTPEndpoint()]
        service.session = HandSession(text: "gone", status: 404)
        let task = service.perform(HTTPText(), fetchPolicy: .serverElseCache)
        #expect(try await task.value == "old")
        #expect(task.task.timeline.events.compactMap(\.status) == [404])
    }

    @Test(
        "serverElseCache ends with the response, else with the stored value, else with the error of the server"
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
        await endpoint.fetches.wait(for: 4)[3].respond("new")
        #expect(try await third.value == "new")
        #expect(await ends.wait(for: 3) == ["error", "old", "new"])
        #expect(early.values.isEmpty)
    }

    @Test("serverElseCache reads no stored value for a cancelled or duplicate request")
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

    @Test("A stored value that exceeds the maximum age counts as missing")
    func tooOld() async throws {
        await store("old")
        let error = await #expect(throws: WebServiceError.self) {
            try await self.task(.cacheOnly, maximumAge: .seconds(-1)).value
        }
        #expect(error?.code == .noStoredData)
        let task = task(.cacheThenServer, maximumAge: .seconds(-1))
        await endpoint.fetches.wait(for: 2)[1].respond("new")
        #expect(try await task.value == "new")
        #expect(early.values.isEmpty)
    }

    @Test("The values of a task are a sequence with source and age, which ends or throws after the response")
    func values() async throws {
        await store("old")
        let task = service.perform(ValueText(), fetchPolicy: .cacheThenServer)
        var seen: [String] = []
        for try await value in task.values {
            seen.append("\(value.value) \(value.source) \(value.isStored) \(value.age == nil)")
            if seen.count == 1 { await endpoint.fetches.wait(for: 2)[1].respond("new") }
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

    @Test("Cancelling the iteration over the values cancels the request")
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
