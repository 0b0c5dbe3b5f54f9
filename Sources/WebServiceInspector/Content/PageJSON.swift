import Foundation

/// The encoding of the data for the page.
enum PageJSON {
    /// Returns JSON on one line. `nil`, for a value that cannot be encoded, does not occur.
    static func data(_ value: some Encodable) -> Data? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "0", negativeInfinity: "0", nan: "0")
        return try? encoder.encode(value)  // consists of strings, numbers and Booleans
    }
}
