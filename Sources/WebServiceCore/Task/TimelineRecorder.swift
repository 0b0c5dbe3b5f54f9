import Foundation

/// Collects the events of one exchange by a clock that only goes forward.
struct TimelineRecorder: Sendable {
    private struct Entry: Sendable {
        var kind: Timeline.Kind
        var start: UInt64
        var end: UInt64?
        var detail: String
        var status: Int?
        var request: String?
    }

    private var entries: [Entry] = []

    mutating func add(_ kind: Timeline.Kind, from start: UInt64, to end: UInt64?, _ detail: String) {
        entries.append(Entry(kind: kind, start: start, end: end, detail: detail))
    }

    mutating func addAttempt(from start: UInt64, to end: UInt64, request: String, status: Int?, detail: String) {
        entries.append(Entry(kind: .attempt, start: start, end: end, detail: detail, status: status, request: request))
    }

    var hasAttempts: Bool { entries.contains { $0.kind == .attempt } }

    func timeline(start: UInt64, date: Date?) -> Timeline {
        let events = entries.sorted { $0.start < $1.start }.map { entry in
            Timeline.Event(
                kind: entry.kind,
                start: entry.start < start ? 0 : Double(entry.start - start) / 1e9,
                length: entry.end.map { $0 < entry.start ? 0 : Double($0 - entry.start) / 1e9 },
                detail: entry.detail,
                status: entry.status,
                request: entry.request
            )
        }
        return Timeline(date: date, events: events)
    }
}
