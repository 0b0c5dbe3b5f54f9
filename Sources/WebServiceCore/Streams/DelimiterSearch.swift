/// The search for the delimiters of a multipart body (RFC 2046, section 5.1.1).
///
/// A delimiter is a line feed, two dashes and the boundary, followed by a space, tab or line break,
/// or by two dashes in the close delimiter. Any other line that contains the boundary is data, such
/// as the delimiter of a nested body whose boundary is longer.
struct DelimiterSearch: Sendable {
    /// A delimiter in the body.
    struct Match {
        /// The index of its line feed.
        var index: Int
        /// The index after the boundary, or after the two dashes of the close delimiter.
        var end: Int
        /// A Boolean value that indicates whether this is the close delimiter.
        var isLast: Bool
    }

    /// The number of leading bytes in which no delimiter begins.
    var searched = 0
    /// The possible delimiters. After the first match, only the delimiter that matched.
    private var delimiters: [[UInt8]]

    init(boundary: String) {
        delimiters = [Array("\n--\(boundary)".utf8)]
        if boundary.hasPrefix("--") { delimiters.append(Array("\n\(boundary)".utf8)) }
    }

    /// Returns the first delimiter after the bytes that were already searched.
    ///
    /// - Parameter isFinished: Whether the body ends with these bytes.
    mutating func next(in bytes: UnsafeRawBufferPointer, isFinished: Bool) -> Match? {
        while let index = bytes.firstIndex(of: .lineFeed, from: searched) {
            searched = index
            for delimiter in delimiters {
                guard let isMatch = bytes.contains(delimiter, at: index) ?? (isFinished ? false : nil),
                    let isLast = isMatch ? Self.isLast(bytes, index + delimiter.count, isFinished) : .some(nil)
                else { return nil }
                guard let isLast else { continue }
                delimiters = [delimiter]
                return Match(index: index, end: index + delimiter.count + (isLast ? 2 : 0), isLast: isLast)
            }
            searched = index + 1
        }
        searched = bytes.count
        return nil
    }

    /// Returns whether the delimiter before an index is the close delimiter.
    ///
    /// - Returns: `nil` if more bytes are needed, `.some(nil)` if it is not a delimiter.
    private static func isLast(_ bytes: UnsafeRawBufferPointer, _ index: Int, _ isFinished: Bool) -> Bool?? {
        let rest = bytes.dropFirst(index).prefix(2)
        guard let first = rest.first else { return isFinished ? .some(false) : nil }
        switch first {
        case UInt8(ascii: " "), UInt8(ascii: "\t"), .carriageReturn, .lineFeed: return .some(false)
        case UInt8(ascii: "-") where rest.last == first:
            return rest.count == 2 ? .some(true) : isFinished ? .some(nil) : nil
        default: return .some(nil)
        }
    }
}
