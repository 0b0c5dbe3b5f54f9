import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceStorage

@testable import WebServiceCore
@testable import WebServiceMocking

@Suite("Mock endpoints", .permit)
struct MockEndpointTests {
    struct Page: MockableRequest, RawStorableRequest, Hashable {
        var site: String
        var helper: String? = "template"
        var mocked = true
        typealias Output = String
        static let made = Mutex<[String]>([])

        var isMocked: Bool { mocked }
        var mockDelay: Duration { site == "slow" ? .seconds(3) : .zero }
        var mockHelperIdentifier: String? { helper }
        func makeMockHelper() throws -> String {
            Self.made.withLock { $0.append(helper ?? "own") }
            return "<html>%</html>"
        }
        func mockOutput(helper template: String) throws -> String {
            if site == "bad" { throw WebServiceError(.decoding, "bad") }
            return template.replacingOccurrences(of: "%", with: site)
        }
        var storageIdentifier: String? { site }
    }

    struct Plain: MockableRequest {
        typealias Output = Int
        func mockOutput(helper: Void) -> Int { 7 }
    }

    struct Foreign: ServiceRequest {
        typealias Output = String
    }

    struct WrongHelper: MockableRequest {
        typealias Output = String
        var mockHelperIdentifier: String? { "shared" }
        func makeMockHelper() -> Int { 1 }
        func mockOutput(helper: Int) -> String { "\(helper)" }
    }

    @Test("An endpoint can mock every request that has a mock, whatever the request specifies")
    func everyRequest() async throws {
        let page = Page(site: "a", mocked: false)
        #expect(!MockEndpoint().supports(page))
        #expect(MockEndpoint(mocksEveryRequest: true).supports(page))
        #expect(!MockEndpoint(mocksEveryRequest: true).supports(Foreign()))
        let service = WebService(endpoints: [MockEndpoint(mocksEveryRequest: true)])
        #expect(try await service.perform(page).value == "<html>a</html>")
    }

    @Test("A request provides its mock, and its helper is created once per identifier")
    func helpers() async throws {
        let service = WebService(endpoints: [MockEndpoint()])
        let pages = await withTaskGroup(of: String?.self) { group in
            for number in 0..<100 {
                group.addTask { await service.perform(Page(site: "\(number)", helper: "once")).serviceResponse.data }
            }
            return await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(pages.count == 100)
        #expect(pages.contains("<html>42</html>"))
        #expect(Page.made.withLock { $0.filter { $0 == "once" }.count } == 1)
        _ = await (
            service.perform(Page(site: "a", helper: nil)).result, service.perform(Page(site: "b", helper: nil)).result
        )
        #expect(Page.made.withLock { $0.filter { $0 == "own" }.count } == 2)
        #expect(try await service.perform(Plain()).value == 7)
    }

    @Test("An error of a mock is the error of its request, and a disabled mock leaves it to the next endpoint")
    func errors() async throws {
        let real = MockRequestEndpoint { (request: Page) in "real \(request.site)" }
        let service = WebService(endpoints: [MockEndpoint(), real])
        #expect((await service.perform(Page(site: "bad")).serviceResponse.error as? WebServiceError)?.code == .decoding)
        #expect(try await service.perform(Page(site: "x", mocked: false)).value == "real x")
        service.endpoints = [MockEndpoint()]
        #expect(
            (await service.perform(Page(site: "x", mocked: false)).serviceResponse.error as? WebServiceError)?.code
                == .noEndpoint)
        #expect((await service.perform(Foreign()).serviceResponse.error as? WebServiceError)?.code == .noEndpoint)
    }

    @Test("A delay uses the clock of the service and ends with a cancellation")
    func delay() async throws {
        let clock = EndpointClock()
        let service = WebService(baseURLString: "", passthroughDelegate: nil, timekeeper: clock)
        service.endpoints = [MockEndpoint(), MockRequestEndpoint(delay: .seconds(3)) { (_: Foreign) in "late" }]
        let (page, foreign) = (service.perform(Page(site: "slow")).resume(), service.perform(Foreign()).resume())
        let cancelled = service.perform(Foreign()).resume()
        await eventually { clock.pending >= 3 }
        cancelled.cancel()
        #expect(await cancelled.serviceResponse.isCanceled)
        clock.advance(by: .milliseconds(2_999))
        #expect(service.containsRequest(type: Foreign.self))
        #expect(service.containsRequest(Page(site: "slow")))
        clock.advance(by: .milliseconds(1))
        #expect(try await page.value == "<html>slow</html>")
        #expect(try await foreign.value == "late")
    }

    @Test("An adapter mocks requests of other types, and a wrong output is a typed error")
    func adapter() async throws {
        struct ForeignMock: MockableRequest {
            typealias Output = String
            func mockOutput(helper: Void) -> String { "adapted" }
        }
        let service = WebService(endpoints: [MockEndpoint(adapter: { $0 is Foreign ? ForeignMock() : nil })])
        #expect(try await service.perform(Foreign()).value == "adapted")
        #expect((await service.perform(Page(site: "x")).serviceResponse.error as? WebServiceError)?.code == .noEndpoint)
        service.endpoints = [MockEndpoint(adapter: { $0 is Foreign ? Plain() : nil })]
        #expect((await service.perform(Foreign()).serviceResponse.error as? WebServiceError)?.code == .unexpectedOutput)
    }

    @Test("Helpers of two types with one identifier are a typed error")
    func helperTypes() async throws {
        let service = WebService(endpoints: [MockEndpoint()])
        _ = try await service.perform(Page(site: "a", helper: "shared")).value
        let error = await service.perform(WrongHelper()).serviceResponse.error as? WebServiceError
        #expect(error?.code == .unexpectedOutput)
    }

    @Test("A mock endpoint may hide stored raw data, which otherwise a later endpoint processes")
    func storedData() async throws {
        struct Text: ServiceEndpoint {
            func supports(_ request: any ServiceRequest) -> Bool { request is Page }
            func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
                Data("raw".utf8)
            }
            func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws
                -> any Sendable
            {
                String(decoding: rawData.rawData ?? Data(), as: UTF8.self)
            }
        }
        let service = WebService(endpoints: [Text()], storages: [MemoryStorage()])
        _ = try await service.perform(Page(site: "x")).value
        service.endpoints = [MockEndpoint(), Text()]
        #expect(try await service.stored(Page(site: "x")).value.value == "raw")
        service.endpoints = [MockEndpoint(hidesStoredData: true), Text()]
        #expect(
            (await service.stored(Page(site: "x")).serviceResponse.error as? WebServiceError)?.code == .noStoredData)
        // The output of a mock has no raw data to store.
        _ = try await service.perform(Page(site: "y")).value
        service.endpoints = [Text()]
        #expect(
            (await service.stored(Page(site: "y")).serviceResponse.error as? WebServiceError)?.code == .noStoredData)
    }
}

/// A clock that advances only when the test advances it.
private final class EndpointClock: Timekeeper {
    private let alarms = AlarmTimer()
    private let time = Mutex<UInt64>(1)
    var instant: UInt64 { time.withLock { $0 } }
    var pending: Int { alarms.count }
    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        alarms.add(at: instant.addingSaturated(delay), target)
    }
    func cancel(_ alarm: Alarm) { alarms.cancel(alarm) }
    func advance(by duration: Duration) {
        let now = time.withLock { time in
            time = time.addingSaturated(duration)
            return time
        }
        alarms.fire(at: now)
    }
}
