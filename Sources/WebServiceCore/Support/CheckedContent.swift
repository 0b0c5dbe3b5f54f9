package import Foundation

/// The content of a file, after a line with the version of its format and a checksum.
package enum CheckedContent {
    /// Returns the content of a file.
    ///
    /// - Parameter mark: The name and the version of the format, and a space.
    package static func encode(_ content: Data, mark: String) -> Data {
        Data(mark.utf8) + Data(checksum(content).utf8) + content
    }

    /// Returns the content after the first line; `nil` for another version, and for a damaged file.
    package static func decode(_ bytes: Data, mark: String) -> Data? {
        let (mark, length) = (Data(mark.utf8), 17)
        guard bytes.starts(with: mark) else { return nil }
        let content = bytes.dropFirst(mark.count + length)
        guard bytes.dropFirst(mark.count).prefix(length).elementsEqual(checksum(content).utf8) else { return nil }
        return Data(content)
    }

    /// Returns the checksum as 16 hexadecimal digits and a line feed.
    private static func checksum(_ content: Data) -> String {
        let hash = String(content.withUnsafeBytes { XXHash64.hash($0) }, radix: 16)
        return String(repeating: "0", count: 16 - hash.utf8.count) + hash + "\n"
    }
}
