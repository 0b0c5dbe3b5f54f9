import Foundation
import TestSupport

@testable import WebServiceCore

/// A server of one file with random versions and responses.
///
/// Its faults are those that a client can detect: of the status, the range, the lengths and the
/// validators, one tells the truth.
struct RangeModel {
    private struct Version {
        let content: Data
        let tag: String?
        /// The date of modification and that of responses; `nil` for none.
        let dates: (modified: String, sent: String)?

        var validators: Headers {
            var headers: Headers = [:]
            headers["ETag"] = tag
            headers["Last-Modified"] = dates?.modified
            headers["Date"] = dates?.sent
            return headers
        }
    }

    private var random: SeededGenerator
    private var versions: [Version] = []
    private var current = 0
    /// Whether each response has the length of the file, so that later ones can be compared.
    private let declaresLengths: Bool
    private let honorsCondition: Bool
    /// Whether all versions have the same entity tag. Their lengths differ.
    private let hasSameTag: Bool

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        declaresLengths = Bool.random(using: &random)
        honorsCondition = Bool.random(using: &random)
        hasSameTag = declaresLengths && Int.random(in: 0..<4, using: &random) == 0
        let (kind, length) = (Int.random(in: 0..<4, using: &random), Int.random(in: 0...60, using: &random))
        for number in 0..<Int.random(in: 1...3, using: &random) {
            // Equal lengths are the hardest case, but for equal tags.
            let isEqual = !hasSameTag && Bool.random(using: &random)
            let count = isEqual ? length : (length + 7 * number) % 61
            let tag = hasSameTag ? "\"same\"" : ["\"\(number)\"", "W/\"\(number)\"", "W/\"same\"", nil][kind]
            let (day, second) = hasSameTag || Bool.random(using: &random) ? (1, 0) : (10 + number, 1)
            versions.append(
                Version(
                    content: Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 3 &+ number &* 85) }), tag: tag,
                    dates: kind == 0 && Bool.random(using: &random)
                        ? nil
                        : (
                            "Sun, \(day < 10 ? "0" : "")\(day) Nov 2020 08:49:37 GMT",
                            "Sun, \(day < 10 ? "0" : "")\(day) Nov 2020 08:49:3\(7 + second) GMT"
                        )))
        }
    }

    /// Returns whether a file is exactly one of the versions.
    func isVersion(_ content: Data) -> Bool { versions.contains { $0.content == content } }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    // MARK: Responses

    mutating func reply(to request: Headers) -> ReplySession.Reply {
        if chance(20) { current = Int.random(in: 0..<versions.count, using: &random) }
        let version = versions[current]
        let condition = request["If-Range"]
        let isMet = condition == nil || [version.tag, version.dates?.modified].contains(condition)
        guard let (first, last) = Self.range(request["Range"]), isMet || !honorsCondition, chance(90) else {
            return whole(version)
        }
        if first >= version.content.count { return unsatisfied(version, at: first) }
        return part(version, first, min(last ?? .max, version.content.count - 1), condition: condition, isMet: isMet)
    }

    private static func range(_ value: String?) -> (Int, Int?)? {
        guard let parts = value?.dropFirst("bytes=".count).split(separator: "-"),
            let first = parts.first.flatMap({ Int($0) })
        else { return nil }
        return (first, parts.dropFirst().first.flatMap { Int($0) })
    }

    private mutating func whole(_ version: Version) -> ReplySession.Reply {
        var reply = ReplySession.Reply(headers: version.validators, body: version.content)
        if declaresLengths || chance(70) { reply.setLength() }
        guard chance(35) else { return reply }
        switch Int.random(in: 0..<8, using: &random) {
        case 0: reply.headers["Content-Range"] = malformed(version.content.count)
        case 1:
            reply.headers["Content-Encoding"] = "gzip"
            reply.length = nil
        case 2: reply.headers[.contentType] = "multipart/byteranges; boundary=a"
        case 3: reply.status = [203, 204, 404, 500, 206].randomElement(using: &random) ?? 203
        case 4: for name in ["ETag", "Last-Modified", "Date"] { reply.headers[name] = nil }
        case 5: reply.headers["Content-Length"] = "\(version.content.count), \(version.content.count + 1)"
        default: cut(&reply)
        }
        return reply
    }

    private mutating func unsatisfied(_ version: Version, at first: Int) -> ReplySession.Reply {
        var total = version.content.count
        if declaresLengths, !hasSameTag, chance(30) { total = Int.random(in: 0...61, using: &random) }
        var reply = ReplySession.Reply(status: 416, headers: version.validators)
        reply.headers["Content-Range"] = chance(10) ? malformed(total) : "bytes */\(total)"
        if chance(50) { for name in ["ETag", "Last-Modified"] { reply.headers[name] = nil } }
        return reply
    }

    /// - Parameter isMet: Whether the client has bytes of this version, or none.
    private mutating func part(
        _ version: Version, _ requested: Int, _ end: Int, condition: String?, isMet: Bool
    ) -> ReplySession.Reply {
        let count = version.content.count
        let (isEarly, isShort) = (chance(15), chance(30))
        let first = isEarly ? Int.random(in: 0...requested, using: &random) : requested
        let last = isShort ? Int.random(in: min(requested, end)...end, using: &random) : end
        var reply = ReplySession.Reply(
            status: 206, headers: version.validators, body: Data(version.content[first...last]))
        let total = declaresLengths || chance(60) ? "\(count)" : "*"
        reply.headers["Content-Range"] = "bytes \(first)-\(last)/\(total)"
        if chance(75) { reply.setLength() }
        // The client knows the version and its length.
        let isKnown = declaresLengths && !hasSameTag && isMet && condition != nil
        guard chance(50) else { return reply }
        for _ in 0..<Int.random(in: 1...2, using: &random) {
            switch Int.random(in: 0..<13, using: &random) {
            case 0: reply.status = 200
            case 1 where isKnown && first == requested && last == count - 1 && reply.body.count == count - first:
                guard reply.failure == nil else { continue }
                (reply.status, reply.headers["Content-Range"]) = (200, nil)
                if reply.length != nil { reply.setLength() }
                return reply
            case 2 where isKnown:
                reply.headers["Content-Range"] =
                    "bytes \(first)-\(last)/\(Int.random(in: last + 1...90, using: &random))"
            case 3:
                reply.headers["Content-Range"] =
                    "bytes \(first)-\(last + Int.random(in: -2...3, using: &random))/\(total)"
            case 4: reply.headers["Content-Range"] = malformed(count)
            case 5: reply.headers["Content-Encoding"] = "gzip"
            case 6: reply.headers[.contentType] = "multipart/byteranges; boundary=a"
            case 7: reply.status = [201, 203, 204, 304, 500].randomElement(using: &random) ?? 204
            case 8 where condition != nil && first > 0:
                let tag = versions.randomElement(using: &random)?.tag
                if tag != condition { reply.headers["ETag"] = tag }
            case 9: for name in ["ETag", "Last-Modified"] where chance(70) { reply.headers[name] = nil }
            case 10:
                reply.headers["Content-Length"] = ["x", "\(last), \(last + 1)", "-1"].randomElement(using: &random)
            case 11: reply.headers.add("bytes \(first)-\(last)/\(count)", for: "Content-Range")
            default: cut(&reply)
            }
        }
        return reply
    }

    private mutating func malformed(_ count: Int) -> String {
        [
            "", "bytes", "bytes 5-1/\(count)", "bytes 0-\(count)/\(count)", "lines 0-1/\(count)", "bytes */*",
            "bytes 0-9223372036854775808/*", "bytes 0-1/9223372036854775808", "bytes=0-1/\(count)", "bytes 0-1",
            "bytes -1/\(count)", "bytes 0-1/\(count), bytes 2-3/\(count)",
        ].randomElement(using: &random) ?? ""
    }

    /// Ends the body early, with an error or with fewer bytes than `Content-Length`, or late.
    private mutating func cut(_ reply: inout ReplySession.Reply) {
        guard !reply.isCut else { return }
        reply.isCut = true
        let count = Int.random(in: 0...reply.body.count, using: &random)
        if reply.headers[.contentLength] == nil || chance(50) {
            reply.failure = URLError(.networkConnectionLost)
            reply.body = reply.body.prefix(count)
        } else if reply.headers["Content-Encoding"] == nil, chance(70) {
            reply.body = reply.body.prefix(count)
        } else if reply.headers["Content-Encoding"] == nil {
            reply.body += Data(repeating: 0xEE, count: Int.random(in: 1...9, using: &random))
        }
    }
}

extension ReplySession.Reply {
    /// Adds the length of the body, which the session also reports.
    fileprivate mutating func setLength() {
        headers[.contentLength] = "\(body.count)"
        length = Int64(body.count)
    }
}
