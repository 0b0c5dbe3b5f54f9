import Foundation
import TestSupport
import Testing
import WebServiceStorage

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("Requests of any type", .permit)
struct ErasedRequestTests {
    private let endpoint = HandEndpoint()

    private struct Count: ServiceRequest, Hashable {
        typealias Output = Int
    }

    private final class Delegate: ServiceDelegate {
        let calls = Collected<String>()
        func serviceDidRespond(
            _ response: ServiceResponse<any Sendable>, to request: any ServiceRequest, key: (any Hashable & Sendable)?,
            isFromStorage: Bool
        ) {
            calls.add("\(response.data as? String ?? "-") \(key as? Int ?? 0) \(isFromStorage)")
        }
    }

    @Test("Requests of several types are performed from one list, and their values have their types")
    func perform() async throws {
        let endpoint = HandEndpoint { text, _ in Int(text) ?? text as any Sendable }
        let service = WebService(endpoints: [endpoint])
        let requests: [any ServiceRequest] = [TextRequest(), Count()]
        let tasks = requests.map { service.perform($0).resume() }
        await endpoint.fetches.wait(for: 2)
        for fetch in endpoint.fetches.values { fetch.respond(fetch.request is Count ? "7" : "ale") }
        let values: [any Sendable] = [try await tasks[0].value, try await tasks[1].value]
        #expect(values[0] as? String == "ale")
        #expect(values[1] as? Int == 7)
        #expect(await tasks[1].serviceResponse.convert(for: Count()).data == 7)
        let typed: TypedTask<Int> = service.perform(Count())
        await endpoint.fetches.wait(for: 2)
        typed.resume()
        await endpoint.fetches.wait(for: 3)[2].respond("8")
        #expect(try await typed.value == 8)
    }

    @Test("A request of any type has a key, a duplicate mode, a closure and a delegate")
    func options() async throws {
        let service = WebService(endpoints: [endpoint])
        let request: any ServiceRequest = TextRequest()
        let delegate = Delegate()
        let answers = Collected<String>()
        service.perform(request, key: 1) { response in
            MainActor.assertIsolated()
            answers.add(response.data as? String ?? "-")
        }
        await endpoint.fetches.wait()
        #expect(service.containsRequest(key: 1))
        #expect(service.containsRequest(TextRequest()))
        #expect(await service.perform(request, key: 1, duplicates: .reject).serviceResponse.isDuplicate)
        service.perform(request, key: 2, delegate: delegate)
        for fetch in await endpoint.fetches.wait(for: 2) { fetch.respond("ale") }
        #expect(await answers.wait() == ["ale"])
        #expect(await delegate.calls.wait() == ["ale 2 false"])
    }

    @Test("The stored value of a request of any type is read, with a closure or a delegate")
    func stored() async throws {
        let service = WebService(endpoints: [endpoint], storages: [MemoryStorage()])
        let request: any StorableRequest = ValueText()
        let delegate = Delegate()
        service.stored(request, onlyData: true, delegate: delegate)
        let missing = await service.stored(request).serviceResponse
        #expect((missing.error as? WebServiceError)?.code == .noStoredData)
        let task = service.perform(request).resume()
        await endpoint.fetches.wait()[0].respond("ale")
        #expect(try await task.value as? String == "ale")
        let value = try await service.stored(request, maximumAge: .seconds(60)).value
        #expect(value.value as? String == "ale")
        #expect(value.isStored)
        #expect(value.age != nil)
        let answers = Collected<String>()
        service.stored(request) { answers.add($0.data?.value as? String ?? "-") }
        #expect(await answers.wait() == ["ale"])
        service.stored(request, key: 3, delegate: delegate)
        #expect(await delegate.calls.wait() == ["ale 3 true"])
    }

    @Test("A read that depends on a task is cancelled by its result")
    func dependency() async throws {
        let service = WebService(endpoints: [endpoint], storages: [MemoryStorage()])
        let request: any StorableRequest = ValueText()
        let task = service.perform(ValueText()).resume()
        await endpoint.fetches.wait()[0].respond("ale")
        _ = try await task.value
        #expect(await service.stored(request, .untilSuccess(of: task)).serviceResponse.isCanceled)
    }
}
