import Foundation
import WebServiceCore

/// The state of a transfer in a file: the version of its format, a checksum, and the state in JSON.
protocol TransferState: Codable {
    /// The beginning of the file, which contains the version.
    static var mark: String { get }
    /// The maximum length of the file, in bytes.
    static var maximumLength: Int { get }
}

extension TransferState {
    /// The content of the file; `nil` if it would be longer than ``maximumLength``.
    var encoded: Data? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let content = try? encoder.encode(self) else { return nil }  // strings and numbers can be encoded
        let bytes = CheckedContent.encode(content, mark: Self.mark)
        return bytes.count <= Self.maximumLength ? bytes : nil
    }

    /// Decodes a state from the content of its file.
    ///
    /// - Returns: `nil` if the state has another version or is damaged.
    init?(encoded bytes: Data) {
        guard bytes.count <= Self.maximumLength, let content = CheckedContent.decode(bytes, mark: Self.mark),
            let state = try? JSON.decode(Self.self, from: content, using: JSONDecoder())  // damaged is absent
        else { return nil }
        self = state
    }

    /// Returns the SHA-256 hash of bytes in hexadecimal.
    static func hash(_ bytes: some Sequence<UInt8>) -> String {
        SHA2.sha256.hash(Data(bytes)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
