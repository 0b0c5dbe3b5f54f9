/// What an entry of a ``ResponseStorage`` is found by: identifier, classification and account, compared byte for byte.
///
/// Two identifiers that Swift holds for equal because they look the same (`é` as one scalar or as two) are two keys, and so are `A` and `a`.
public struct StorageKey: Sendable, Hashable {
    /// All three parts in one sequence of bytes, different for different keys. Storages keep it whole and compare it.
    public let bytes: [UInt8]

    /// - Parameters:
    ///   - identifier: What the request calls its answer; any text, also an empty one.
    ///   - classification: The kind of data.
    ///   - account: Whose data it is; `nil` for nobody's.
    public init(identifier: String, classification: DataClassification = .default, account: String? = nil) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(identifier.utf8.count + classification.description.utf8.count + (account?.utf8.count ?? 0) + 8)
        Self.append(classification.description.utf8, to: &bytes)
        if let account { Self.append(account.utf8, to: &bytes) } else { bytes.append(contentsOf: [0xFF, 0xFF, 0xFF, 0xFF]) }
        bytes.append(contentsOf: identifier.utf8)
        self.bytes = bytes
    }

    /// The length in four bytes, then the text.
    private static func append(_ text: String.UTF8View, to bytes: inout [UInt8]) {
        let count = UInt32(truncatingIfNeeded: text.count)
        for shift in [0, 8, 16, 24] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
        bytes.append(contentsOf: text)
    }

    /// A name for the key that is safe as a file's: 32 digits and letters. Keys with the same name are very unlikely and told apart by ``bytes``.
    public var fileName: String {
        bytes.withUnsafeBytes { bytes in
            Self.hexadecimal(XXHash64.hash(bytes)) + Self.hexadecimal(XXHash64.hash(bytes, seed: 1))
        }
    }

    private static func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

extension StorageKey: CustomStringConvertible {
    /// The ``fileName``: identifiers may be secret.
    public var description: String { fileName }
}
