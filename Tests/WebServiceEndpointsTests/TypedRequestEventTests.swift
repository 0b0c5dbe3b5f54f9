import Foundation
import TestSupport
import Testing
import WebServiceStorage

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("Events of typed requests", .permit)
struct TypedRequestEventTests {
    private struct Get: HTTPServiceRequest, ValueStorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "get" }
        func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
    }

    private let recorder = EventRecorder()
    private let endpoint = HandEndpoint()
    private let service: WebService

    init() {
        service = WebService.make(HandSession(text: "x"))
        service.observers = [recorder]
    }

    private func useHandEndpoint() {
        service.endpoints = [endpoint]
    }

    @Test("A typed request is the parent of the exchange that its endpoint sends")
    func performed() async throws {
        #expect(try await service.perform(Get()).value == "x")
        #expect(recorder.lines() == ["created Get", "ended 200 network"])
        #expect(
            recorder.lines(1) == [
                "created GET https://h/v1/x", "attempt 1 started GET https://h/v1/x", "head 200",
                "attempt 1 ended 200 network", "ended 200 network",
            ])
        #expect(recorder.exchanges[1].parent == recorder.exchanges[0].id)
        #expect(recorder.exchanges[0].request == nil)
        let lines = recorder.events.values.map(EventRecorder.line)
        #expect(lines.first == "created Get")
        #expect(lines.last == "ended 200 network")
        guard case .ended(let summary) = recorder.events.values.last?.kind else {
            Issue.record("the last event is not the end")
            return
        }
        #expect(summary.attempts == 1)
        #expect(summary.timeline.events.map(\.kind) == [.attempt])
    }

    @Test("The identifier of a typed request is that of the context of its endpoint")
    func identifier() async throws {
        useHandEndpoint()
        let task = service.perform(TextRequest()).resume()
        let fetch = await endpoint.fetches.wait()[0]
        #expect(recorder.exchanges.map(\.id) == [fetch.id])
        fetch.respond("a")
        _ = try await task.value
        #expect(recorder.lines() == ["created TextRequest", "ended 0 endpoint"])
    }

    @Test("A joined request refers to the request whose response it shares")
    func joined() async throws {
        useHandEndpoint()
        let first = service.perform(TextRequest()).resume()
        let fetch = await endpoint.fetches.wait()[0]
        let second = service.perform(TextRequest(), duplicates: .join).resume()
        fetch.respond("a")
        _ = try await (first.value, second.value)
        #expect(recorder.lines(0) == ["created TextRequest", "ended 0 endpoint"])
        #expect(recorder.lines(1) == ["created TextRequest", "joined", "ended 0 joined"])
        #expect(related() == recorder.exchanges[0].id)
        #expect(second.task.timeline.events.map(\.kind) == [.joined])
        #expect(second.task.timeline.events.map(\.related) == [recorder.exchanges[0].id])
    }

    @Test("A queued request refers to the request before it")
    func queued() async throws {
        useHandEndpoint()
        let first = service.perform(TextRequest(), duplicates: .queue).resume()
        let second = service.perform(TextRequest(), duplicates: .queue).resume()
        await endpoint.fetches.wait()[0].respond("a")
        await endpoint.fetches.wait(for: 2)[1].respond("b")
        _ = try await (first.value, second.value)
        #expect(recorder.lines(0) == ["created TextRequest", "ended 0 endpoint"])
        #expect(recorder.lines(1) == ["created TextRequest", "queued", "ended 0 endpoint"])
        #expect(related() == recorder.exchanges[0].id)
    }

    @Test("Rejected, replaced and unsupported requests end with their errors")
    func refused() async throws {
        useHandEndpoint()
        let first = service.perform(TextRequest()).resume()
        await endpoint.fetches.wait()
        _ = await service.perform(TextRequest(), duplicates: .reject).result
        #expect(recorder.lines(1) == ["created TextRequest", "ended duplicateRequest"])
        let third = service.perform(TextRequest(), duplicates: .replace).resume()
        _ = await first.result
        #expect(recorder.lines(0) == ["created TextRequest", "ended URLError -999"])
        await endpoint.fetches.wait(for: 2)[1].respond("b")
        _ = try await third.value
        service.endpoints = []
        _ = await service.perform(TextRequest()).result
        #expect(recorder.lines(3) == ["created TextRequest", "ended noEndpoint"])
    }

    @Test("Storing a response and reading it are events")
    func storage() async throws {
        service.storages = [MemoryStorage()]
        _ = await service.stored(Get()).result
        let reason = "no response is stored; send the request"
        #expect(recorder.lines() == ["created Get", "storage: not read: \(reason)", "ended noStoredData"])
        _ = try await service.perform(Get()).value
        await service.finishStoring()
        #expect(recorder.lines(1) == ["created Get", "ended 200 network", "storage: stored"])
        let read = service.stored(Get())
        _ = try await read.value
        #expect(recorder.lines(3) == ["created Get", "storage: read", "ended 0 storage"])
        #expect(read.task.timeline.events.map(\.kind) == [.storage])
    }

    @Test("Failed access to a storage is an event with its reason")
    func failedStorage() async throws {
        service.storages = [HandStorage(failure: TestError())]
        _ = try await service.perform(Get()).value
        await service.finishStoring()
        #expect(recorder.lines() == ["created Get", "ended 200 network", "storage: not stored: TestError"])
        _ = await service.stored(Get()).result
        #expect(recorder.lines(2) == ["created Get", "storage: not read: TestError", "ended TestError"])
    }

    @Test("The read in place of a failed response is an event before the end")
    func serverElseCache() async throws {
        // The order of the timeline is that of the instants.
        let service = WebService.make(HandSession(text: "x"), timekeeper: nil)
        service.observers = [recorder]
        service.storages = [MemoryStorage()]
        _ = try await service.perform(Get()).value
        await service.finishStoring()
        service.session = ScriptedSession([.error(.cannotConnectToHost)])
        #expect(try await service.perform(Get(), fetchPolicy: .serverElseCache).value == "x")
        let task = recorder.exchanges.count - 2
        #expect(recorder.lines(task) == ["created Get", "storage: read", "ended 0 storage"])
        #expect(recorder.lines(task + 1).last == "ended URLError -1004")
        guard case .ended(let summary) = recorder.events.values.last?.kind else {
            Issue.record("the last event is not the end")
            return
        }
        #expect(summary.timeline.events.map(\.kind) == [.attempt, .storage])
    }

    @Test("The storage and the server of one task are events of one request")
    func cacheThenServer() async throws {
        service.storages = [MemoryStorage()]
        _ = try await service.perform(Get()).value
        await service.finishStoring()
        let session = HandSession()
        service.session = session
        let task = service.perform(Get(), fetchPolicy: .cacheThenServer).resume()
        await eventually { recorder.lines(2).contains("storage: read") }
        await session.exchanges.wait()[0].respond("y")
        #expect(try await task.value == "y")
        #expect(recorder.lines(2).prefix(3) == ["created Get", "storage: read", "ended 200 network"])
    }

    @Test("A cancelled typed request ends, and so does its exchange")
    func cancelled() async {
        let session = HandSession()
        service.session = session
        let task = service.perform(Get()).resume()
        await session.exchanges.wait()
        task.cancel()
        _ = await task.result
        #expect(recorder.lines() == ["created Get", "ended URLError -999"])
        #expect(await recorder.ended(1).suffix(2) == ["attempt 1 ended URLError -999", "ended URLError -999"])
    }

    /// The exchange that the first recorded event refers to.
    private func related() -> UInt64? {
        for event in recorder.events.values {
            if case .recorded(let entry) = event.kind { return entry.related }
        }
        return nil
    }
}
