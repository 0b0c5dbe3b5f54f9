import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCrypto
import WebServiceStorage

/// Entries that were changed, truncated, exchanged, or encrypted with another key.
@Suite("Refused entries", .permit)
struct RefusedEntryTests {
    private let failures = Collected<StorageEntry.Failure>()
    private let key = StorageKey(identifier: "a", account: "ann")
    private let other = StorageKey(identifier: "b", account: "ann")

    private func encrypted(_ storage: any ResponseStorage, _ cipher: AESGCMCipher) -> EncryptedStorage {
        EncryptedStorage(storage, cipher: cipher, refusalObserver: { [failures] in failures.add($0) })
    }

    private func folder() -> URL { TemporaryFolder.forTest().url.appendingPathComponent("storage") }

    /// Returns the file of an entry.
    private func file(_ key: StorageKey, in folder: URL) -> URL {
        folder.appendingPathComponent(key.fileName + ".entry")
    }

    /// Expects that an entry is absent, and that the other one can be read.
    private func expectRefusal(
        by storage: EncryptedStorage, reports: Int = 1, _ comment: Comment? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        failures.removeAll()
        #expect(try await storage.entry(for: key) == nil, comment, sourceLocation: sourceLocation)
        #expect(failures.values.count == reports, comment, sourceLocation: sourceLocation)
        for failure in failures.values {
            #expect(failure.key == key, comment, sourceLocation: sourceLocation)
            #expect(failure.operation == .read, comment, sourceLocation: sourceLocation)
            #expect((failure.error as? WebServiceError)?.code == .storage, comment, sourceLocation: sourceLocation)
        }
        #expect(try await storage.text(other) == "other", comment, sourceLocation: sourceLocation)
    }

    @Test(
        "An entry from a storage with another name, or with none, is refused",
        arguments: FileStorage.Format.allFormats)
    func otherStorage(format: FileStorage.Format) async throws {
        let names = ["", "ann", "ben", "an", "\0"]
        let folders = names.map { _ in folder() }
        let storages = try zip(names, folders).map { name, folder in
            EncryptedStorage(
                try FileStorage(folder: folder, format: format), name: name, cipher: try cipher(),
                refusalObserver: { [failures] in failures.add($0) })
        }
        for (name, storage) in zip(names, storages) {
            try await storage.store(.text("of '\(name)'"), for: key)
            try await storage.store(.text("other"), for: other)
        }
        for (from, source) in folders.enumerated() {
            let bytes = try Data(contentsOf: file(key, in: source))
            for (to, storage) in storages.enumerated() {
                let copy = file(key, in: folders[to])
                let original = try Data(contentsOf: copy)
                try bytes.write(to: copy)
                if from == to {
                    #expect(try await storage.text(key) == "of '\(names[from])'")
                } else {
                    try await expectRefusal(by: storage, "'\(names[from])' in '\(names[to])'")
                }
                try original.write(to: copy)
            }
        }
    }

    @Test("Entries in the same files are refused after a name is added or removed")
    func changedName() async throws {
        let folder = folder()
        let plain = EncryptedStorage(try FileStorage(folder: folder), cipher: try cipher())
        let named = EncryptedStorage(try FileStorage(folder: folder), name: "ann", cipher: try cipher())
        try await plain.store(.text("plain"), for: key)
        #expect(try await named.text(key) == nil)
        try await named.store(.text("named"), for: key)
        #expect(try await plain.text(key) == nil)
        #expect(try await named.text(key) == "named")
    }

    @Test("A file with any changed byte is refused", arguments: FileStorage.Format.allFormats)
    func changedBytes(format: FileStorage.Format) async throws {
        let folder = folder()
        let storage = encrypted(try FileStorage(folder: folder, format: format), try cipher())
        let entry = StorageEntry(.raw(Data("secret".utf8)), date: Date(timeIntervalSince1970: 5))
        try await storage.store(entry, for: key)
        try await storage.store(.text("other"), for: other)
        let bytes = try Data(contentsOf: file(key, in: folder))
        for index in sample(Array(bytes.indices), every: 8) {
            for bit in [0x01, 0x80] as [UInt8] {
                var changed = bytes
                changed[index] ^= bit
                try changed.write(to: file(key, in: folder))
                // A wrapped file has a checksum of its own.
                try await expectRefusal(by: storage, reports: format == .bare ? 1 : 0, "byte \(index)")
            }
        }
        try bytes.write(to: file(key, in: folder))
        #expect(try await storage.text(key) == "secret")
    }

    @Test("A file is refused with any number of bytes removed or added")
    func truncated() async throws {
        let folder = folder()
        let storage = encrypted(try FileStorage(folder: folder, format: .bare), try cipher())
        try await storage.store(.text("secret"), for: key)
        try await storage.store(.text("other"), for: other)
        let bytes = try Data(contentsOf: file(key, in: folder))
        for count in 0..<bytes.count {
            try bytes.prefix(count).write(to: file(key, in: folder))
            try await expectRefusal(by: storage, "\(count) bytes")
            try bytes.suffix(count).write(to: file(key, in: folder))
            try await expectRefusal(by: storage, "the last \(count) bytes")
        }
        try (bytes + [0]).write(to: file(key, in: folder))
        try await expectRefusal(by: storage)
    }

    @Test(
        "An entry of another identifier, account or classification is refused",
        arguments: Backing.allCases)
    func exchanged(backing: Backing) async throws {
        let inner = try backing.storage(in: folder())
        let storage = encrypted(inner, try cipher())
        try await storage.store(.text("other"), for: other)
        let keys = [
            other, StorageKey(identifier: "a", account: "bob"), StorageKey(identifier: "a"),
            StorageKey(identifier: "a", classification: DataClassification("x"), account: "ann"),
        ]
        for source in keys {
            if source != other { try await storage.store(.text("secret"), for: source) }
            let foreign = try #require(try await inner.entry(for: source))
            try await inner.store(foreign, for: key)
            try await expectRefusal(by: storage, "\(source.identifier)")
        }
        try await storage.store(.text("new"), for: key)
        #expect(try await storage.text(key) == "new")
    }

    @Test("Two exchanged files are both refused")
    func exchangedFiles() async throws {
        let folder = folder()
        let storage = encrypted(try FileStorage(folder: folder, format: .bare), try cipher())
        let bob = StorageKey(identifier: "a", account: "bob")
        try await storage.store(.text("for ann"), for: key)
        try await storage.store(.text("for bob"), for: bob)
        let bytes = try [key, bob].map { try Data(contentsOf: file($0, in: folder)) }
        try bytes[1].write(to: file(key, in: folder))
        try bytes[0].write(to: file(bob, in: folder))
        #expect(try await storage.entry(for: key) == nil)
        #expect(try await storage.entry(for: bob) == nil)
        #expect(failures.values.map(\.key) == [key, bob])
    }

    @Test("An entry of another key is refused, and remains for its own", arguments: Backing.allCases)
    func wrongKey(backing: Backing) async throws {
        let inner = try backing.storage(in: folder())
        try await encrypted(inner, try cipher(1)).store(.text("secret"), for: key)
        let storage = encrypted(inner, try cipher(2))
        try await storage.store(.text("other"), for: other)
        try await expectRefusal(by: storage)
        #expect(try await encrypted(inner, try cipher(1)).text(key) == "secret")
    }

    @Test("An earlier key decrypts, and the new one encrypts")
    func rotation() async throws {
        let inner = MemoryStorage()
        try await encrypted(inner, try cipher(1)).store(.text("first"), for: key)
        try await encrypted(inner, try cipher(2)).store(.text("second"), for: other)
        let storage = encrypted(inner, try cipher(3, earlier: [1, 2]))
        #expect(try await storage.text(key) == "first")
        #expect(try await storage.text(other) == "second")
        try await storage.store(.text("third"), for: key)
        #expect(try await encrypted(inner, try cipher(3)).text(key) == "third")
        #expect(try await encrypted(inner, try cipher(1)).entry(for: key) == nil)
    }

    @Test("An entry that is not encrypted is refused", arguments: Backing.allCases)
    func notEncrypted(backing: Backing) async throws {
        let inner = try backing.storage(in: folder())
        let storage = encrypted(inner, try cipher())
        try await storage.store(.text("other"), for: other)
        for text in ["", "secret", "WSEc", String(repeating: "secret", count: 100)] {
            try await inner.store(.text(text), for: key)
            try await expectRefusal(by: storage)
        }
        #expect("\(failures.values.map(\.error))".contains("secret") == false)
    }
}

extension FileStorage.Format {
    static let allFormats: [FileStorage.Format] = [.wrapped, .bare]
}
