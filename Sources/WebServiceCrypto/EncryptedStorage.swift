import Foundation
import WebServiceCore
public import WebServiceStorage

/// A storage that encrypts and authenticates the data of each entry before another storage stores
/// it.
///
/// ```swift
/// let cipher = try AESGCMCipher(key: key)
/// service.storages = [EncryptedStorage(try FileStorage(folder: folder), cipher: cipher)]
/// ```
/// The key of an entry (identifier, account and classification), its date and the kind of its
/// content are authenticated but not encrypted. An entry is therefore refused if it was changed,
/// truncated, or moved to another key or account, or if it was copied from a storage with another
/// name.
///
/// Entries that are not encrypted, or that were encrypted with another key, are also refused. A
/// refused entry counts as absent, and the observer is notified. The entry remains in the
/// underlying storage until it is replaced or removed, so it can be read again with the correct
/// key.
///
/// All members may be called from any thread. Data is encrypted and decrypted in memory, in the
/// caller's Swift task.
public struct EncryptedStorage: ResponseStorage {
    private let storage: any ResponseStorage
    private let name: String
    private let cipher: any StorageCipher
    private let observer: (@Sendable (_ failure: StorageEntry.Failure) -> Void)?

    /// Creates a storage on top of another storage.
    ///
    /// - Parameters:
    ///   - storage: The underlying storage, which stores the encrypted entries.
    ///   - name: The name of this storage. It is authenticated with each entry, but not stored. An
    ///     entry from a storage with another name, or without a name, is refused. Use a different
    ///     name, such as the name of the user, for each storage with the same key. Defaults to an
    ///     empty string, which means no name: every storage without a name accepts the entries.
    ///   - cipher: The cipher.
    ///   - refusalObserver: Called with a failure, on any thread, each time a refused entry is
    ///     read. The error is that of the cipher, or an error with the code
    ///     `WebServiceError.Code.storage` if the entry is not encrypted, or if only one of this
    ///     storage and the storage that encrypted the entry has a name. Defaults to `nil`.
    public init(
        _ storage: any ResponseStorage, name: String = "", cipher: any StorageCipher,
        refusalObserver: (@Sendable (_ failure: StorageEntry.Failure) -> Void)? = nil
    ) {
        (self.storage, self.name, self.cipher, observer) = (storage, name, cipher, refusalObserver)
    }

    /// The classifications of the underlying storage.
    public var classifications: Set<DataClassification>? { storage.classifications }

    /// Returns whether responses to the request have a byte representation and the underlying
    /// storage supports the request.
    public func supports(_ request: any StorableRequest) -> Bool {
        (request is any RawStorableRequest || request is any ValueStorableRequest) && storage.supports(request)
    }

    /// Returns the entry for a key, or `nil` if there is no entry or if it is refused.
    ///
    /// The date of the entry is the date with which it was stored, not that of the underlying
    /// storage.
    public func entry(for key: StorageKey) async throws -> StorageEntry? {
        guard let entry = try await storage.entry(for: key) else { return nil }
        do {
            guard let data = entry.data, let header = EncryptionHeader(data) else { throw Self.notEncrypted }
            guard header.isNamed != name.isEmpty else { throw Self.otherName }
            let opened = try cipher.open(
                data.dropFirst(EncryptionHeader.count), authenticating: header.bytes + binding + key.bytes)
            return header.entry(opened)
        } catch {
            observer?(StorageEntry.Failure(operation: .read, key: key, storage: self, error: error))
            return nil
        }
    }

    private static let notEncrypted = WebServiceError(
        .storage,
        "a stored entry is not encrypted, or was encrypted by a newer version of this library, and counts as absent; "
            + "remove the entries that were stored before the storage was encrypted")

    private static let otherName = WebServiceError(
        .storage,
        "a stored entry was encrypted by a storage with another name, and counts as absent; use the same name, or "
            + "remove the entries that were stored before the storage had a name")

    /// The name, preceded by its length; empty if there is no name.
    private var binding: Data {
        guard !name.isEmpty else { return Data() }
        return withUnsafeBytes(of: UInt64(name.utf8.count).littleEndian) { Data($0) } + Data(name.utf8)
    }

    /// Encrypts and stores an entry.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the entry is a value without a byte
    ///   representation, or any error of the cipher or the underlying storage. In these cases, the
    ///   previous entry remains.
    public func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        guard let data = entry.data else {
            throw WebServiceError(
                .storage, "an encrypted storage stores only bytes; use a MemoryStorage for other values")
        }
        let header = EncryptionHeader(entry, isNamed: !name.isEmpty).bytes
        var sealed = entry
        sealed.content = .unlabelled(header + (try cipher.seal(data, authenticating: header + binding + key.bytes)))
        try await storage.store(sealed, for: key)
    }

    /// Removes the entry for a key.
    public func removeEntry(for key: StorageKey) async throws { try await storage.removeEntry(for: key) }

    /// Removes all entries of the underlying storage.
    public func removeAll() async throws { try await storage.removeAll() }

    /// Removes the entries with a classification from the underlying storage.
    public func removeEntries(of classification: DataClassification) async throws {
        try await storage.removeEntries(of: classification)
    }

    /// Returns summaries of the underlying storage's entries, including entries that would be
    /// refused.
    ///
    /// The sizes are those of the encrypted data. The dates are not authenticated.
    public func summaries(after key: StorageKey?, limit: Int) async throws -> [StorageEntry.Summary] {
        try await storage.summaries(after: key, limit: limit)
    }
}

extension EncryptedStorage: ErasableStorage {
    /// Erases the underlying storage.
    package func erase() async throws { try await storage.eraseAll() }
}

/// The first bytes of an encrypted entry's data: the signature, the version, the form of the
/// content, whether the date is known, whether the storage has a name, and the date. The date is
/// the bit pattern of a little-endian `Double` with the seconds since 1970.
struct EncryptionHeader {
    static let count = 16
    private static let start = Data("WSEc".utf8) + [1]

    let bytes: Data
    let isNamed: Bool
    private let form: UInt8
    private let date: Date?

    init(_ entry: StorageEntry, isNamed: Bool) {
        self.isNamed = isNamed
        form =
            switch entry.content {
            case .raw: 0
            case .value: 1
            case .unlabelled, .live: 2
            }
        date = entry.date
        let bits = (date?.timeIntervalSince1970 ?? 0).bitPattern.littleEndian
        bytes = Self.start + [form, date == nil ? 0 : 1, isNamed ? 1 : 0] + withUnsafeBytes(of: bits) { Data($0) }
    }

    /// - Parameter data: The data of an entry.
    /// - Returns: `nil` if the data does not begin with a header of this version.
    init?(_ data: Data) {
        let head = Array(data.prefix(Self.count))
        guard head.count == Self.count, head.starts(with: Self.start) else { return nil }
        bytes = Data(head)
        let flags = head.dropFirst(5)
        form = flags.first ?? 2
        isNamed = flags.dropFirst(2).first == 1
        let bits = head.dropFirst(8).reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        date = flags.dropFirst().first == 0 ? nil : Date(timeIntervalSince1970: Double(bitPattern: bits))
    }

    /// Returns an entry with data that was decrypted and authenticated together with this header.
    func entry(_ data: Data) -> StorageEntry {
        let content: StorageEntry.Content =
            switch form {
            case 0: .raw(data)
            case 1: .value(data)
            default: .unlabelled(data)
            }
        return StorageEntry(content, date: date)
    }
}
