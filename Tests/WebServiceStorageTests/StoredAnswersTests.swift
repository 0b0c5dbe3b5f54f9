import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCore
@testable import WebServiceStorage

@Suite("Stored responses", .permit)
struct StoredAnswersTests {
    private let storage = HandStorage()

    /// A calendar date that the test controls.
    final class Calendar: Sendable {
        private let date = Mutex(Date(timeIntervalSince1970: 1_000_000))
        var now: Date { date.withLock { $0 } }
        func advance(_ seconds: TimeInterval) { date.withLock { $0 += seconds } }
    }

    private let endpoint = HandEndpoint { text, isFromStorage in
        if text == "bad" { throw TestError(name: "bad") }
        return isFromStorage ? "stored \(text)" : text
    }
    private let calendar = Calendar()
    private let failures = Collected<StorageEntry.Failure>()

    private func service(_ storages: [any ResponseStorage]) -> WebService {
        let service = WebService(
            baseURLString: "", passthroughDelegate: nil,
            timekeeper: TestTimekeeper(ManualTimekeeper(), date: { [calendar] in calendar.now }))
        service.endpoints = [endpoint]
        service.storages = storages
        service.storageErrorObserver = { [failures] in failures.add($0) }
        return service
    }

    /// Performs a request that the endpoint responds to with the string.
    @discardableResult
    private func perform<Request: ServiceRequest>(_ request: Request, _ text: String, by service: WebService) async
        -> Result<
            Request.Output, any Error
        >
    {
        let count = endpoint.fetches.values.count
        let task = service.perform(request).resume()
        await endpoint.fetches.wait(for: count + 1)[count].respond(text)
        return await task.result
    }

    private func code(_ task: TypedTask<some Sendable>) async -> WebServiceError.Code? {
        (await task.serviceResponse.error as? WebServiceError)?.code
    }

    @Test("A stored response can be read: the endpoint processes raw data, and the request decodes values")
    func roundTrip() async throws {
        let service = service([MemoryStorage()])
        await perform(RawText(name: "r"), "one", by: service)
        await perform(ValueText(name: "v"), "two", by: service)
        #expect(try await service.stored(RawText(name: "r")).value.value == "stored one")
        #expect(try await service.stored(ValueText(name: "v")).value.value == "two")
        #expect(try await service.stored(RawText(name: "r")).response.source == .storage)
        #expect(await code(service.stored(RawText(name: "x"))) == .noStoredData)
        #expect(failures.values.isEmpty)
    }

    @Test("A read returns the latest response even if its write is still in progress")
    func readsBehindWrites() async throws {
        let gate = Once<Bool>()
        let service = service([HandStorage(gate: gate)])
        #expect(try await perform(RawText(), "one", by: service).get() == "one")
        let read = service.stored(RawText()).resume()
        gate.set(true)
        #expect(try await read.value.value == "stored one")
    }

    @Test("Responses are stored only for storable requests with an identifier and a storage")
    func optIn() async throws {
        struct Nameless: RawStorableRequest {
            typealias Output = String
            var storageIdentifier: String? { nil }
        }
        let service = service([storage])
        await perform(TextRequest(), "one", by: service)
        await perform(Nameless(), "one", by: service)
        #expect(storage.calls.values.isEmpty)
        #expect(await code(service.stored(Nameless())) == .noStoredData)
        service.storages = []
        await perform(RawText(), "one", by: service)
        #expect(await code(service.stored(RawText())) == .noStorage)
    }

    @Test("A value of a request without a storage form is stored unchanged, and only in memory")
    func live() async throws {
        struct Live: StorableRequest {
            typealias Output = String
            var storageIdentifier: String? { "live" }
        }
        let bytes = HandStorage()
        let service = service([bytes, MemoryStorage()])
        await perform(Live(), "one", by: service)
        #expect(try await service.stored(Live()).value.value == "one")
        #expect(bytes.calls.values.isEmpty)
        service.storages = [bytes]
        #expect(await code(service.stored(Live())) == .noStorage)
    }

    @Test("Only successful responses are stored")
    func onlySuccess() async throws {
        let service = service([storage])
        _ = await perform(RawText(), "bad", by: service)
        let task = service.perform(RawText()).resume()
        await endpoint.fetches.wait(for: 2)[1].fail(TestError())
        _ = await task.result
        #expect(await code(service.stored(RawText())) == .noStoredData)
        #expect(storage.calls.values == [.read])
    }

    @Test(
        "A cancelled request stores nothing, even while its response is processed or waits to be stored"
    )
    func cancelled() async throws {
        let (processing, goOn) = (Collected<Void>(), Once<Bool>())
        let endpoint = HandEndpoint(heedsCancel: false) { text, _ in
            processing.add(())
            if text == "slow" { _ = await goOn.value }
            return text
        }
        let gate = Once<Bool>()
        let service = service([storage])
        service.endpoints = [endpoint]
        let early = service.perform(RawText()).resume()
        await endpoint.fetches.wait()
        early.cancel()
        endpoint.fetches.values[0].respond("early")
        #expect(await early.serviceResponse.isCanceled)

        let during = service.perform(RawText()).resume()
        await endpoint.fetches.wait(for: 2)[1].respond("slow")
        await processing.wait(for: 1)
        during.cancel()
        #expect(await during.serviceResponse.isCanceled)
        goOn.set(true)

        // A write that waits for another one of the same key until the request is cancelled.
        let gated = HandStorage(gate: gate)
        service.storages = [gated]
        service.perform(RawText()).resume()
        await endpoint.fetches.wait(for: 3)[2].respond("first")
        await gated.begun.wait()
        let late = service.perform(RawText()).resume()
        await endpoint.fetches.wait(for: 4)[3].respond("late")
        #expect(try await late.value == "late")
        late.cancel()
        gate.set(true)
        #expect(try await service.stored(RawText()).value.value == "first")
        #expect(storage.calls.values.isEmpty)
    }

    @Test("A request that was replaced or overtaken by a later one stores nothing")
    func superseded() async throws {
        let endpoint = HandEndpoint(heedsCancel: false)
        let service = service([storage])
        service.endpoints = [endpoint]
        let replaced = service.perform(RawText()).resume()
        await endpoint.fetches.wait()
        let slow = service.perform(RawText(), duplicates: .replace).resume()
        await endpoint.fetches.wait(for: 2)
        let quick = service.perform(RawText()).resume()
        await endpoint.fetches.wait(for: 3)
        endpoint.fetches.values[0].respond("replaced")
        endpoint.fetches.values[2].respond("newer")
        #expect(try await quick.value == "newer")
        endpoint.fetches.values[1].respond("older")
        #expect(try await slow.value == "older")
        #expect(await replaced.serviceResponse.isCanceled)
        #expect(try await service.stored(RawText()).value.value == "newer")
        #expect(storage.calls.values == [.store("newer"), .read])
    }

    @Test("A response is stored after that of an older request, even if a newer request has failed")
    func notSuperseded() async throws {
        let service = service([storage])
        let first = service.perform(RawText()).resume()
        await endpoint.fetches.wait()
        let second = service.perform(RawText()).resume()
        await endpoint.fetches.wait(for: 2)
        let third = service.perform(RawText()).resume()
        await endpoint.fetches.wait(for: 3)
        endpoint.fetches.values[2].fail(TestError(name: "third"))
        #expect(await third.serviceResponse.data == nil)
        endpoint.fetches.values[0].respond("first")
        #expect(try await first.value == "first")
        endpoint.fetches.values[1].respond("second")
        #expect(try await second.value == "second")
        #expect(try await service.stored(RawText()).value.value == "stored second")
        #expect(storage.calls.values == [.store("first"), .store("second"), .read])
    }

    @Test(
        "A request that is overtaken immediately before its write stores nothing",
        .enabled(if: ProcessInfo.processInfo.activeProcessorCount > 1, "the test blocks a thread"))
    func supersededLate() async throws {
        struct Held: RawDataSource {
            let wait: @Sendable () -> Void
            var rawData: Data? { Data("older".utf8) }
            var isStorable: Bool {
                wait()
                return true
            }
        }
        let service = service([MemoryStorage()])
        let older = service.perform(RawText()).resume()
        await endpoint.fetches.wait()
        let newer = service.perform(RawText()).resume()
        await endpoint.fetches.wait(for: 2)
        let (asked, answered) = (Collected<Void>(), DispatchSemaphore(value: 0))
        endpoint.fetches.values[0].respond(
            Held {
                asked.add(())
                _ = answered.wait(timeout: .now() + 60)  // other tests may block the other threads
            })
        await asked.wait()
        endpoint.fetches.values[1].respond("newer")
        #expect(try await newer.value == "newer")
        answered.signal()
        #expect(try await older.value == "older")
        #expect(try await service.stored(RawText()).value.value == "stored newer")
    }

    @Test("A storage failure never fails the request and is reported to the observer")
    func failing() async throws {
        let service = service([HandStorage(failure: TestError(name: "full"))])
        #expect(try await perform(RawText(), "one", by: service).get() == "one")
        await #expect(throws: TestError(name: "full")) { try await service.stored(RawText()).value }
        await #expect(throws: TestError(name: "full")) { try await service.deleteStored(RawText()) }
        await #expect(throws: TestError(name: "full")) { try await service.deleteAllStored() }
        let heard = await failures.wait(for: 4)
        #expect(heard.map(\.operation) == [.store, .read, .remove, .remove])
        #expect(heard[0].key == StorageKey(identifier: "a"))
        #expect(heard[3].key == nil)
    }

    @Test("A value that cannot be converted to bytes is a storage failure, and the request succeeds")
    func conversion() async throws {
        struct Unwritable: ValueStorableRequest {
            typealias Output = String
            var storageIdentifier: String? { "u" }
            func storageData(for value: String) throws -> Data? {
                if value == "nothing" { return nil }
                throw TestError(name: "conversion")
            }
            func storedValue(from data: Data) throws -> String? { nil }
        }
        let service = service([storage])
        #expect(try await perform(Unwritable(), "one", by: service).get() == "one")
        #expect(await failures.wait()[0].error as? TestError == TestError(name: "conversion"))
        await perform(Unwritable(), "nothing", by: service)
        #expect(storage.calls.values.isEmpty)
    }

    @Test("Stored bytes that the current type cannot decode are reported as missing, with the reason")
    func versions() async throws {
        struct Old: Codable, Sendable { var name: String }
        struct New: Codable, Sendable { var title: String }
        struct OldRequest: ValueStorableRequest {
            typealias Output = Old
            var storageIdentifier: String? { "typed" }
        }
        struct NewRequest: ValueStorableRequest {
            typealias Output = New
            var storageIdentifier: String? { "typed" }
        }
        let storage = MemoryStorage()
        let service = service([storage])
        service.endpoints = [HandEndpoint()]
        try storage.store(
            StorageEntry(.value(Data(#"{"name":"x"}"#.utf8)), date: calendar.now), for: StorageKey(identifier: "typed"))
        #expect(try await service.stored(OldRequest()).value.value.name == "x")
        let error = await service.stored(NewRequest()).serviceResponse.error as? WebServiceError
        #expect(error?.code == .noStoredData)
        #expect(error?.underlying is DecodingError)
        // Raw bytes that the endpoint rejects, and bytes in another form.
        try storage.store(StorageEntry(.raw(Data("bad".utf8)), date: calendar.now), for: StorageKey(identifier: "a"))
        service.endpoints = [endpoint]
        #expect(await (service.stored(RawText()).serviceResponse.error as? WebServiceError)?.underlying is TestError)
        #expect(await code(service.stored(ValueText(name: "typed"))) == .noStoredData)
    }

    @Test("Stored values expire by age, and a date in the future counts as missing")
    func ages() async throws {
        let service = service([MemoryStorage()])
        await perform(RawText(), "one", by: service)
        calendar.advance(3_600)
        let stored = try await service.stored(RawText(), maximumAge: .seconds(3_600)).value
        #expect(stored.age == .seconds(3_600))
        #expect(stored.date == Date(timeIntervalSince1970: 1_000_000))
        calendar.advance(1)
        #expect(await code(service.stored(RawText(), maximumAge: .seconds(3_600))) == .noStoredData)
        // The clock is set back to before the stored date.
        calendar.advance(-10_000)
        let future = try await service.stored(RawText()).value
        #expect(future.date == nil)
        #expect(future.age == nil)
        #expect(await code(service.stored(RawText(), maximumAge: .seconds(1_000_000_000))) == .noStoredData)
    }

    @Test("The date of a stored value is that of its response, even if the storage is slow")
    func dateOfResponse() async throws {
        let gate = Once<Bool>()
        let service = service([HandStorage(gate: gate)])
        await perform(RawText(), "one", by: service)
        await perform(RawText(), "two", by: service)
        calendar.advance(60)
        gate.set(true)
        let stored = try await service.stored(RawText()).value
        #expect(stored.value == "stored two")
        #expect(stored.date == Date(timeIntervalSince1970: 1_000_000))
    }

    @Test("The entries of one classification are deleted from storages that accept several or any")
    func severalClassifications() async throws {
        let (user, users, temporary) = (
            DataClassification("user"), DataClassification("users"), DataClassification("temporary")
        )
        try await withScratchFolder { folder in
            let storages: [any ResponseStorage] = [
                MemoryStorage(), MemoryStorage(classifications: [user, users, temporary]),
                try FileStorage(folder: folder.appendingPathComponent("any")),
                try FileStorage(
                    folder: folder.appendingPathComponent("two"), classifications: [user, users, temporary],
                    maximumCount: 10),
            ]
            for storage in storages {
                let service = service([storage])
                let requests = [
                    RawText(name: "a", classification: user), RawText(name: "b", classification: user),
                    RawText(name: "a", classification: users), RawText(name: "user", classification: temporary),
                ]
                for request in requests { await perform(request, "x", by: service) }
                try await service.deleteStored(user)
                var there: [Bool] = []
                for request in requests { there.append(await service.stored(request).serviceResponse.data != nil) }
                #expect(there == [false, false, true, true], "\(storage)")
            }
        }
    }

    @Test("A storage that cannot distinguish classifications reports it and retains its entries")
    func bareFiles() async throws {
        let (user, temporary) = (DataClassification("user"), DataClassification("temporary"))
        try await withScratchFolder { folder in
            let service = service([
                try FileStorage(folder: folder, format: .bare, classifications: [user, temporary])
            ])
            await perform(RawText(classification: temporary), "x", by: service)
            let error = await #expect(throws: WebServiceError.self) { try await service.deleteStored(user) }
            #expect(error?.code == .storage)
            #expect(await service.stored(RawText(classification: temporary)).serviceResponse.data != nil)
            service.storages = [try FileStorage(folder: folder, format: .bare, classifications: [temporary])]
            try await service.deleteStored(temporary)
            #expect(await service.stored(RawText(classification: temporary)).serviceResponse.data == nil)
        }
    }

    @Test("The classification selects the storage, and each delete method removes only its entries")
    func classifications() async throws {
        let user = DataClassification("user")
        let temporary = DataClassification("temporary")
        let (memory, users, any) = (HandStorage([temporary]), HandStorage([user]), HandStorage())
        let service = service([memory, users, any])
        let requests = [
            RawText(name: "t", classification: temporary), RawText(name: "u", classification: user), RawText(name: "d"),
        ]
        func fill() async { for request in requests { await perform(request, "x", by: service) } }
        func there() async -> [Bool] {
            var result: [Bool] = []
            for request in requests { result.append(await service.stored(request).serviceResponse.data != nil) }
            return result
        }
        await fill()
        #expect(await there() == [true, true, true])
        #expect(memory.calls.values.count == 2)
        #expect(users.calls.values.count == 2)
        #expect(any.calls.values.count == 2)
        try await service.deleteStored(user)
        #expect(await there() == [true, false, true])
        try await service.deleteStoredInAnyClassification()
        #expect(await there() == [true, false, false])
        await fill()
        try await service.deleteStored(requests[0])
        #expect(await there() == [false, true, true])
        try await service.deleteAllStored()
        #expect(await there() == [false, false, false])
    }

    @Test(
        "An account reads only its own entries, and a late response is stored for the requesting account"
    )
    func accounts() async throws {
        let service = service([MemoryStorage()])
        service.storageAccount = "alice"
        let task = service.perform(RawText()).resume()
        await endpoint.fetches.wait()
        service.storageAccount = "bob"
        endpoint.fetches.values[0].respond("alice's")
        _ = await task.result
        #expect(await code(service.stored(RawText())) == .noStoredData)
        service.storageAccount = nil
        #expect(await code(service.stored(RawText())) == .noStoredData)
        service.storageAccount = "alice"
        #expect(try await service.stored(RawText()).value.value == "stored alice's")
    }

    @Test("A response with no-store is not stored")
    func noStore() async throws {
        struct Get: HTTPServiceRequest, RawStorableRequest {
            var path: String
            typealias Output = String
            var storageIdentifier: String? { path }
            func request(for service: WebService) -> Request { service.request(.GET, path: path) }
        }
        let session = HandSession { exchange in
            let path = exchange.request.urlRequestValue.url?.path ?? ""
            let fields =
                path.contains("secret")
                ? ["cache-control": "private, No-Store"] : ["Cache-Control": #"no-cache, ext="a, no-store, b""#]
            let url = exchange.request.urlRequestValue.url ?? URL(fileURLWithPath: "/")
            exchange.completion(
                Data("x".utf8), HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields), nil)
        }
        let service = WebService.make(session)
        service.storages = [MemoryStorage()]
        _ = try await service.perform(Get(path: "/open")).value
        _ = try await service.perform(Get(path: "/secret")).value
        #expect(try await service.stored(Get(path: "/open")).value.value == "x")
        #expect(await code(service.stored(Get(path: "/secret"))) == .noStoredData)
    }

    @Test("Text in another charset is restored from a storage that does not retain header fields")
    func charset() async throws {
        struct Page: HTTPServiceRequest, RawStorableRequest {
            typealias Output = String
            var storageIdentifier: String? { "page" }
            func request(for service: WebService) -> Request { service.request(.GET, path: "/page") }
        }
        let session = HandSession { exchange in
            let url = exchange.request.urlRequestValue.url ?? URL(fileURLWithPath: "/")
            let fields = ["Content-Type": "text/html; charset=iso-8859-1"]
            exchange.completion(
                Data([0xE9]), HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields), nil)
        }
        let service = WebService.make(session)
        service.storages = [MemoryStorage()]
        #expect(try await service.perform(Page()).value == "é")
        #expect(try await service.stored(Page()).value.value == "é")
    }

    @Test("An endpoint can hide stored raw data or leave it to another endpoint, and a missing endpoint is an error")
    func hiding() async throws {
        struct Hiding: ServiceEndpoint {
            let handling: StorageEntry.Handling
            func supports(_ request: any ServiceRequest) -> Bool { false }
            func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
                throw TestError()
            }
            func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws
                -> any Sendable
            {
                throw TestError()
            }
            func storedData(of request: any ServiceRequest) -> StorageEntry.Handling { handling }
        }
        let service = service([MemoryStorage()])
        await perform(RawText(), "one", by: service)
        service.endpoints = [Hiding(handling: .leaves), endpoint]
        #expect(try await service.stored(RawText()).value.value == "stored one")
        service.endpoints = [Hiding(handling: .hides), endpoint]
        #expect(await code(service.stored(RawText())) == .noStoredData)
        service.endpoints = [Hiding(handling: .leaves)]
        #expect(await code(service.stored(RawText())) == .noEndpoint)
    }

    @Test("Custom raw data is stored as its bytes, and a response that is not storable is not stored")
    func richRawData() async throws {
        struct ServerData: RawDataSource {
            let statusCode: Int
            let binary: Data
            var rawData: Data? { binary }
            var isStorable: Bool { statusCode == 200 }
        }
        let service = service([MemoryStorage()])
        for (name, status) in [("a", 200), ("b", 203)] {
            let count = endpoint.fetches.values.count
            let task = service.perform(RawText(name: name)).resume()
            await endpoint.fetches.wait(for: count + 1)[count].respond(
                ServerData(statusCode: status, binary: Data("rich".utf8)))
            #expect(try await task.value == "rich")
        }
        #expect(try await service.stored(RawText(name: "a")).value.value == "stored rich")
        #expect(await code(service.stored(RawText(name: "b"))) == .noStoredData)
    }

    @Test(
        "A dependent read ends if its task succeeds or, optionally, is cancelled or a duplicate, but not if it fails"
    )
    func dependencies() async throws {
        let service = service([MemoryStorage()])
        await perform(RawText(), "old", by: service)

        // The task is not complete, so the read returns the stored value.
        let pending = service.perform(RawText()).resume()
        #expect(try await service.stored(RawText(), .untilSuccess(of: pending)).value.value == "stored old")
        #expect(try await service.stored(RawText(), .untilFinished(pending)).value.value == "stored old")
        await endpoint.fetches.wait(for: 2)[1].respond("new")
        _ = await pending.result
        #expect(await service.stored(RawText(), .untilSuccess(of: pending)).serviceResponse.isCanceled)
        #expect(await service.stored(RawText(), .untilFinished(pending)).serviceResponse.isCanceled)
        #expect(try await service.stored(RawText(), .independent).value.value == "stored new")

        let failing = service.perform(RawText()).resume()
        await endpoint.fetches.wait(for: 3)[2].fail(TestError())
        _ = await failing.result
        #expect(try await service.stored(RawText(), .untilFinished(failing)).value.value == "stored new")

        let cancelled = service.perform(RawText()).resume()
        cancelled.cancel()
        _ = await cancelled.result
        #expect(try await service.stored(RawText(), .untilSuccess(of: cancelled)).value.value == "stored new")
        #expect(await service.stored(RawText(), .untilFinished(cancelled)).serviceResponse.isCanceled)

        let running = service.perform(RawText()).resume()
        let duplicate = service.perform(RawText(), duplicates: .reject).resume()
        _ = await duplicate.result
        #expect(await service.stored(RawText(), .untilFinished(duplicate)).serviceResponse.isCanceled)
        running.cancel()
    }

    @Test("A task that is never resumed is deallocated, even if a read depends on it")
    func dependencyOnNothing() async throws {
        let service = service([MemoryStorage()])
        weak var exchange: SessionTask?
        do {
            let task = service.perform(RawText())
            exchange = task.task
            #expect(await code(service.stored(RawText(), .untilSuccess(of: task))) == .noStoredData)
        }
        await eventually { exchange == nil }
        #expect(exchange == nil)
    }

    @Test("A read in progress is cancelled when the task that it depends on succeeds")
    func dependencyDuringRead() async throws {
        let gate = Once<Bool>()
        let service = service([HandStorage(gate: gate)])
        await perform(RawText(), "old", by: service)
        let task = service.perform(ValueText()).resume()
        // The read waits for the write of "old", which waits for the gate.
        let read = service.stored(RawText(), .untilSuccess(of: task)).resume()
        await endpoint.fetches.wait(for: 2)[1].respond("new")
        #expect(try await task.value == "new")
        #expect(await read.serviceResponse.isCanceled)
        gate.set(true)
    }

    @Test("The stored value is never delivered after the response of the server")
    func lastShown() async throws {
        for turn in 0..<amount(10, thorough: 50, soak: 200) {
            let service = service([MemoryStorage()])
            let endpoint = HandEndpoint()
            service.endpoints = [endpoint]
            let seeded = service.perform(RawText()).resume()
            await endpoint.fetches.wait()[0].respond("old")
            _ = await seeded.result
            let shown = Collected<String>()
            let task = service.perform(RawText()).updateUI { shown.add("new \($0)") }.resume()
            let fetch = await endpoint.fetches.wait(for: 2)[1]
            let read = service.stored(RawText(), .untilSuccess(of: task)).updateUI { shown.add("old \($0.value)") }
            if turn % 2 == 0 { read.resume() }
            fetch.respond("x")
            if turn % 2 == 1 { read.resume() }
            _ = await (read.result, task.result)
            #expect(await shown.wait().last == "new x")
        }
    }

    @Test("The delegate is notified of reads from a storage, and with onlyData only of stored values")
    func delegates() async throws {
        final class Delegate: ServiceDelegate {
            let calls = Collected<String>()
            func serviceDidRespond(
                _ response: ServiceResponse<any Sendable>, to request: any ServiceRequest,
                key: (any Hashable & Sendable)?, isFromStorage: Bool
            ) {
                calls.add("\(response.data as? String ?? "-") \(key as? String ?? "-") \(isFromStorage)")
            }
        }
        let delegate = Delegate()
        let service = service([MemoryStorage()])
        await perform(RawText(), "one", by: service)
        service.stored(RawText(), key: "k", delegate: delegate)
        #expect(await delegate.calls.wait() == ["stored one k true"])
        _ = await service.stored(RawText(name: "none"), onlyData: true, delegate: delegate).result
        service.stored(RawText(name: "none"), delegate: delegate)
        #expect(await delegate.calls.wait(for: 2).last == "- - true")
        #expect(delegate.calls.values.count == 2)
    }

    @Test("Deallocating a service cancels its reads")
    func release() async throws {
        let gate = Once<Bool>()
        var service: WebService? = service([HandStorage(gate: gate)])
        if let service { await perform(RawText(), "old", by: service) }
        let results = Collected<Bool>()
        let read = try #require(
            service?.stored(RawText()).onCompletion { results.add(ServiceResponse($0).isCanceled) }.resume().task)
        service = nil
        #expect(await results.wait() == [true])
        // A cancelled task is completed only after its handlers have returned.
        await eventually("the read completes") { read.state == .completed }
        gate.set(true)
    }
}
