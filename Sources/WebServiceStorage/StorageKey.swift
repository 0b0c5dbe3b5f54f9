import WebServiceCore

/// The key of an entry in a ``ResponseStorage``. It consists of an identifier, a classification and
/// an account.
///
/// Keys are compared byte by byte. Identifiers that are equal as Swift strings but differ in their
/// bytes (`é` as one or two scalars) are different keys, and so are `A` and `a`.
public struct StorageKey: Sendable, Hashable {
    /// An unambiguous encoding of all three parts. Storages store it in full and compare it in
    /// full.
    public let bytes: [UInt8]

    /// Creates a key.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of the response. It may be any string, including an empty
    ///     one.
    ///   - classification: The kind of data. Defaults to ``DataClassification/default``.
    ///   - account: The account that the data belongs to. Defaults to `nil`, which means no
    ///     account.
    public init(identifier: String, classification: DataClassification = .default, account: String? = nil) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(
            identifier.utf8.count + classification.description.utf8.count + (account?.utf8.count ?? 0) + 8)
        Self.append(classification.description.utf8, to: &bytes)
        if let account {
            Self.append(account.utf8, to: &bytes)
        } else {
            bytes.append(contentsOf: [0xFF, 0xFF, 0xFF, 0xFF])
        }
        bytes.append(contentsOf: identifier.utf8)
        self.bytes = bytes
    }

    /// Creates a key from its ``bytes``. A storage that lists its entries uses this initializer.
    ///
    /// - Returns: `nil` if the bytes are not those of a key.
    public init?(bytes: [UInt8]) {
        guard Parts(bytes) != nil else { return nil }
        self.bytes = bytes
    }

    /// The identifier of the response, which may be secret.
    public var identifier: String { Parts(bytes)?.identifier ?? "" }

    /// The kind of data.
    public var classification: DataClassification { DataClassification(Parts(bytes)?.classification ?? "") }

    /// The account that the data belongs to; `nil` if there is no account.
    public var account: String? { Parts(bytes)?.account }

    /// The parts of a key, decoded from its bytes.
    private struct Parts {
        let classification: String
        let account: String?
        let identifier: String

        init?(_ bytes: [UInt8]) {
            var rest = bytes[...]
            guard let classification = Self.text(&rest) else { return nil }
            self.classification = classification
            if rest.starts(with: [0xFF, 0xFF, 0xFF, 0xFF]) {
                rest = rest.dropFirst(4)
                account = nil
            } else {
                guard let account = Self.text(&rest) else { return nil }
                self.account = account
            }
            guard let identifier = String(validating: rest, as: UTF8.self) else { return nil }
            self.identifier = identifier
        }

        private static func text(_ rest: inout ArraySlice<UInt8>) -> String? {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard count <= rest.count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return String(validating: rest.prefix(count), as: UTF8.self)
        }
    }

    /// Returns whether the key has the given classification.
    public func isOf(_ classification: DataClassification) -> Bool {
        bytes.starts(with: Self.prefix(of: classification))
    }

    /// Returns the bytes with which all keys of a classification begin, and no other keys.
    package static func prefix(of classification: DataClassification) -> [UInt8] {
        var bytes: [UInt8] = []
        append(classification.description.utf8, to: &bytes)
        return bytes
    }

    /// Appends the length of the string in four bytes, and then the string.
    private static func append(_ text: String.UTF8View, to bytes: inout [UInt8]) {
        let count = UInt32(truncatingIfNeeded: text.count)
        for shift in [0, 8, 16, 24] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
        bytes.append(contentsOf: text)
    }

    /// A name for the key that can be used as a file name: 32 hexadecimal digits.
    ///
    /// Different keys are very unlikely to have the same name. ``bytes`` distinguishes them.
    public var fileName: String {
        bytes.withUnsafeBytes { bytes in
            XXHash64.hash(bytes).hexadecimal + XXHash64.hash(bytes, seed: 1).hexadecimal
        }
    }
}

extension StorageKey: CustomStringConvertible {
    /// The same string as ``fileName``, because identifiers may be secret.
    public var description: String { fileName }
}

/// A kind of data. Responses of different kinds can be stored and removed separately.
///
/// You can add custom classifications:
/// ```swift
/// extension DataClassification {
///     static let user = DataClassification("user")
/// }
/// ```
public struct DataClassification: Sendable, Hashable, CustomStringConvertible {
    /// The name of the classification.
    public let description: String

    /// Creates a custom classification. Two classifications are equal if their names are equal.
    public init(_ name: String) {
        description = name
    }

    /// The classification of requests that do not specify one.
    public static let `default` = DataClassification("default")
}
