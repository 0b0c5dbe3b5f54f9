import Foundation
import WebServiceCore

/// Decisions about whether a stored response is fresh enough for a request.
extension CacheDemands {
    enum Use: Sendable, Hashable {
        case use
        /// The stored response is returned now and validated in the background.
        case useAndValidate
        case validate
    }

    /// Returns how a stored response may be used (RFC 9111, section 4.2.4; RFC 5861, section 3).
    func use(of stored: CachedResponse, at now: Date, usesHeuristics: Bool) -> Use {
        switch mode {
        case .any: return .use
        case .reload, .validated: return .validate
        case .fresh: break
        }
        let specified = stored.control
        guard !specified.isWhole("no-cache"), let age = stored.age(at: now) else { return .validate }
        let staleness = age - stored.lifetime(usesHeuristics: usesHeuristics)
        guard age <= control.least("max-age") ?? .infinity else { return .validate }
        if let margin = control.greatest("min-fresh") {
            return -staleness >= margin && staleness < 0 ? .use : .validate
        }
        if staleness < 0 { return .use }
        guard !specified.has("must-revalidate") else { return .validate }
        if staleness <= control.least("max-stale", bare: .infinity) ?? -1 { return .use }
        if staleness <= specified.least("stale-while-revalidate") ?? -1 {
            return isOnlyIfCached ? .use : .useAndValidate
        }
        return .validate
    }

    /// Returns whether a stored response may replace a server error (RFC 5861, section 4).
    func outlastsError(_ stored: CachedResponse, at now: Date, usesHeuristics: Bool) -> Bool {
        let specified = stored.control
        let limits = [specified.least("stale-if-error"), control.least("stale-if-error")].compactMap(\.self)
        guard mode == .fresh, !specified.isWhole("no-cache"), !specified.has("must-revalidate"),
            let age = stored.age(at: now),
            let limit = limits.max()
        else { return false }
        return age - stored.lifetime(usesHeuristics: usesHeuristics) <= limit
    }
}
