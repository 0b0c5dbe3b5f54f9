import Foundation
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Responses that are received in parts, over sessions that conform to `StreamingSession`.
extension SessionScenario {
    static let streams: [SessionScenario] = [
        stream("the head is delivered before the body, and each chunk before the server sends the next one") {
            stage, session in
            let gate = Tally()
            stage.serve { _ in
                ScenarioReply(
                    MockResponse(statusCode: 200) { body in
                        for number in 1...3 {
                            try body.wait(for: number, of: gate)
                            try body.write(Data("chunk \(number),".utf8))
                        }
                    }, mock: MockResponse(statusCode: 200, chunks: chunks(waitingFor: gate)))
            }
            let receiver = ScenarioReceiver()
            let task = session.streamTask(request: try stage.request().encode(), receiver: receiver)
            task.resume()
            defer { task.cancel() }
            try await stage.eventually("the head is delivered") { receiver.events.last == .head(200) }
            for number in 1...3 {
                gate.add()
                let received = (1...number).map { "chunk \($0)," }.joined()
                try await stage.eventually("chunk \(number) is delivered") { receiver.bytes == Data(received.utf8) }
            }
            try await stage.eventually("the exchange ends") { receiver.events.last == .end(trailers: []) }
            try stage.expect("overlapping calls", receiver.hasOverlap, is: false)
        },
        stream("a receiver that pauses and continues receives every byte in order") { stage, session in
            let body = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
            stage.serve { _ in ScenarioReply(MockResponse(statusCode: 200, data: body)) }
            let receiver = ScenarioReceiver(pauseAfter: 200_000)
            let task = session.streamTask(request: try stage.request().encode(), receiver: receiver)
            task.resume()
            defer { task.cancel() }
            var pauses = 0
            while !receiver.isOver {
                try await stage.eventually("the receiver pauses or ends") {
                    receiver.pauseCount > pauses || receiver.isOver
                }
                pauses = receiver.pauseCount
                task.receiveMore()
            }
            try stage.expect("the body", receiver.bytes == body, is: true)
            try stage.expect(pauses >= 10, "at least 10 pauses", "\(pauses) pauses")
            try stage.expect("overlapping calls", receiver.hasOverlap, is: false)
        },
        stream("a paused exchange does not time out") { stage, session in
            stage.serve { _ in ScenarioReply(MockResponse(statusCode: 200, data: Data(count: 2_000_000))) }
            let receiver = ScenarioReceiver(pauseAfter: 1_500_000)
            var request = stage.request()
            request.options.timeout = .seconds(1)
            let task = session.streamTask(request: try request.encode(), receiver: receiver)
            task.resume()
            defer { task.cancel() }
            try await stage.eventually("the receiver pauses") { receiver.isPaused }
            try await TaskClock.system.sleep(for: .milliseconds(1_400))
            task.receiveMore()
            try await stage.eventually("the exchange ends") { receiver.isOver }
            try stage.expect("the body", receiver.bytes.count, is: 2_000_000)
        },
        stream("trailer fields are delivered, or not at all") { stage, session in
            var response = MockResponse(statusCode: 200) { try $0.write(Data("ale".utf8)) }
            response.trailers["X-Checksum"] = "1234"
            stage.serve { [response] _ in
                ScenarioReply(response, mock: MockResponse(statusCode: 200, data: Data("ale".utf8)))
            }
            let receiver = ScenarioReceiver()
            let task = session.streamTask(request: try stage.request().encode(), receiver: receiver)
            task.resume()
            defer { task.cancel() }
            try await stage.eventually("the exchange ends") { receiver.isOver }
            let events = receiver.events
            let hasTrailers = events == [.head(200), .end(trailers: ["X-Checksum: 1234"])]
            let isExpected = hasTrailers || events == [.head(200), .end(trailers: [])]
            try stage.expect(isExpected, "one head and one end", "\(events)")
            try stage.expect("the body", receiver.bytes == Data("ale".utf8), is: true)
        },
        stream("an interim head is delivered as such, or not at all") { stage, session in
            var (response, hints) = (
                MockResponse(statusCode: 200, data: Data("ale".utf8)), MockResponse(statusCode: 103)
            )
            hints.headers["Link"] = "</style.css>; rel=preload"
            response.interim = [hints]
            stage.serve { [response] _ in ScenarioReply(response) }
            let receiver = ScenarioReceiver()
            let task = session.streamTask(request: try stage.request().encode(), receiver: receiver)
            task.resume()
            defer { task.cancel() }
            try await stage.eventually("the exchange ends") { receiver.isOver }
            let events = receiver.events.filter { $0 != .interim(103) }
            try stage.expect(events == [.head(200), .end(trailers: [])], "one head and one end", "\(events)")
            try stage.expect("the body", receiver.bytes == Data("ale".utf8), is: true)
        },
        stream("an exchange cancelled during its body completes once as cancelled and closes the connection") {
            stage, session in
            let closed = Tally()
            stage.serve { request in
                guard request.target == "/endless" else { return ScenarioReply(200, "next") }
                return ScenarioReply(
                    MockResponse(statusCode: 200) { body in
                        defer { closed.add() }
                        while true {
                            try body.write(Data(count: 50_000))
                            body.pause(for: .milliseconds(1))
                        }
                    }, mock: MockResponse(statusCode: 200, chunks: endlessChunks(closing: closed)))
            }
            let receiver = ScenarioReceiver(pauseAfter: 100_000)
            let task = session.streamTask(request: try stage.request("/endless").encode(), receiver: receiver)
            task.resume()
            try await stage.eventually("the receiver pauses") { receiver.isPaused }
            task.cancel()
            task.cancel()
            try await stage.eventually("the exchange ends") { receiver.isOver }
            try stage.expect("the end", receiver.events.last == .failure(.cancelled), is: true)
            let isClosed = await closed.wait(for: 1, limit: stage.limit)
            try stage.expect("the connection is closed", isClosed, is: true)
            try stage.expect(.response(200, "next"), await stage.send(stage.request("/next")))
            try stage.expect("calls after the end", receiver.hasOverlap, is: false)
        },
        stream("an error thrown by the receiver ends the exchange with that error") { stage, session in
            stage.serve { _ in ScenarioReply(MockResponse(statusCode: 200, data: Data(count: 100_000))) }
            let receiver = ScenarioReceiver(refusal: URLError(.dataLengthExceedsMaximum))
            let task = session.streamTask(request: try stage.request().encode(), receiver: receiver)
            task.resume()
            try await stage.eventually("the exchange ends") { receiver.isOver }
            try stage.expect("the end", receiver.events.last == .failure(.dataLengthExceedsMaximum), is: true)
        },
        stream("bytes that arrive before a connection is lost are delivered before the error") { stage, session in
            var response = MockResponse(statusCode: 200, data: Data(repeating: 7, count: 5_000))
            response.wire = .cut(after: 4_000)
            stage.serve { [response] _ in ScenarioReply(response) }
            let receiver = ScenarioReceiver()
            let task = session.streamTask(request: try stage.request().encode(), receiver: receiver)
            task.resume()
            try await stage.eventually("the exchange ends") { receiver.isOver }
            let count = receiver.bytes.count
            try stage.expect(count > 3_000 && count < 4_000, "the bytes before the end", "\(count) bytes")
            let codes: [URLError.Code] = [.networkConnectionLost, .unknown]
            try stage.expect(
                codes.contains { receiver.events.last == .failure($0) }, "the error of a lost connection",
                "\(receiver.events)")
        },
    ]

    /// Returns a sequence of three chunks, each of which waits for an event.
    private static func chunks(waitingFor gate: Tally) -> AsyncStream<Data> {
        let last = Mutex(0)
        return AsyncStream {
            let number = last.withLock { last in
                last += 1
                return last
            }
            let isOpen = number <= 3 ? await gate.wait(for: number, limit: .seconds(30)) : false
            return isOpen ? Data("chunk \(number),".utf8) : nil
        }
    }

    /// Returns an endless sequence of chunks, whose deallocation is an event.
    private static func endlessChunks(closing closed: Tally) -> AsyncStream<Data> {
        let end = DeallocationTally(closed)
        return AsyncStream {
            withExtendedLifetime(end) {}
            return Data(count: 50_000)
        }
    }

    /// Returns a scenario for a `StreamingSession`. For other sessions, it returns immediately.
    private static func stream(
        _ name: String, _ play: @escaping @Sendable (ScenarioStage, any StreamingSession) async throws -> Void
    ) -> SessionScenario {
        SessionScenario(name) { stage in
            if let session = stage.session as? any StreamingSession { try await play(stage, session) }
        }
    }
}

extension MockResponse.BodyWriter {
    /// Blocks until a tally reaches a number, for at most 30 seconds.
    fileprivate func wait(for number: Int, of tally: Tally) throws {
        let end = ContinuousClock.now + .seconds(30)
        while tally.count < number, ContinuousClock.now < end { pause(for: .milliseconds(1)) }
    }
}

/// An object that counts its own deallocation.
private final class DeallocationTally: Sendable {
    private let tally: Tally

    init(_ tally: Tally) {
        self.tally = tally
    }

    deinit { tally.add() }
}
