import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking

/// Compares what timelines, metrics, archives and observers report of exchanges of all kinds with
/// recorded transcripts.
@Suite("Recorded exchanges", .permit)
struct RecordedExchangesTests {
    /// The folder of the transcripts, which are written again if the environment variable
    /// `WEBSERVICE_RECORD` is set.
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Corpora/exchanges")

    private static let isRecording = ProcessInfo.processInfo.environment["WEBSERVICE_RECORD"] != nil

    @Test("The transcript of a scenario is the recorded one", arguments: RecordedScenario.all.map(\.name))
    func transcript(name: String) async throws {
        let scenario = try #require(RecordedScenario.all.first { $0.name == name })
        let (clock, recorder) = (TestClock(), Recorder())
        let mock = MockService(clock: clock)
        mock.service.observers = [recorder]
        let tasks = try await scenario.run(mock, clock)
        // The last events may be delivered after the results.
        await clock.advance(by: .zero)
        await eventually("all events are delivered") { recorder.isComplete }
        // The numbers of exchanges depend on the other tests.
        let transcript =
            (tasks.map(Self.transcript) + [recorder.transcript]).joined(separator: "\n\n")
            .replacing(/request #\d+/, with: "request #n") + "\n"
        let file = Self.folder.appendingPathComponent("\(name).txt")
        if Self.isRecording {
            try FileManager.default.createDirectory(at: Self.folder, withIntermediateDirectories: true)
            try Data(transcript.utf8).write(to: file)
        }
        let recorded = try String(contentsOf: file, encoding: .utf8)
        #expect(transcript == recorded, "\(name)")
    }

    @Test("There are at least 30 scenarios, with unique names")
    func count() {
        #expect(Set(RecordedScenario.all.map(\.name)).count >= 30)
        #expect(Set(RecordedScenario.all.map(\.name)).count == RecordedScenario.all.count)
    }

    private static func transcript(_ task: SessionTask) -> String {
        let timeline = task.timeline
        let events = timeline.events.map { event in
            let parts: [String?] = [
                "\(event.kind)", "from \(event.start)", event.duration.map { "for \($0)" },
                event.detail.isEmpty ? nil : event.detail, event.status.map { "status \($0)" }, event.request,
            ]
            return parts.compactMap(\.self).joined(separator: ", ")
        }
        let metrics = task.metrics
        let stages: [(String, Date?)] = [
            ("fetch start", metrics.fetchStart), ("response end", metrics.responseEnd),
            ("JSON start", metrics.responseJSONStart), ("JSON end", metrics.responseJSONEnd),
            ("UI start", metrics.updateUIStart), ("UI end", metrics.updateUIEnd),
        ]
        let times = stages.compactMap { name, date in date.map { "\(name) \($0.timeIntervalSince1970)" } }
        return [
            timeline.explain(), events.joined(separator: "\n"), times.joined(separator: ", "),
            String(decoding: task.httpArchive(), as: UTF8.self),
        ].joined(separator: "\n")
    }
}

/// Collects the events of exchanges as text, by exchange.
private final class Recorder: Observer {
    private struct Transcript {
        let name: String
        var lines: [String]
        var hasEnded = false
    }

    private let transcripts = Mutex<[UInt64: Transcript]>([:])

    let streamedBodyLimit = 100

    func observe(_ event: ExchangeEvent) {
        let exchange = event.exchange
        transcripts.withLock { transcripts in
            let line = "\(event.time) \(Self.text(event.kind))"
            if case .created = event.kind {
                let parent = exchange.parent.flatMap { transcripts[$0]?.name }
                let title = "\(exchange.date.timeIntervalSince1970): \(exchange.name)"
                let whole = title + (parent.map { " within \($0)" } ?? "")
                transcripts[exchange.id] = Transcript(name: exchange.name, lines: [whole, line])
            } else {
                transcripts[exchange.id]?.lines.append(line)
            }
            if case .ended = event.kind { transcripts[exchange.id]?.hasEnded = true }
        }
    }

    /// Whether each exchange that has begun has ended.
    var isComplete: Bool { transcripts.withLock { $0.values.allSatisfy(\.hasEnded) } }

    /// The events of each exchange. Exchanges that begin at the same time have no order.
    var transcript: String {
        transcripts.withLock { $0.values.map { $0.lines.joined(separator: "\n") }.sorted().joined(separator: "\n") }
    }

    private static func text(_ kind: ExchangeEvent.Kind) -> String {
        switch kind {
        case .created: "created"
        case .attemptStarted(let number, let request): "attempt \(number): \(request)"
        case .interimHeadReceived(let head): "interim head \(head)"
        case .headReceived(let head): "head \(head)"
        case .bodyReceived(let bytes): "\(bytes.count) bytes"
        case .attemptEnded(let number, let result, let metrics):
            "end of attempt \(number): \(text(result))\(metrics == nil ? "" : ", with metrics")"
        case .message(let message, let isReceived):
            "message of \(message.byteCount) bytes, \(isReceived ? "in" : "out")"
        case .recorded(let event): "\(event.kind), \(event.detail)"
        case .ended(let summary): "end: \(text(summary.result)), \(summary.attempts) attempts"
        }
    }

    private static func text(_ result: Result<Response, any Error>) -> String {
        switch result {
        case .success(let response): "status \(response.status), \(response.data.count) bytes, \(response.source)"
        case .failure(let error as URLError): "URLError \(error.code.rawValue)"
        case .failure(let error as WebServiceError): "\(error.code): \(error.message)"
        case .failure(let error): "\(type(of: error))"
        }
    }
}
