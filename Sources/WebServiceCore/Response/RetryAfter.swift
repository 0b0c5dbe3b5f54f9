package import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The delay of a `Retry-After` field (RFC 9110, section 10.2.3).
package struct RetryAfter {
    /// The maximum delay, six hours; longer delays are reduced to this value.
    static let maximum = Duration.seconds(6 * 3600)

    package let delay: Duration

    /// Parses the value of a field. A date in the past means no delay.
    ///
    /// - Returns: `nil` for a value that is neither a number of seconds nor a date.
    package init?(_ value: String, now: Date) {
        let text = value.trimmingCharacters(in: .whitespaces)
        guard !text.isEmpty else { return nil }
        if let seconds = ASCII.number(text.utf8) {
            delay = min(.seconds(seconds), Self.maximum)
        } else if let date = HTTPDate.parse(text, now: now) {
            let seconds = date.timeIntervalSince(now)
            delay = seconds > 0 ? .seconds(min(seconds, Self.maximum.inSeconds)) : .zero  // NaN counts as 0
        } else {
            return nil
        }
    }
}

/// The failures after which the same request may succeed.
package enum TransientFailure {
    static let statuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]

    package static let errorCodes: Set<URLError.Code> = [
        .timedOut, .cannotFindHost, .cannotConnectToHost, .networkConnectionLost, .dnsLookupFailed,
        .notConnectedToInternet, .badServerResponse,
    ]
}

extension WebServiceError {
    /// The status of the response if it indicates a transient failure; `nil` for any other error.
    package var transientStatus: Int? {
        guard code == .unacceptableStatus, let status, TransientFailure.statuses.contains(status)
        else { return nil }
        return status
    }

    /// Returns the delay that the response specifies with `Retry-After`; `nil` if it specifies
    /// none.
    package func retryAfter(now: Date) -> Duration? { response?.retryAfter(now: now) }
}

extension Response {
    /// Returns the delay that `Retry-After` specifies; `nil` if it specifies none.
    func retryAfter(now: Date) -> Duration? {
        header(.retryAfter).flatMap { RetryAfter($0, now: now) }?.delay
    }
}
