import Foundation
import TestSupport
import Testing
import WebServiceStorage

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("Providers", .permit)
struct ProviderTests {
    struct EmptyRequest: EmptyServiceRequest, ValueStorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "empty" }
    }

    enum Texts: RequestGroup {
        static let requestTypes: [any ServiceRequest.Type] = [TextRequest.self, EmptyRequest.self]
    }

    final class Delegate: ServiceDelegate {
        let calls = Collected<String>()
        func serviceDidRespond(
            _ response: ServiceResponse<any Sendable>, to request: any ServiceRequest, key: (any Hashable & Sendable)?,
            isFromStorage: Bool
        ) {
            calls.add("\(response.data as? String ?? "-") \(key as? Int ?? 0) \(isFromStorage)")
        }
    }

    private let endpoint = HandEndpoint()
    private let service: WebService

    init() {
        service = WebService(endpoints: [endpoint], storages: [MemoryStorage()])
    }

    @Test("A request provider performs, finds and cancels only requests of its type")
    func requestProvider() async throws {
        let provider: RequestProvider<TextRequest> = service.createProvider()
        #expect(!provider.containsRequests())
        let other = service.perform(OtherRequest(), key: 1).resume()
        await endpoint.fetches.wait()
        #expect(!provider.containsRequests())
        #expect(!provider.containsRequest(key: 1))
        provider.cancelRequests()
        provider.cancelRequests(key: 1)
        let first = provider.perform(.init(name: "x"), key: 1).resume()
        let second = provider.perform(.init(name: "y")).resume()
        await endpoint.fetches.wait(for: 3)
        #expect(provider.containsRequests())
        #expect(provider.containsRequest(key: 1))
        #expect(provider.containsRequest(.init(name: "y")))
        provider.cancelRequests(key: 1)
        #expect(await first.serviceResponse.isCanceled)
        provider.cancelRequests(.init(name: "y"))
        #expect(await second.serviceResponse.isCanceled)
        endpoint.fetches.values[0].respond("other")
        #expect(try await other.value == "other")
    }

    @Test("The duplicate mode of a provider applies to calls that do not specify one")
    func duplicates() async throws {
        var provider = service.createProvider(RequestProvider<TextRequest>.self)
        provider.duplicates = .reject
        provider.perform(.init(), completion: { _ in })
        await endpoint.fetches.wait()
        #expect(await provider.perform(.init()).serviceResponse.isDuplicate)
        let allowed = provider.perform(.init(), duplicates: .allow).resume()
        await endpoint.fetches.wait(for: 2)[1].respond("two")
        #expect(try await allowed.value == "two")
        provider.cancelRequests()
    }

    @Test("A provider of an empty request needs no argument to perform it and can read and delete its stored value")
    func emptyRequests() async throws {
        let delegate = Delegate()
        var provider = service.createProvider(RequestProvider<EmptyRequest>.self)
        provider.delegate = delegate
        let task = provider.perform().resume()
        await endpoint.fetches.wait()[0].respond("one")
        #expect(try await task.value == "one")
        let answers = Collected<String>()
        provider.perform(key: 7) { answers.add($0.data ?? "-") }
        await endpoint.fetches.wait(for: 2)[1].respond("two")
        #expect(await answers.wait() == ["two"])
        provider.performForDelegate(key: 8)
        await endpoint.fetches.wait(for: 3)[2].respond("three")
        #expect(await delegate.calls.wait() == ["three 8 false"])

        #expect(try await provider.stored(.init()).value.value == "three")
        provider.storedForDelegate(.init())
        #expect(await delegate.calls.wait(for: 2).last == "three 0 true")
        try await provider.deleteStored(.init())
        _ = await provider.storedForDelegate(.init()).result
        provider.stored(.init()) { answers.add($0.error == nil ? "there" : "gone") }
        #expect(await answers.wait(for: 2).last == "gone")
        #expect(delegate.calls.values.count == 2)
    }

    @Test("A group provider performs only the types of its group; others fail with a typed error and are not sent")
    func groups() async throws {
        let provider: GroupProvider<Texts> = service.createProvider()
        #expect(provider.canUseRequest(type: TextRequest.self))
        #expect(!provider.canUseRequest(type: OtherRequest.self))
        let error = await #expect(throws: WebServiceError.self) { try await provider.perform(OtherRequest()).value }
        #expect(error?.code == .requestNotAllowed)
        #expect(error?.message.contains("OtherRequest") == true)
        #expect(
            (await provider.stored(RawText()).serviceResponse.error as? WebServiceError)?.code == .requestNotAllowed)
        let answers = Collected<Bool>()
        provider.perform(OtherRequest()) { answers.add(($0.error as? WebServiceError)?.code == .requestNotAllowed) }
        #expect(await answers.wait() == [true])
        #expect(endpoint.fetches.values.isEmpty)

        service.perform(OtherRequest()).resume()
        await endpoint.fetches.wait()
        #expect(!provider.containsRequests())
        let task = provider.perform(TextRequest()).resume()
        await endpoint.fetches.wait(for: 2)
        #expect(provider.containsRequests())
        provider.cancelRequests()
        #expect(await task.serviceResponse.isCanceled)
        #expect(service.containsRequests())
        service.cancelRequests()
    }

    @Test("A group provider has a delegate, a duplicate mode and access to stored values of its types")
    func groupDelegate() async throws {
        let delegate = Delegate()
        var provider = RestrictedProvider(service: service, requestTypes: [TextRequest.self, EmptyRequest.self])
        provider.delegate = delegate
        provider.performForDelegate(EmptyRequest(), key: 8)
        await endpoint.fetches.wait()[0].respond("one")
        #expect(await delegate.calls.wait() == ["one 8 false"])
        provider.storedForDelegate(EmptyRequest(), key: 9)
        #expect(await delegate.calls.wait(for: 2).last == "one 9 true")
        let values = Collected<String>()
        provider.stored(EmptyRequest()) { values.add($0.data?.value ?? "-") }
        #expect(await values.wait() == ["one"])
        try await provider.deleteStored(EmptyRequest())
        _ = await provider.storedForDelegate(EmptyRequest()).result
        #expect(delegate.calls.values.count == 2)
        provider.notifiesDelegateOnlyOfStoredData = false
        provider.storedForDelegate(EmptyRequest(), key: 7)
        #expect(await delegate.calls.wait(for: 3).last == "- 7 true")
        provider.performForDelegate(OtherRequest(), key: 6)
        #expect(await delegate.calls.wait(for: 4).last == "- 6 false")
        let error = await #expect(throws: WebServiceError.self) { try await provider.deleteStored(RawText()) }
        #expect(error?.code == .requestNotAllowed)
        provider.duplicates = .reject
        provider.perform(TextRequest()).resume()
        await endpoint.fetches.wait(for: 2)
        #expect(await provider.perform(TextRequest()).serviceResponse.isDuplicate)
        provider.cancelRequests()
    }

    @Test("A group provider finds and cancels by value, type, key and key type, among its types only")
    func groupLookup() async throws {
        let provider: GroupProvider<Texts> = service.createProvider()
        let other = service.perform(OtherRequest(), key: 1).resume()
        await endpoint.fetches.wait()
        #expect(!provider.containsRequest(OtherRequest()))
        #expect(!provider.containsRequest(type: OtherRequest.self))
        #expect(!provider.containsRequest(key: 1))
        #expect(!provider.containsRequest(keyType: Int.self))
        provider.cancelRequests(OtherRequest())
        provider.cancelRequests(type: OtherRequest.self)
        provider.cancelRequests(key: 1)
        provider.cancelRequests(keyType: Int.self)
        #expect(service.containsRequest(key: 1))
        let request = TextRequest()
        let ways: [(contains: () -> Bool, cancel: () -> Void)] = [
            ({ provider.containsRequest(request) }, { provider.cancelRequests(request) }),
            ({ provider.containsRequest(type: TextRequest.self) }, { provider.cancelRequests(type: TextRequest.self) }),
            ({ provider.containsRequest(key: "k") }, { provider.cancelRequests(key: "k") }),
            ({ provider.containsRequest(keyType: String.self) }, { provider.cancelRequests(keyType: String.self) }),
        ]
        for (count, way) in ways.enumerated() {
            #expect(!way.contains())
            let task = provider.perform(request, key: "k").resume()
            await endpoint.fetches.wait(for: count + 2)
            #expect(way.contains())
            way.cancel()
            #expect(await task.serviceResponse.isCanceled)
            #expect(!way.contains())
        }
        other.cancel()
    }

    @Test("A restricted provider performs only the types passed to its initializer")
    func restricted() async throws {
        let provider = RestrictedProvider(service: service, requestTypes: [TextRequest.self])
        let task = provider.perform(TextRequest()).resume()
        await endpoint.fetches.wait()[0].respond("one")
        #expect(try await task.value == "one")
        #expect(
            (await provider.perform(OtherRequest()).serviceResponse.error as? WebServiceError)?.code
                == .requestNotAllowed)
    }

    @Test("Providers perform requests with a cache policy, and restricted ones reject other types")
    func cachePolicies() async throws {
        service.storages = [MemoryStorage()]
        let task = service.perform(ValueText()).resume()
        await endpoint.fetches.wait()[0].respond("old")
        _ = try await task.value
        let one: RequestProvider<ValueText> = service.createProvider()
        let some = RestrictedProvider(service: service, requestTypes: [ValueText.self])
        let group: GroupProvider<Texts> = service.createProvider()
        #expect(try await one.perform(ValueText(), fetchPolicy: .cacheOnly).value == "old")
        #expect(try await some.perform(ValueText(), fetchPolicy: .cacheOnly).value == "old")
        let error = await #expect(throws: WebServiceError.self) {
            try await group.perform(ValueText(), fetchPolicy: .cacheOnly).value
        }
        #expect(error?.code == .requestNotAllowed)
        #expect(endpoint.fetches.values.count == 1)
    }

    @Test(
        "A refused request writes nothing to standard error and standard output",
        .exclusive)
    func quietRefusal() async throws {
        let result = try await #require(
            processExitsWith: .success, observing: [\.standardErrorContent, \.standardOutputContent]
        ) {
            let provider = RestrictedProvider(service: WebService(endpoints: []), requestTypes: [])
            let code = (await provider.perform(OtherRequest()).serviceResponse.error as? WebServiceError)?.code
            exit(code == .requestNotAllowed ? 0 : 1)
        }
        let texts = [result.standardErrorContent, result.standardOutputContent].map {
            String(decoding: $0, as: UTF8.self)
        }
        #expect(texts.allSatisfy { !$0.contains("requests of type") }, "\(texts)")
    }

    @Test("A custom provider can hide the service")
    func own() async throws {
        struct Mine: ServiceProvider {
            private let service: WebService
            init(service: WebService) { self.service = service }
            func text(_ name: String) -> TypedTask<String> { service.perform(TextRequest(name: name)) }
        }
        let task = service.createProvider(Mine.self).text("x").resume()
        await endpoint.fetches.wait()[0].respond("one")
        #expect(try await task.value == "one")
    }
}
