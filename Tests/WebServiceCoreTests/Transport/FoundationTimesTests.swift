import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// Time values that are not positive finite numbers, in every public API that accepts a time
/// value without rejecting it.
@Suite("Invalid time values", .permit)
struct FoundationTimesTests {
    private static let values: [Double] = [
        0, -1, -0.0, .nan, .infinity, -.infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude,
    ]

    @Test(
        "A URLRequest with any timeout is sent over FoundationSession and URLSession without a trap",
        arguments: values)
    func urlRequests(seconds: Double) async {
        var request = URLRequest(url: URL(string: "http://127.0.0.1:1/") ?? URL(fileURLWithPath: "/"))
        request.timeoutInterval = seconds
        let plain = URLSession(configuration: FoundationSession.defaultConfiguration)
        for session in [FoundationSession.shared, plain] as [any Session] {
            let code: URLError.Code? = await withCheckedContinuation { continuation in
                session.dataTask(request: request) { _, _, error in
                    continuation.resume(returning: (error as? URLError)?.code)
                }.resume()
            }
            // A timeout of one millisecond can expire before the connection is refused.
            #expect(code == .cannotConnectToHost || seconds < 1 && code == .timedOut)
        }
    }

    @Test(
        "Timeouts are clamped to the range from 1 millisecond to 1e9 seconds, and NaN becomes the default")
    func clamped() {
        #expect(Self.values.map(\.clampedTimeout) == [0.001, 0.001, 0.001, 60, 1e9, 0.001, 0.001, 1e9])
    }

    @Test(
        "A connectTimeout that is not a positive finite number is an error",
        arguments: [.zero, .seconds(-1), .nanoseconds(-1), .seconds(Int64.min)] as [Duration])
    func connectTimeout(timeout: Duration) {
        let error = #expect(throws: WebServiceError.self) {
            try Request.make { $0.options.connectTimeout = timeout }.urlRequest()
        }
        #expect(error?.code == .encoding)
        #expect(error?.description.contains("connectTimeout") == true)
    }

    @Test("Extreme time values of Authentication neither trap nor cause a loop", arguments: values)
    func authentication(seconds: Double) async {
        let session = HandSession { $0.respond(status: 401) }
        let service = WebService.make(
            session, timekeeper: TestTimekeeper(date: { Date(timeIntervalSince1970: seconds) }))
        let authentication = Authentication(
            TokenSource({ .bearer("t1", expires: Date(timeIntervalSince1970: seconds)) }) { _ in .bearer("t2") },
            leeway: Duration.clamping(seconds: seconds),
            refreshLimit: .seconds(Int64.max), maximumRefreshes: .max, refreshWindow: .seconds(Int64.min))
        service.interceptors = [authentication]
        #expect((try? await service.GET("/x").data().response.status) == 401)  // an error becomes a missing status
    }
}

/// The URL session that carries the exchanges of a ``FoundationSession``.
@Suite("Exchange table", .exclusive)
struct TaskTableTests {
    /// A protocol that loads nothing and stops only when the test allows it.
    private final class HeldProtocol: URLProtocol {
        static let stops = Collected<Void>()
        static let gate = DispatchSemaphore(value: 0)

        override class func canInit(with request: URLRequest) -> Bool { true }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
        override func startLoading() {}
        override func stopLoading() {
            Self.stops.add(())
            Self.gate.wait()
        }
    }

    @Test("A released table is deallocated only after its abandoned task has ended")
    func release() async {
        let configuration = FoundationSession.defaultConfiguration
        configuration.protocolClasses = [HeldProtocol.self]
        weak var released: TaskTable?
        let errors = Collected<URLError.Code?>()
        do {
            let table = TaskTable(configuration: configuration, .system)
            released = table
            let request = URLRequest(url: URL(string: "http://127.0.0.1:1/") ?? URL(fileURLWithPath: "/"))
            let delivery = BodyDelivery(
                ResponseReceiver(request, source: .network) { result, _ in
                    if case .failure(let error) = result { errors.add((error as? URLError)?.code) }
                })
            ResumableDataTask(request: request) { _, _, _ in
            } start: { request, handle in
                table.start(request, of: errors, timeout: 0.001, handle: handle, delivery: delivery)
            }.resume()
            #expect(await errors.wait() == [.timedOut])
            await HeldProtocol.stops.wait()
            table.release()
        }
        #expect(released != nil)
        HeldProtocol.gate.signal()
        await eventually { released == nil }
        #expect(released == nil)
        #expect(errors.values == [.timedOut])
    }
}
