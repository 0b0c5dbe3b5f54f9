import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Synchronization
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

@testable import BreweryWeb

/// The server between two real connections, and with a slow client.
@Suite("The server", .timeLimit(.minutes(2)))
struct ServerTests {
    @Test("A client that disconnects ends the response of the brewery API")
    func disconnection() async throws {
        let (end, continuation) = AsyncStream.makeStream(of: Void.self)
        let upstream = try MockServer()
        defer { upstream.stop() }
        upstream.on(.GET, "/log") { _ in
            MockResponse(statusCode: 200) { body in
                defer { continuation.finish() }
                while true { try body.write(Data(count: 64 << 10)) }  // until the connection is closed
            }
        }
        let session = try CurlSession()
        defer { session.close() }
        let service = WebService(baseURLString: upstream.baseURLString)
        service.session = session
        configure(service)
        try await Application(router: breweryRouter(service: service)).test(.live) { client in
            let browser = WebService(baseURLString: "http://127.0.0.1:\(try #require(client.port))")
            browser.session = session
            let log = try await browser.GET("/log").stream().value
            for try await _ in log.body { break }  // leaving the loop disconnects
            for await _ in end {}
        }
    }

    @Test("While a client does not read, the session stops reading from the brewery API")
    func backPressure() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let produced = Counter()
        let pieces = AsyncStream {
            try? await clock.sleep(for: .milliseconds(1))  // no code cancels this task
            return produced.add(1) <= 1_000 ? Data(count: 16 << 10) : nil
        }
        mock.on(.GET, "/log", .stream(pieces))
        let written = Counter()
        let (permits, continuation) = AsyncStream.makeStream(of: Void.self)
        let log = try await mock.service.GET("/log").stream().value
        let forwarding = Task(executorPreference: clock.executor) {
            var client: any ResponseBodyWriter = SlowClient(permits: permits, written: written)
            try await forward(log.body, to: &client)
        }
        await clock.advance(by: .seconds(10))  // enough for all pieces
        #expect(written.value == 0)
        #expect(produced.value < 100)  // of 1,000 pieces: the buffer of the stream has 256 KiB
        continuation.finish()
        await clock.advance(by: .seconds(10))
        try await forwarding.value
        #expect(written.value == 1_000 * 16 << 10)
    }
}

/// A client that reads when it is permitted to.
private struct SlowClient: ResponseBodyWriter {
    let permits: AsyncStream<Void>
    let written: Counter

    func write(_ buffer: ByteBuffer) async throws {
        for await _ in permits {}
        written.add(buffer.readableBytes)
    }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}
}

private final class Counter: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    @discardableResult
    func add(_ number: Int) -> Int {
        count.withLock {
            $0 += number
            return $0
        }
    }
}
