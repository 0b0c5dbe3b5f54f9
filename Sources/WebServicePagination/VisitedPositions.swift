import Foundation
import WebServiceCore

/// The positions that a ``Paginator`` has visited, stored as hashes in bounded memory.
///
/// Two kinds of positions are stored: the last ones, and all those whose number is a power of two.
/// A loop that is too long for the last positions reaches one of the others before the number of
/// visited positions is twice the number of different positions (R. P. Brent, 1980).
struct VisitedPositions: Sendable, Hashable, Codable {
    /// The maximum number of recent positions that are stored.
    static let maximumRecent = 128

    /// The hashes of the last positions, with the oldest first.
    private var recent: [UInt64] = []
    /// The hashes of the first, second, fourth, eighth, … position.
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

    /// Returns a hash that is the same in every process, or `nil` if the position cannot be
    /// encoded.
    private static func hash(_ position: some Encodable) -> UInt64? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let bytes = try? encoder.encode([position]) else { return nil }  // reported when the state is encoded
        return bytes.withUnsafeBytes { XXHash64.hash($0) }
    }
}
