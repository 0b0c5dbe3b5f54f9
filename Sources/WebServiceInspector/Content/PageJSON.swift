import Foundation

/// The encoding of the data for the page.
enum PageJSON {
    /// Returns JSON on one line. Returns `nil` if a value cannot be encoded, which does not happen
    /// in practice.
    static func data(_ value: some Encodable) -> Data? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "0", negativeInfinity: "0", nan: "0")
        return try? encoder.encode(value)  // contains only strings, numbers and Booleans
    }
}
