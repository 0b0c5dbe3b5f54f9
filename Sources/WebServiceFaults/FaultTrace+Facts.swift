import Foundation
import WebServiceCore
import WebServiceMocking

extension FaultTrace.Facts {
    /// The maximum number of boundaries that are noted.
    private static let maximum = 8

    init(_ response: MockResponse) {
        byteCount = response.data.count
        let type = response.headers[.contentType] ?? ""
        isJSON = type == "application/json" || Self.isJSON(type.lowercased())
        guard !isJSON, byteCount > 0 else { return }
        let isEvents = type.lowercased().hasPrefix("text/event-stream")
        guard isEvents || type.contains("ndjson") || type.contains("jsonl") else { return }
        let separator = Data((isEvents ? "\n\n" : "\n").utf8)
        var rest = response.data[...]
        while boundaries.count < Self.maximum, let found = rest.firstRange(of: separator) {
            boundaries.append(found.upperBound - response.data.startIndex)
            rest = rest[found.upperBound...]
        }
    }

    private static func isJSON(_ type: String) -> Bool {
        type.contains("json") && !["seq", "ndjson", "jsonl"].contains { type.contains($0) }
    }

    /// Adds a part of a body that is produced in parts.
    mutating func add(_ count: Int) {
        guard count > 0 else { return }
        byteCount += count
        if boundaries.count < Self.maximum { boundaries.append(byteCount) }
    }

    /// The numbers of bytes after which a body is cut.
    var positions: [Int] {
        if !boundaries.isEmpty { return boundaries.flatMap { [$0 - 1, $0] } }
        guard byteCount > 0 else { return [] }
        return isJSON ? [byteCount / 2] : Set([0, byteCount / 2, byteCount - 1]).sorted()
    }
}
