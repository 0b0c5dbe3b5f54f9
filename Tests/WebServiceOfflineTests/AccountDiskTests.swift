import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceMocking
import WebServiceOffline
import WebServiceStorage

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

/// After a log-out, the bytes of all files are searched.
@Suite("No data of an account remains on the disk", .permit)
struct AccountDiskTests {
    enum Kind: CaseIterable {
        case files, sqlite
        static var built: [Kind] {
            #if WEBSERVICE_SQLITE
            allCases
            #else
            [.files]
            #endif
        }
    }

    private let parent = TemporaryFolder.forTest().url
    private var elsewhere: URL { parent.appendingPathComponent("elsewhere", isDirectory: true) }

    private func storage(_ kind: Kind, in folder: URL) throws -> any ResponseStorage {
        #if WEBSERVICE_SQLITE
        if kind == .sqlite { return try SQLiteStorage(file: folder.appendingPathComponent("responses.sqlite")) }
        #endif
        return try FileStorage(folder: folder.appendingPathComponent("responses"))
    }

    private func files() throws -> [URL] {
        let all = FileManager.default.enumerator(at: parent, includingPropertiesForKeys: nil)?.allObjects ?? []
        return all.compactMap { $0 as? URL }.filter { !$0.hasDirectoryPath }
    }

    /// Returns the names of the files that contain a text.
    private func files(with text: String) throws -> Set<String> {
        Set(try files().filter { try Data(contentsOf: $0).range(of: Data(text.utf8)) != nil }.map(\.lastPathComponent))
    }

    @Test(
        "Entries, deleted entries and logs are removed, in the folder and outside",
        arguments: Kind.built, [true, false])
    func storages(kind: Kind, isInside: Bool) async throws {
        let account = try Account(in: parent.appendingPathComponent("anna"))
        let base = try storage(kind, in: isInside ? account.folder : elsewhere)
        let storage = account.storage(base)
        for number in 0..<40 {
            let key = StorageKey(identifier: "\(number)")
            let text = "secret-\(number) " + String(repeating: "x", count: 2_000)
            try await storage.store(StorageEntry(.raw(Data(text.utf8)), date: nil), for: key)
        }
        for number in 0..<20 { try await storage.removeEntry(for: StorageKey(identifier: "\(number)")) }
        // A database still has the bytes of the removed entries.
        #expect(try files(with: "secret-1 ").isEmpty == (kind == .files))
        #expect(try !files(with: "secret-30 ").isEmpty)
        try await account.logOut()
        #expect(try files() == [])
        #expect(try await base.entry(for: StorageKey(identifier: "30")) == nil)
    }

    @Test("The HTTP cache and typed requests store nothing after a log-out", arguments: Kind.built)
    func cache(kind: Kind) async throws {
        let mock = MockService()
        mock.on(.GET, "/", .text("secret").header("Cache-Control", "max-age=1000"))
        let account = try Account(in: parent.appendingPathComponent("anna"))
        let service = account.service(like: mock.service)
        let cache = ResponseCache(storage: account.storage(try storage(kind, in: account.folder)))
        service.interceptors = [cache]
        _ = try await service.GET("/").data().response
        await eventually("the response is stored") { (try? files(with: "secret").isEmpty) == false }
        try await account.logOut()
        #expect(try files() == [])
    }

    @Test("The bodies of cached streams are removed, and one that is being received is not stored")
    func bodies() async throws {
        let mock = MockService()
        let text = String(repeating: "secret", count: 500_000)
        mock.on(.GET, "/", .text(text).header("Cache-Control", "max-age=1000"))
        mock.on(
            .GET, "/endless",
            .stream(
                AsyncStream { continuation in
                    continuation.yield(Data("secret".utf8))
                }
            ).header("Cache-Control", "max-age=1000"))
        let account = try Account(in: parent.appendingPathComponent("anna"))
        let service = account.service(like: mock.service)
        let cache = ResponseCache(
            storage: account.storage(try storage(.files, in: account.folder)),
            bodies: try BodyFolder(account.file("bodies"), maximumBytes: 8 << 20))
        service.interceptors = [cache]
        #expect(try await service.GET("/").stream().value.body.collect(upTo: .max).count == text.utf8.count)
        await cache.finishStoring()
        #expect(try files(with: "secret").filter { $0.hasSuffix(".body") }.count == 1)
        let stored = try await service.GET("/").stream().value.body
        let body = try await service.GET("/endless").stream().value.body
        var bytes = body.makeAsyncIterator()
        #expect(try await bytes.next() == Data("secret".utf8))
        await eventually("the file is written") {
            (try? files(with: "secret").contains { $0.hasSuffix(".part") }) == true
        }
        try await account.logOut()
        await #expect(throws: URLError(.cancelled)) { try await bytes.next() }
        await #expect(throws: URLError(.cancelled)) { try await stored.collect(upTo: .max) }
        await cache.finishStoring()
        #expect(try files() == [])
        #expect(!FileManager.default.fileExists(atPath: account.folder.path))
    }

    #if WEBSERVICE_SQLITE
    @Test("A database that was set aside because it was damaged is removed")
    func damaged() async throws {
        let account = try Account(in: parent.appendingPathComponent("anna"))
        let file = elsewhere.appendingPathComponent("responses.sqlite")
        try FileManager.default.createDirectory(at: elsewhere, withIntermediateDirectories: true)
        try Data("secret, and no database".utf8).write(to: file)
        let storage = account.storage(try SQLiteStorage(file: file))
        try await storage.store(StorageEntry(.raw(Data("x".utf8)), date: nil), for: StorageKey(identifier: "a"))
        #expect(try files(with: "secret") == ["responses.sqlite.damaged"])
        try await account.logOut()
        #expect(try files() == [])
    }
    #endif
}
