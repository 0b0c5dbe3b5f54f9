import Foundation
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Curl session: time")
struct CurlTimeTests {
    private func elapsed<Value>(_ body: () async -> Value) async -> (Value, Duration) {
        let start = ContinuousClock.now
        let value = await body()
        return (value, start.duration(to: .now))
    }

    @Test("H-05, G15: silence ends a task after its idle time, to the millisecond", arguments: [30, 120, 370])
    func idle(milliseconds: Int) async throws {
        let server = try MockServer { _ in MockResponse("x", wire: .noAnswer) }
        defer { server.stop() }
        let service = WebService(server, try CurlSession())
        var request = service.request(.GET, path: "/")
        request.timeout = Double(milliseconds) / 1000
        let (result, time) = await elapsed { await service.sessionTask(request: request).data().result }
        #expect(result.urlErrorCode == .timedOut)
        #expect(time >= .milliseconds(milliseconds) && time < .milliseconds(milliseconds + 250))
    }

    @Test("H-04: an answer that drips outlives the idle time, and the deadline ends it")
    func drip() async throws {
        let server = try MockServer { _ in MockResponse(Data(count: 4000), wire: .drip(size: 40, pause: .milliseconds(20))) }
        defer { server.stop() }
        let service = WebService(server, try CurlSession())
        var request = service.request(.GET, path: "/")
        request.timeout = 0.3
        request.deadline = .milliseconds(600)
        let (result, time) = await elapsed { await service.sessionTask(request: request).data().result }
        #expect(result.code == .deadline)
        #expect(time >= .milliseconds(600) && time < .milliseconds(850))
    }

    @Test("H-05: connecting has a limit of its own, told from silence")
    func connecting() async throws {
        let listener = try FullListener()
        let service = WebService(baseURLString: "http://127.0.0.1:\(listener.port)")
        service.session = try CurlSession { $0.connectTimeout = .milliseconds(150) }
        let (result, time) = await elapsed { await service.GET("/").data().result }
        #expect(result.urlErrorCode == .cannotConnectToHost)
        #expect(time >= .milliseconds(140) && time < .milliseconds(400))
        var request = service.request(.GET, path: "/")
        request.connectTimeout = 0.4
        let (own, ownTime) = await elapsed { await service.sessionTask(request: request).data().result }
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

    @Test("G15: from cancel to the end it takes less than 50 milliseconds")
    func cancel() async throws {
        let server = try MockServer { _ in MockResponse("x", wire: .noAnswer) }
        defer { server.stop() }
        let session = try CurlSession()
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
            #expect(ended.value.map { start.duration(to: $0) < .milliseconds(50) } == true)
        }
    }
}
