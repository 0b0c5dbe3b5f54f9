import Foundation

/// Collects the events of one exchange by the task's clock.
struct TimelineRecorder: Sendable {
    /// One message and what came of it.
    struct Attempt: Sendable {
        let request: EncodedRequest
        let head: Head
        let transport: TransportMetrics?
        let bodySize: Int
        let error: (any Error)?

        init(_ request: EncodedRequest, _ outcome: Outcome) {
            self.request = request
            head = outcome.head
            transport = outcome.transport
            bodySize = outcome.data?.count ?? 0
            error = outcome.error
        }

        /// What went wrong, without values.
        var failure: String {
            switch error {
            case let error as URLError: "URLError \(error.code.rawValue)"
            case let error as WebServiceError: error.code.description
            case let error?: "\(type(of: error))"
            case nil: ""
            }
        }
    }

    struct Entry: Sendable {
        var kind: Timeline.Kind
        var start: UInt64
        var end: UInt64?
        var detail: String
        var attempt: Attempt?
    }

    private var entries: [Entry] = []

    mutating func add(_ kind: Timeline.Kind, from start: UInt64, to end: UInt64?, _ detail: String) {
        entries.append(Entry(kind: kind, start: start, end: end, detail: detail))
    }

    mutating func add(_ attempt: Attempt, from start: UInt64, to end: UInt64) {
        entries.append(Entry(kind: .attempt, start: start, end: end, detail: attempt.failure, attempt: attempt))
    }

    var hasAttempts: Bool { entries.contains { $0.attempt != nil } }

    /// In the order in which they began.
    var ordered: [Entry] { entries.sorted { $0.start < $1.start } }

    func timeline(start: UInt64, date: Date?) -> Timeline {
        let events = ordered.map { entry in
            Timeline.Event(
                kind: entry.kind,
                start: entry.start < start ? 0 : Double(entry.start - start) / 1e9,
                length: entry.end.map { $0 < entry.start ? 0 : Double($0 - entry.start) / 1e9 },
                detail: entry.detail,
                status: entry.attempt.flatMap { $0.head.isHTTP ? $0.head.status : nil },
                request: entry.attempt?.request.summary
            )
        }
        return Timeline(date: date, events: events)
    }
}
