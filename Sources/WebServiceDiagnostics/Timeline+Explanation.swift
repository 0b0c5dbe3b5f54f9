import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension Timeline {
    /// Returns sentences that explain the course of the exchange, in order and one per line.
    ///
    /// ```
    /// GET https://h/v1/brewers was sent. The response had status 503, after 12.4 ms.
    /// The request was sent again: status 503, Retry-After of 2.0 seconds.
    /// The exchange paused for 2000.3 ms.
    /// GET https://h/v1/brewers was sent. The response had status 200, after 9.8 ms.
    /// The exchange ended with status 200.
    /// ```
    /// Equal timelines have equal explanations. The text contains no query and no body, and secrets
    /// in the paths of URLs are redacted, so it is safe to log.
    public func explain() -> String {
        (events.map(\.explanation) + [ending]).map(Redaction.standard.text).joined(separator: "\n")
    }

    private var ending: String {
        guard let outcome else {
            return date == nil ? "The task was not resumed." : "The exchange has not ended."
        }
        let body = outcome.isStreamed ? events.last { $0.kind == .body } : nil
        if outcome.isStreamed, body == nil {
            return "The response had status \(outcome.status ?? 0), and its body is being received."
        }
        guard let error = outcome.error ?? body?.error else {
            let source = outcome.source.flatMap { $0 == .network ? nil : ", source: \($0)" } ?? ""
            return "The exchange ended\(outcome.status.map { " with status \($0)" } ?? "")\(source)."
        }
        if (error as? URLError)?.code == .cancelled {
            let isSent = events.contains { $0.kind == .attempt }
            return "The exchange was cancelled\(isSent ? "" : " before a request was sent")."
        }
        if (error as? WebServiceError)?.code == .deadline { return "The exchange exceeded its deadline." }
        return "The exchange failed: \(ExchangeLog.Attempt.kind(of: error))."
    }
}

extension Timeline.Event {
    fileprivate var explanation: String {
        switch kind {
        case .attempt: attemptExplanation
        case .redirect: "The redirect was followed\(detail.isEmpty ? "" : " \(detail)")."
        case .retry: "The request was sent again: \(detail)."
        case .noRetry: "The request was not sent again: \(detail)."
        case .wait: "The exchange paused for \(time)\(detail.isEmpty ? "" : " \(detail)")."
        case .refresh: "The exchange waited \(time) for a newer credential: \(detail)."
        case .cache: cacheExplanation
        case .body: "The body ended after \(time): \(detail)."
        case .handler: "The handler \(detail) took \(time)."
        case .failure: "A handler, a step or the validation failed: \(detail)."
        case .queued: "The request waited for the end of request #\(related ?? 0)."
        case .joined: "The request shared the response of request #\(related ?? 0)."
        case .storage: storageExplanation
        case .deprecation: "The server reports that this resource \(detail)."
        default: "\(kind)\(detail.isEmpty ? "" : ": \(detail)")."
        }
    }

    private var time: String { Timeline.milliseconds(duration ?? .zero) }

    private var attemptExplanation: String {
        let result = status.map { "The response had status \($0), after \(time)." }
        return "\(request ?? "A request") was sent. \(result ?? "It failed after \(time): \(detail).")"
    }

    private var cacheExplanation: String {
        if let age = rest("stored, ") { return "The cache returned a stored response: \(age)." }
        if let reason = rest("stale, ") { return "The cache returned a stale response: \(reason)." }
        if let reason = rest("not stored: ") { return "The cache did not store the response: \(reason)." }
        if let count = rest("invalidated groups: ") { return "The response invalidated stored groups: \(count)." }
        if detail == "validated" { return "The server confirmed that the stored response is still valid." }
        return "The cache was not used: \(detail)."
    }

    private var storageExplanation: String {
        if let reason = rest("not read: ") { return "No stored response was read: \(reason)." }
        if let reason = rest("not stored: ") { return "The response was not stored: \(reason)." }
        if detail == "stored" { return "The response was stored." }
        return "The stored response was read\(rest("read, ").map { ": \($0)" } ?? "")."
    }

    /// Returns the rest of the detail after a prefix, or `nil` if the detail does not begin with
    /// the prefix.
    private func rest(_ prefix: String) -> String? {
        detail.hasPrefix(prefix) ? String(detail.dropFirst(prefix.count)) : nil
    }
}
