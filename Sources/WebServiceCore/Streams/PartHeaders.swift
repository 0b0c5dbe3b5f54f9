/// The header fields of a part of a multipart body while they are being read.
struct PartHeaders: Sendable {
    /// The number of bytes read.
    var size = 0
    private var fields: [(name: String, value: String)] = []

    /// Adds a line without its line break.
    ///
    /// - Returns: `false` if the line is neither a field nor the continuation of one.
    mutating func add(line: [UInt8]) -> Bool {
        if let first = line.first, ASCII.isSpaceOrTab(first) {
            guard !fields.isEmpty else { return false }
            fields[fields.count - 1].value += " " + Self.text(line[...])
            return true
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let name = Self.text(line[..<colon])
        guard ASCII.isToken(name.utf8) else { return false }
        fields.append((name, Self.text(line[(colon + 1)...])))
        return true
    }

    /// Returns the fields and prepares for the next part.
    mutating func removeAll() -> Headers {
        defer { self = PartHeaders() }
        return Headers(fields.map { ($0.name, $0.value) })
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: ASCII.trimmed(bytes), as: UTF8.self)
    }
}
