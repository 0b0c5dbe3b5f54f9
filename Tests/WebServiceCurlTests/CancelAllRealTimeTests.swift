import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceEndpoints
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Everything that a service has in flight over sockets, cancelled at once.
@Suite("Cancelling everything in flight", .exclusive(minutes: 30))
struct CancelAllRealTimeTests {
    private struct Brewers: HTTPServiceRequest, Hashable {
        let number: Int
        typealias Output = Data
        func request(for service: WebService) -> Request { service.request(.GET, path: "/typed/\(number)") }
    }

    /// A server that responds at once, late, slowly, or not at all, depending on the number at the
    /// end of the path.
    private static func server() throws -> MockServer {
        try .forTest { request in
            let number = Int(request.path.split(separator: "/").last ?? "") ?? 0
            let size = number % 3 == 0 ? 300_000 : 10
            var response = MockResponse(statusCode: 200, data: Data(repeating: 1, count: size))
            switch number % 5 {
            case 0: break
            case 1: response.delay = .milliseconds(number % 40)
            case 2: response.delay = .seconds(600)
            case 3:
                response.writer = { body in
                    for _ in 0..<100 {
                        try body.write(Data(repeating: 1, count: 100))
                        body.pause(for: .milliseconds(5))
                    }
                }
            default: response.delay = .milliseconds(1)
            }
            return response
        }
    }

    /// The number of times that each exchange has completed, and the time of the last one.
    private struct Tally {
        var counts: [Int: Int] = [:]
        var last = ContinuousClock.now

        mutating func complete(_ number: Int) {
            counts[number, default: 0] += 1
            last = .now
        }
    }

    /// Starts an exchange of one of five kinds, which counts its completion.
    private func start(_ number: Int, _ service: WebService, _ folder: URL, _ tally: Box<Tally>) {
        let end: @Sendable () -> Void = { tally.change { $0.complete(number) } }
        switch number % 5 {
        case 0: service.GET("/x/\(number)").data().onCompletion { _ in end() }.resume()
        case 1: service.perform(Brewers(number: number)).onCompletion { _ in end() }.resume()
        case 2:
            let file = folder.appendingPathComponent("\(number)")
            service.GET("/file/\(number)").download(to: file).onCompletion { _ in end() }.resume()
        case 3:
            let body = Request.Body.stream(length: 1 << 20) {
                AsyncStream<Data> { chunks in
                    for _ in 0..<16 { chunks.yield(Data(repeating: 2, count: 1 << 16)) }
                    chunks.finish()
                }
            }
            service.POST("/upload/\(number)").setBody(body).data().onCompletion { _ in end() }.resume()
        default:
            Task {
                if let response = try? await service.GET("/stream/\(number)").stream(bufferSize: 1_000).value {
                    // The end of the body is what is counted.
                    do { for try await _ in response.body {} } catch {}
                }
                end()
            }
        }
    }

    @Test("After storms of all kinds, each exchange has completed once, and no resource is left")
    func storms() async throws {
        let session = try CurlSession { $0.maximumConnectionsPerHost = 16 }
        let server = try Self.server()
        let service = WebService(server.baseURLString, session: session)
        var random = SeededGenerator(seed: 27)
        let (descriptors, threads) = (Resources.descriptors, Resources.threads)
        for _ in 0..<amount(5, thorough: 15, soak: 1_000) {
            let folder = TemporaryFolder()
            let tally = Box(Tally())
            let count = Int.random(in: 1...60, using: &random)
            let cancelled = Int.random(in: 0..<count, using: &random)
            for number in 0..<count {
                start(number, service, folder.url, tally)
                if number == cancelled { service.cancelAll() }
            }
            // Two of five responses arrive at once, unless they are cancelled above.
            let completions = Int.random(in: 0...(count / 4), using: &random)
            await eventually { tally.value.counts.count >= completions }
            service.cancelAll()
            // A stream that begins in a Swift task may be resumed after the cancellation.
            await eventually("each exchange completes") {
                service.cancelAll()
                return tally.value.counts.count == count
            }
            #expect(tally.value.counts.values.max() == 1)
            #expect(service.exchanges.isEmpty)
        }
        session.close()
        server.stop()
        await eventually("descriptors and threads are released") {
            Resources.descriptors <= descriptors + 4 && Resources.threads <= threads + 8
        }
    }

    @Test("With 1,000 exchanges in flight, the last one completes within 200 ms of the call")
    func thousand() async throws {
        let session = try CurlSession { $0.maximumConnectionsPerHost = 64 }
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200).after(.seconds(600)) }
        let service = WebService(server.baseURLString, session: session)
        let limit = realTimeLimit(.milliseconds(isSanitized ? 2_000 : 200))
        var shortest = Duration.seconds(600)
        // The shortest of several: other processes can only add to the duration.
        for round in 0..<30 where round < 5 || shortest >= limit {
            let tally = Box(Tally())
            for number in 0..<1_000 {
                service.GET("/x/\(number)").data().onCompletion { _ in tally.change { $0.complete(number) } }.resume()
            }
            #expect(service.exchanges.count == 1_000)
            let start = ContinuousClock.now
            service.cancelAll()
            await eventually("each exchange completes") { tally.value.counts.count == 1_000 }
            #expect(tally.value.counts.values.max() == 1)
            shortest = min(shortest, start.duration(to: tally.value.last))
        }
        print("1,000 cancelled exchanges: \(shortest)")
        #expect(shortest < limit)
        session.close(.cancelling)
    }
}
