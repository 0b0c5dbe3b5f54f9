import Foundation
import WebServiceCore

/// A response as a ``ResponseCache`` stores it.
struct CachedResponse: Sendable {
    var status: Int
    /// The header fields, except `Set-Cookie`, the fields of the connection and the fields that
    /// `no-cache` names.
    var headers: Headers
    var body: CachedBody
    /// The date at which the request or the last validation request was sent.
    var requestTime: Date
    /// The date at which the response was received.
    var responseTime: Date
    var selection: CacheSelection
    /// The origin of the request; several origins may share a key (`urlKey`).
    var origin: Origin?

    /// Whether conditions apply to the response: conditions with its validators and the request's
    /// own conditions (RFC 9110, sections 13.2.1 and 15.4.5).
    var isSuccess: Bool { (200..<300).contains(status) }

    var control: CacheControl { CacheControl(headers.values(for: .cacheControl)) }

    /// Returns the age in seconds (RFC 9111, section 4.2.3), or `nil` if `now` is earlier than the
    /// date at which the response was received.
    func age(at now: Date) -> TimeInterval? {
        let resident = now.timeIntervalSince(responseTime)
        guard resident >= 0 else { return nil }
        return initialAge + resident
    }

    /// The age of the response when it was received, in seconds.
    var initialAge: TimeInterval {
        let apparent = max(0, responseTime.timeIntervalSince(date))
        let delay = max(0, responseTime.timeIntervalSince(requestTime))
        return max(apparent, statedAge + delay)
    }

    /// Returns the freshness lifetime in seconds (RFC 9111, section 4.2.1), which
    /// ``CacheDemands/use(of:at:usesHeuristics:)`` compares with the age. A private cache ignores
    /// `s-maxage`.
    func lifetime(usesHeuristics: Bool) -> TimeInterval {
        let control = control
        if let seconds = control.least("max-age") { return seconds }
        if let expires = headers["Expires"] {
            guard let end = HTTPDate.parse(expires, now: responseTime) else { return 0 }
            return min(max(0, end.timeIntervalSince(date)), CacheControl.maximum)
        }
        guard usesHeuristics, Self.heuristicStatuses.contains(status) || control.has("public"),
            let modified = headers["Last-Modified"].flatMap({ HTTPDate.parse($0, now: responseTime) })
        else { return 0 }
        return min(max(0, date.timeIntervalSince(modified)) / 10, Self.longestGuess)
    }

    /// Returns whether the response must be used instead of another response to the same request
    /// (RFC 9111, section 4). The date of this response must be later. Its request must also not
    /// have been sent earlier, because a server may set its clock back.
    func isNewer(than other: CachedResponse) -> Bool { date > other.date && requestTime >= other.requestTime }

    /// The `Date` of the response. Defaults to the date at which it was received.
    private var date: Date { headers["Date"].flatMap { HTTPDate.parse($0, now: responseTime) } ?? responseTime }

    /// The first member of `Age` in seconds, or 0 if it is not a number.
    private var statedAge: TimeInterval {
        let first = (headers["Age"] ?? "").utf8.prefix { $0 != UInt8(ascii: ",") }
        return CacheControl.seconds(String(decoding: ASCII.trimmed(first), as: UTF8.self)) ?? 0
    }

    /// The status codes that are heuristically cacheable (RFC 9110, section 15.1), except 206.
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Returns whether a response with the given status may be stored.
    ///
    /// Neither 206 nor 304 contains the complete representation. Errors that another attempt, other
    /// credentials or time can resolve are not stored. A retry or a request with a refreshed token
    /// therefore reaches the server, and a stored representation is retained for `stale-if-error`.
    /// RFC 6585 forbids storing responses with status 428, 429, 431 and 511.
    static func isStorable(_ status: Int) -> Bool {
        switch status {
        case 206, 304, 401, 403, 407, 408, 421, 425, 428, 429, 431, 500, 502...511: false
        default: status >= 200
        }
    }

    /// The longest heuristic freshness lifetime: one week.
    static let longestGuess: TimeInterval = 7 * 86_400

    /// The entity tag, or `nil` if it is invalid. For example, `*` as a condition would match any
    /// representation.
    var eTag: String? { usable("ETag").flatMap { EntityTag.isValid($0) ? $0 : nil } }
    /// The value of `Last-Modified`, or `nil` if it is not a date.
    var lastModified: String? {
        usable("Last-Modified").flatMap { HTTPDate.parse($0, now: responseTime) == nil ? nil : $0 }
    }

    /// Returns the value of a field, or `nil` if it cannot be sent as a condition.
    private func usable(_ name: Headers.Name) -> String? {
        headers[name].flatMap { !$0.isEmpty && $0.utf8.count <= Request.maximumHeaderValueLength ? $0 : nil }
    }

    /// Returns whether the response is a redirect that `request` follows. In that case, its target
    /// must be requested.
    func isRedirect(for request: Request) -> Bool {
        request.options.redirectPolicy.followsRedirects && [301, 302, 303, 307, 308].contains(status)
            && headers[.location] != nil
    }
}

/// Comparisons of entity tags (RFC 9110, section 8.8.3.2). They compare bytes, because `String`
/// equality includes canonical equivalence.
enum EntityTag {
    /// Returns whether a string is an entity tag (RFC 9110, section 8.8.3).
    static func isValid(_ tag: String) -> Bool {
        let bytes = opaque(tag)
        return bytes.count >= 2 && bytes.first == UInt8(ascii: "\"") && bytes.last == UInt8(ascii: "\"")
            && bytes.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }
    }

    /// Returns whether a response with the tag `new` describes a stored response with the tag `old`
    /// (RFC 9111, section 4.3.4). A strong tag describes only the same strong tag.
    static func describes(_ new: String, _ old: String) -> Bool {
        isWeak(new) ? matchesWeakly(old, new) : old.utf8.elementsEqual(new.utf8)
    }

    static func matchesWeakly(_ first: String, _ second: String) -> Bool { opaque(first).elementsEqual(opaque(second)) }
    private static func isWeak(_ tag: String) -> Bool { tag.utf8.starts(with: "W/".utf8) }
    private static func opaque(_ tag: String) -> Substring.UTF8View { tag.utf8.dropFirst(isWeak(tag) ? 2 : 0) }

    /// Returns whether an `If-None-Match` value contains the tag or is `*`.
    static func isListed(_ tag: String?, in list: String) -> Bool {
        let list = ASCII.trimmed(list.utf8)
        guard !list.elementsEqual("*".utf8) else { return true }
        guard let tag else { return false }
        return tags(list).contains { matchesWeakly($0, tag) }
    }

    /// Splits a list of entity tags. The tags may contain commas.
    private static func tags(_ list: Substring.UTF8View) -> [String] {
        var tags: [[UInt8]] = [[]]
        var isQuoted = false
        for byte in list {
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
            if byte == UInt8(ascii: ","), !isQuoted { tags.append([]) } else { tags[tags.count - 1].append(byte) }
        }
        return tags.map { String(decoding: ASCII.trimmed($0), as: UTF8.self) }
    }
}
