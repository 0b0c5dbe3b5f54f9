public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension SessionTask {
    /// The events recorded so far. Handlers are included only if ``recordHandlers()`` was called.
    public var timeline: Timeline {
        context.log.record.timeline
    }

    /// Returns the requests of the exchange as an HTTP archive (HAR 1.2), JSON in UTF-8.
    ///
    /// The archive can be opened with the developer tools of a browser.
    ///
    /// Secret header fields and query values are redacted. Bodies are not included, only their
    /// sizes. The phases of a request are included if the session measures them (`CurlSession`);
    /// otherwise its whole duration is reported as waiting.
    public func httpArchive(redaction: Redaction = .standard) -> Data {
        let record = context.log.record
        let origin = record.metrics.origin
        let entries = record.entries.compactMap { entry in
            entry.attempt.map {
                HTTPArchive.entry($0, from: entry.start, to: entry.end ?? entry.start, origin, redaction)
            }
        }
        let log: [String: Any] = [
            "log": ["version": "1.2", "creator": ["name": "WebService", "version": "1"], "entries": entries]
                as [String: Any]
        ]
        let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let data = try? JSONSerialization.data(withJSONObject: log, options: options)  // always valid JSON
        return data ?? Data()
    }

}

extension TypedTask {
    /// Returns the attempts as an HTTP archive; see ``SessionTask/httpArchive(redaction:)``.
    public func httpArchive(redaction: Redaction = .standard) -> Data {
        task.httpArchive(redaction: redaction)
    }
}

/// The objects of HAR 1.2.
private enum HTTPArchive {
    static func entry(
        _ attempt: ExchangeLog.Attempt, from start: UInt64, to end: UInt64, _ origin: (moment: UInt64, date: Date)?,
        _ redaction: Redaction
    ) -> [String: Any] {
        let milliseconds = Double(end - min(start, end)) / 1e6
        let date = (origin?.date ?? Date(timeIntervalSince1970: 0))
            .addingTimeInterval(Double(start - min(origin?.moment ?? start, start)) / 1e9)
        var entry: [String: Any] = [
            "startedDateTime": date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
            "time": milliseconds,
            "request": request(attempt.request, redaction),
            "response": response(attempt, redaction),
            "cache": [String: Any](),
            "timings": timings(attempt.transport, milliseconds),
        ]
        if !attempt.failure.isEmpty { entry["comment"] = attempt.failure }
        return entry
    }

    /// Returns the phases if the session measured them; otherwise, the whole duration is reported
    /// as waiting. -1 stands for a phase that did not take place.
    private static func timings(_ transport: TransportMetrics?, _ milliseconds: Double) -> [String: Double] {
        guard let transport, let firstByte = transport.firstByte else {
            return ["send": 0, "wait": milliseconds, "receive": 0]
        }
        let lookup = transport.nameLookup ?? .zero
        let connection = lookup + (transport.connect ?? .zero) + (transport.secureConnect ?? .zero)
        let phase = { (duration: Duration?) in duration.map { $0.inSeconds * 1000 } ?? -1 }
        return [
            "dns": phase(transport.nameLookup),
            "connect": phase(transport.connect.map { _ in connection - lookup }),
            "ssl": phase(transport.secureConnect), "send": 0, "wait": phase(max(.zero, firstByte - connection)),
            "receive": phase(max(.zero, transport.total - firstByte)),
        ]
    }

    private static func request(_ request: EncodedRequest, _ redaction: Redaction) -> [String: Any] {
        let url = redaction.url(request.url)
        let query = url.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        var headers = request.headers
        if let contentType = request.contentType { headers[.contentType] = contentType }
        return [
            "method": request.method.rawValue, "url": url, "httpVersion": "HTTP/1.1", "cookies": [Any](),
            "headers": headers.map { ["name": $0.name, "value": redaction.value(ofHeader: $0.name, $0.value)] },
            "queryString": query.split(separator: "&").map { pair in
                let parts = pair.split(separator: "=", maxSplits: 1).map {
                    String($0).removingPercentEncoding ?? String($0)
                }
                return ["name": parts.first ?? "", "value": parts.count == 2 ? parts[1] : ""]
            },
            "headersSize": -1, "bodySize": request.stream.map { $0.length ?? -1 } ?? Int64(request.bodyCount),
        ]
    }

    private static func response(_ attempt: ExchangeLog.Attempt, _ redaction: Redaction) -> [String: Any] {
        let headers = attempt.head?.headers ?? [:]
        return [
            "status": attempt.head?.status ?? 0, "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [Any](),
            "headers": headers.map { ["name": $0.name, "value": redaction.value(ofHeader: $0.name, $0.value)] },
            "content": ["size": attempt.bodySize, "mimeType": headers[.contentType] ?? ""] as [String: Any],
            "redirectURL": headers[.location].map(redaction.url) ?? "", "headersSize": -1, "bodySize": attempt.bodySize,
        ]
    }
}
