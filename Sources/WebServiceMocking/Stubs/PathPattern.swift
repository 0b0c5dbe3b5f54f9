import WebServiceCore

/// The pattern of a path: segments that are literals, placeholders or wildcards.
struct PathPattern: Sendable {
    private enum Segment: Sendable {
        /// The percent-decoded bytes of the segment.
        case literal([UInt8])
        case placeholder(String)
        case wildcard
        /// Any number of segments, at the end of the pattern.
        case rest
    }

    let text: String
    private let segments: [Segment]

    /// Parses a pattern.
    ///
    /// - Parameter pattern: The pattern. A query is ignored.
    init(_ pattern: String) {
        text = String(pattern[..<(pattern.utf8.firstIndex(of: UInt8(ascii: "?")) ?? pattern.endIndex)])
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        segments = parts.enumerated().map { place, part in
            guard part.first == UInt8(ascii: "*") || part.first == UInt8(ascii: "{") else {
                return .literal(percentDecoded(part))
            }
            let text = Substring(part)
            return switch text {
            case "**" where place == parts.count - 1: .rest
            case "*", "**": .wildcard
            case _ where text.hasPrefix("{") && text.hasSuffix("}") && text.count > 2:
                .placeholder(String(text.dropFirst().dropLast()))
            default: .literal(percentDecoded(part))
            }
        }
    }

    /// Returns the percent-decoded bytes of each segment of a path.
    static func segments(of path: String) -> [[UInt8]] {
        path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { percentDecoded($0) }
    }

    /// Returns the values of the placeholders, or `nil` if the path does not match.
    func match(_ path: [[UInt8]]) -> [String: String]? {
        var values: [String: String] = [:]
        for (place, segment) in segments.enumerated() {
            if case .rest = segment { return values }
            guard place < path.count else { return nil }
            switch segment {
            case .literal(let bytes): guard bytes == path[place] else { return nil }
            case .placeholder(let name):
                guard !path[place].isEmpty else { return nil }
                values[name] = String(decoding: path[place], as: UTF8.self)
            case .wildcard: guard !path[place].isEmpty else { return nil }
            case .rest: break
            }
        }
        return path.count == segments.count ? values : nil
    }
}
