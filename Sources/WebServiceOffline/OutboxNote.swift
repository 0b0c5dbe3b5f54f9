import Foundation
public import WebServiceCore

/// An interceptor that records which entry's request is sent.
final class OutboxNote: Interceptor {
    private let detail: String

    init(_ entry: Outbox.Entry) {
        let entity = entry.entity.map { " for \($0.shortenedForDisplay)" } ?? ""
        detail = "attempt \(entry.attempts) of entry \(entry.id)\(entity)"
    }

    func intercept(_ request: Request, next: Next) async throws -> Response {
        // A retry policy of the service may send the request several times.
        let isFirst = next.withValue(of: self, true) { isFirst in
            defer { isFirst = false }
            return isFirst
        }
        if isFirst { next.record(.outbox, detail) }
        return try await next(request)
    }
}

extension Timeline.Kind {
    /// An attempt to send an entry of an ``Outbox``: the number of the attempt, the identifier of
    /// the entry, and its entity.
    public static let outbox = Timeline.Kind("outbox")
}
