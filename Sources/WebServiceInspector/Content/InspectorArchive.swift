import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// The exchanges as an HTTP archive (HAR 1.2), without secrets. It contains an entry for each
/// attempt, and an entry for each result that was obtained without a request, such as a cache hit.
struct InspectorArchive {
    let data: Data

    init(_ exchanges: [RecordedExchange], _ redaction: Redaction) {
        let archive = HTTPArchive(redaction)
        var data = HTTPArchive.start
        var isFirst = true
        for exchange in exchanges {
            let unsent = Self.unsent(exchange)
            let attempts = exchange.attempts + (unsent.map { [$0] } ?? [])
            for (index, attempt) in attempts.enumerated() {
                let isLast = index == attempts.count - 1
                let result = isLast ? Self.result(of: exchange, isUnsent: unsent != nil) : [:]
                let failure = attempt.failure ?? (isLast ? exchange.failure : nil)
                let entry = Self.entry(attempt, of: exchange, failure, result, archive, redaction)
                guard let entry else { continue }
                if !isFirst { data += HTTPArchive.separator }
                isFirst = false
                data += entry
            }
        }
        self.data = data + HTTPArchive.end()
    }

    /// Returns a result that was obtained without a request, as an attempt, or `nil` if there is
    /// none.
    private static func unsent(_ exchange: RecordedExchange) -> RecordedAttempt? {
        guard exchange.phase == .ended, exchange.attempts.isEmpty || exchange.response != nil,
            let (method, url) = exchange.attempts.first.map({ ($0.method.rawValue, $0.url) }) ?? exchange.request,
            // A URL that cannot be encoded has no entry.
            let request = try? EncodedRequest.encoding(Request(Request.Method(rawValue: method), url: url))
        else { return nil }
        var attempt = RecordedAttempt(0, request, start: .zero, bodyLimit: 0)
        (attempt.end, attempt.response) = (exchange.duration, exchange.response)
        return attempt
    }

    /// Returns the custom fields of the last entry: the duration of the exchange in milliseconds,
    /// and the source of the response if it is a cache.
    private static func result(of exchange: RecordedExchange, isUnsent: Bool) -> [String: any Sendable] {
        var fields: [String: any Sendable] = [:]
        if let duration = exchange.duration { fields["_exchangeDuration"] = duration.milliseconds }
        if isUnsent, let source = exchange.source?.description, ["cache", "storage", "revalidated"].contains(source) {
            fields["_fromCache"] = source
        }
        return fields
    }

    private static func entry(
        _ attempt: RecordedAttempt, of exchange: RecordedExchange, _ failure: RecordedFailure?,
        _ fields: [String: any Sendable], _ archive: HTTPArchive, _ redaction: Redaction
    ) -> Data? {
        // A request that cannot be encoded was not sent, so it is omitted.
        guard let request = try? EncodedRequest.encoding(attempt.request) else { return nil }  // see above
        let response = attempt.response.map { Response(data: $0.body.data, head: $0.head) }
        return archive.entry(
            request, .success(response ?? Response(data: Data(), urlResponse: nil)), attempt.metrics,
            date: exchange.start.addingTimeInterval(attempt.start.inSeconds),
            duration: (attempt.end ?? attempt.start) - attempt.start, bodyLimit: .max,
            bodySizes: (
                attempt.body.map { Int64($0.size) } ?? attempt.streamLength ?? -1, attempt.response?.body.size ?? 0
            ), messages: attempt.number == exchange.attempts.last?.number ? exchange.messages : nil,
            error: failure.map { $0.text.map(redaction.text) ?? "cancelled" }, fields: fields)
    }
}
