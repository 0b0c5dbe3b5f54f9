import Foundation
import WebServiceCore

/// The positions that a ``Paginator`` has visited, as hashes, in bounded memory.
///
/// The last positions are stored, and those of the earlier ones whose number is a power of two. A
/// loop that is too long for the former reaches one of the latter before the number of visited
/// positions is twice that of the different ones (R. P. Brent, 1980).
struct VisitedPositions: Sendable, Hashable, Codable {
    /// The number of last positions that are stored.
    static let maximumRecent = 128

    /// The hashes of the last positions, the oldest first.
    private var recent: [UInt64] = []
    /// The hashes of the first, second, fourth, … position.
    private var landmarks: [UInt64] = []
    private var count = 0

    func contains(_ position: some Encodable) -> Bool {
        Self.hash(position).map { recent.contains($0) || landmarks.contains($0) } ?? false
    }

    mutating func insert(_ position: some Encodable) {
        guard let hash = Self.hash(position), !recent.contains(hash) else { return }
        count = max(count, 0) &+ 1
        if count.nonzeroBitCount == 1 { landmarks.append(hash) }
        recent.append(hash)
        recent = Array(recent.suffix(Self.maximumRecent))
    }

    /// A hash that is the same in every process; `nil` if the position cannot be encoded.
    private static func hash(_ position: some Encodable) -> UInt64? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let bytes = try? encoder.encode([position]) else { return nil }  // reported when the state is encoded
        return bytes.withUnsafeBytes { XXHash64.hash($0) }
    }
}
