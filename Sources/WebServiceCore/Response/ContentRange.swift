/// The value of a `Content-Range` field whose unit is bytes (RFC 9110, section 14.4).
package enum ContentRange: Sendable, Equatable {
    /// The positions of the first and the last byte, and the length of the whole representation,
    /// which is `nil` if it is unknown.
    case bytes(ClosedRange<Int64>, total: Int64?)
    /// The length of a representation that has none of the requested bytes.
    case unsatisfied(total: Int64)

    /// Parses the value of a field.
    ///
    /// - Returns: `nil` for a unit other than bytes, for a range that ends before it begins or
    ///   exceeds the representation, for numbers above 2⁶³ − 1, and for anything that the grammar
    ///   does not allow.
    package init?(_ value: String) {
        let parts = ASCII.trimmed(value.utf8).split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 2, let unit = parts.first, let range = parts.last,
            String(decoding: unit, as: UTF8.self).equalsIgnoringASCIICase("bytes"),
            let slash = range.firstIndex(of: UInt8(ascii: "/"))
        else { return nil }
        let (positions, length) = (range[..<slash], range[range.index(after: slash)...])
        let total = Self.number(length)
        guard total != nil || length.elementsEqual("*".utf8) else { return nil }
        if positions.elementsEqual("*".utf8) {
            guard let total else { return nil }
            self = .unsatisfied(total: total)
            return
        }
        guard let dash = positions.firstIndex(of: UInt8(ascii: "-")), let first = Self.number(positions[..<dash]),
            let last = Self.number(positions[positions.index(after: dash)...]), first <= last,
            last < total ?? .max
        else { return nil }
        self = .bytes(first...last, total: total)
    }

    /// The length of the whole representation; `nil` if it is unknown.
    package var total: Int64? {
        switch self {
        case .bytes(_, let total): total
        case .unsatisfied(let total): total
        }
    }

    private static func number(_ digits: Substring.UTF8View) -> Int64? {
        digits.allSatisfy(ASCII.isDigit) ? Int64(String(decoding: digits, as: UTF8.self)) : nil
    }
}
