import Foundation
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Curl session: time", .timeLimit(.minutes(5)))
struct CurlTimeTests {
    /// The result of a task and how long it took. Other tests keep the processors busy, so what comes too late is asked again, twice.
    private func timed<Value>(below limit: Duration, _ make: () -> TypedTask<Value>) async -> (Result<Value, any Error>, Duration) {
        for _ in 0..<2 {
            let (result, time) = await timed(make())
            if time < limit { return (result, time) }
        }
        return await timed(make())
    }

    /// Measured on the threads that bring the result, because those of Swift's tasks may be waiting for others.
    private func timed<Value>(_ task: TypedTask<Value>) async -> (Result<Value, any Error>, Duration) {
        await withCheckedContinuation { continuation in
            let start = ContinuousClock.now
            task.onCompletion { continuation.resume(returning: ($0, start.duration(to: .now))) }.resume()
        }
    }

    @Test("H-05, G15: silence ends a task after its idle time, to the millisecond", arguments: [30, 120, 370])
    func idle(milliseconds: Int) async throws {
        let server = try MockServer { _ in MockResponse("x", wire: .noAnswer) }
        defer { server.stop() }
        let service = WebService(server, try CurlSession())
        var request = service.request(.GET, path: "/")
        request.timeout = Double(milliseconds) / 1000
        let limit = Duration.milliseconds(milliseconds + 250)
        let (result, time) = await timed(below: limit) { service.sessionTask(request: request).data() }
        #expect(result.urlErrorCode == .timedOut)
        #expect(time >= .milliseconds(milliseconds) && time < limit)
    }

    @Test("H-04: an answer that drips outlives the idle time, and the deadline ends it")
    func drip() async throws {
        let server = try MockServer { _ in MockResponse(Data(count: 4000), wire: .drip(size: 40, pause: .milliseconds(20))) }
        defer { server.stop() }
        let service = WebService(server, try CurlSession())
        var request = service.request(.GET, path: "/")
        request.timeout = 0.3
        request.deadline = .milliseconds(600)
        let (result, time) = await timed(below: .milliseconds(850)) { service.sessionTask(request: request).data() }
        #expect(result.code == .deadline)
        #expect(time >= .milliseconds(600) && time < .milliseconds(850))
    }

    @Test("H-05: connecting has a limit of its own, told from silence")
    func connecting() async throws {
        let listener = try FullListener()
        let service = WebService(baseURLString: "http://127.0.0.1:\(listener.port)")
        service.session = try CurlSession { $0.connectTimeout = .milliseconds(150) }
        let (result, time) = await timed(below: .milliseconds(400)) { service.GET("/").data() }
        #expect(result.urlErrorCode == .cannotConnectToHost)
        #expect(time >= .milliseconds(140) && time < .milliseconds(400))
        var request = service.request(.GET, path: "/")
        request.connectTimeout = 0.4
        let (own, ownTime) = await timed(below: .milliseconds(650)) { service.sessionTask(request: request).data() }
        #expect(own.urlErrorCode == .cannotConnectToHost)
        #expect(ownTime >= .milliseconds(390) && ownTime < .milliseconds(650))
    }

    @Test("H-06: a server that does not read what is sent ends the task after the idle time")
    func stuckUpload() async throws {
        let listener = try FullListener(backlog: 5)
        let service = WebService(baseURLString: "http://127.0.0.1:\(listener.port)")
        service.session = try CurlSession()
        let task = service.POST("/").setBody(Data(count: 30_000_000))
        task.setTimeout(0.2)
        #expect(await task.data().result.urlErrorCode == .timedOut)
    }

    @Test("G15: from cancel to the end it takes less than 50 milliseconds, in the median")
    func cancel() async throws {
        let server = try MockServer { _ in MockResponse("x", wire: .noAnswer) }
        defer { server.stop() }
        let session = try CurlSession()
        var times: [Duration] = []
        for round in 1...20 {
            let ended = Box<ContinuousClock.Instant?>(nil)
            let task = session.dataTask(request: Request(.GET, url: server.baseURLString)) { _, _, error in
                if (error as? URLError)?.code == .cancelled { ended.change { $0 = .now } }
            }
            task.resume()
            await eventually("the request arrives") { server.receivedRequests.count == round }
            let start = ContinuousClock.now
            task.cancel()
            await eventually("it ends") { ended.value != nil }
            times.append(ended.value.map { start.duration(to: $0) } ?? .seconds(60))
        }
        #expect(times.sorted()[10] < .milliseconds(50))
    }
}
