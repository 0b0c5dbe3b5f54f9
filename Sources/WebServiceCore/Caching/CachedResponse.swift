import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An answer as a ``ResponseCache`` keeps it.
struct CachedResponse: Sendable {
    var status: Int
    /// Without the fields that belong to one connection, and without `Set-Cookie`.
    var headers: Headers
    var body: Data
    /// When the request for it, or for its last validation, was sent.
    var requestTime: Date
    /// When the answer came.
    var responseTime: Date
    var selection: CacheSelection

    /// Whether conditions count for it, of its validators and of the request's own (RFC 9110, sections 13.2.1 and 15.4.5).
    var isSuccess: Bool { (200..<300).contains(status) }

    var control: CacheControl { CacheControl(headers.values(for: .cacheControl)) }

    /// How old it is (RFC 9111, section 4.2.3), in seconds; `nil` where the clock shows a time before it came, so that nobody knows.
    func age(at now: Date) -> TimeInterval? {
        let resident = now.timeIntervalSince(responseTime)
        guard resident >= 0 else { return nil }
        return initialAge + resident
    }

    /// The age that it had when it came.
    var initialAge: TimeInterval {
        let apparent = max(0, responseTime.timeIntervalSince(date))
        let delay = max(0, responseTime.timeIntervalSince(requestTime))
        return max(apparent, statedAge + delay)
    }

    /// How long it is fresh (RFC 9111, section 4.2.1), in seconds. Of `s-maxage` a private cache knows nothing.
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

    /// When it was made; when it came, where it does not say.
    private var date: Date { headers["Date"].flatMap { HTTPDate.parse($0, now: responseTime) } ?? responseTime }

    /// The first member of `Age`; 0 where that is no number.
    private var statedAge: TimeInterval {
        let first = (headers["Age"] ?? "").utf8.prefix { $0 != UInt8(ascii: ",") }
        return CacheControl.seconds(String(decoding: ASCII.trimmed(first), as: UTF8.self)) ?? 0
    }

    /// Statuses whose answers may be kept and held for fresh where they say nothing about it (RFC 9110, section 15.1), without 206.
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// The longest time that is guessed: a week.
    static let longestGuess: TimeInterval = 7 * 86_400

    /// `nil` also for what is no entity tag: sent as a condition, `*` would mean any.
    var eTag: String? { usable("ETag").flatMap { EntityTag.isValid($0) ? $0 : nil } }
    /// `nil` also for what is no date.
    var lastModified: String? { usable("Last-Modified").flatMap { HTTPDate.parse($0, now: responseTime) == nil ? nil : $0 } }

    /// A value that can be sent back.
    private func usable(_ name: Headers.Name) -> String? {
        headers[name].flatMap { !$0.isEmpty && $0.utf8.count <= Request.maximumHeaderValueLength ? $0 : nil }
    }

    /// Whether it redirects, and `request` wants redirects followed: what it leads to has to be asked for then.
    func isRedirect(for request: Request) -> Bool {
        request.redirectPolicy.followsRedirects && [301, 302, 303, 307, 308].contains(status) && headers[.location] != nil
    }
}

/// Whether two entity tags mean the same (RFC 9110, section 8.8.3.2), byte by byte: strings are equal in more cases.
enum EntityTag {
    /// Whether it is one by the grammar (RFC 9110, section 8.8.3).
    static func isValid(_ tag: String) -> Bool {
        let bytes = opaque(tag)
        return bytes.count >= 2 && bytes.first == UInt8(ascii: "\"") && bytes.last == UInt8(ascii: "\"")
            && bytes.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }
    }

    /// Whether a response with the tag `new` describes a stored one with the tag `old` (RFC 9111, section 4.3.4): a strong tag describes
    /// only the same strong one.
    static func describes(_ new: String, _ old: String) -> Bool {
        isWeak(new) ? matchesWeakly(old, new) : old.utf8.elementsEqual(new.utf8)
    }

    static func matchesWeakly(_ first: String, _ second: String) -> Bool { opaque(first).elementsEqual(opaque(second)) }
    private static func isWeak(_ tag: String) -> Bool { tag.utf8.starts(with: "W/".utf8) }
    private static func opaque(_ tag: String) -> Substring.UTF8View { tag.utf8.dropFirst(isWeak(tag) ? 2 : 0) }

    /// Whether `If-None-Match` names the tag, or any.
    static func isListed(_ tag: String?, in list: String) -> Bool {
        let list = ASCII.trimmed(list.utf8)
        guard !list.elementsEqual("*".utf8) else { return true }
        guard let tag else { return false }
        return tags(list).contains { matchesWeakly($0, tag) }
    }

    /// A tag may hold commas.
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
