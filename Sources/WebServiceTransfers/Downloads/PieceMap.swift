import WebServiceCore

/// The pieces of a file that several connections download, and which of them are complete.
struct PieceMap: Sendable, Equatable, Codable {
    /// The length of every piece but the last, in bytes.
    let length: Int64
    let total: Int64
    /// One bit for each piece, beginning with the lowest bit of the first byte.
    private var bits: [UInt8]

    /// The minimum length of a piece.
    static let minimumLength: Int64 = 8 << 20
    /// The maximum number of pieces. Files of 8 GiB and more have longer pieces.
    static let maximumCount: Int64 = 1_024

    init(total: Int64) {
        self.total = total
        length = max(Self.minimumLength, total / Self.maximumCount + 1)
        bits = []
        bits = [UInt8](repeating: 0, count: (count + 7) / 8)
    }

    /// Whether the map is consistent. A map from a file may be damaged.
    var isValid: Bool {
        total > 0 && length >= Self.minimumLength && count <= Self.maximumCount && bits.count == (count + 7) / 8
    }

    var count: Int { total > 0 && length > 0 ? Int(clamping: (total - 1) / length + 1) : 0 }

    /// Returns the positions of a piece's bytes.
    func range(_ index: Int) -> ClosedRange<Int64> {
        let first = Int64(index) * length
        return first...first + max(1, min(length, total - first)) - 1
    }

    func isComplete(_ index: Int) -> Bool {
        bits.indices.contains(index / 8) && bits[index / 8] >> (index % 8) & 1 == 1
    }

    /// Whether all pieces are complete.
    var isComplete: Bool { completeBytes == total }

    mutating func complete(_ index: Int) {
        if bits.indices.contains(index / 8) { bits[index / 8] |= 1 << (index % 8) }
    }

    /// The end of the last complete piece.
    var end: Int64 { (0..<count).last(where: isComplete).map { range($0).upperBound + 1 } ?? 0 }

    /// The number of bytes in complete pieces.
    var completeBytes: Int64 {
        (0..<count).reduce(0) { isComplete($1) ? $0 + Int64(range($1).count) : $0 }
    }
}
