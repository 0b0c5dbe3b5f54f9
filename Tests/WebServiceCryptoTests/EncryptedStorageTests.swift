import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceCrypto
import WebServiceEndpoints
import WebServiceMocking
import WebServiceStorage

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

/// A storage on disk below an encrypted one.
enum Backing: CaseIterable, Sendable {
    case files
    /// Files without a checksum: only the cipher detects changes.
    case bareFiles
    #if WEBSERVICE_SQLITE
    case database
    #endif

    func storage(in folder: URL) throws -> any ResponseStorage {
        switch self {
        case .files: return try FileStorage(folder: folder)
        case .bareFiles: return try FileStorage(folder: folder, format: .bare)
        #if WEBSERVICE_SQLITE
        case .database: return try SQLiteStorage(file: folder.appendingPathComponent("responses.sqlite"))
        #endif
        }
    }
}

/// Returns a cipher whose keys repeat one byte.
func cipher(_ byte: UInt8 = 7, earlier: [UInt8] = []) throws -> AESGCMCipher {
    try AESGCMCipher(
        key: Data(repeating: byte, count: 32), earlierKeys: earlier.map { Data(repeating: $0, count: 32) })
}

func encrypted(_ storage: any ResponseStorage) throws -> EncryptedStorage {
    EncryptedStorage(storage, cipher: try cipher())
}

extension StorageEntry {
    static func text(_ text: String) -> StorageEntry { StorageEntry(.value(Data(text.utf8)), date: nil) }
}

extension ResponseStorage {
    func text(_ key: StorageKey) async throws -> String? {
        try await entry(for: key)?.data.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Entries that are stored and read.
@Suite("EncryptedStorage", .permit)
struct EncryptedStorageTests {
    private struct Stock: HTTPServiceRequest, ValueStorableRequest, Hashable {
        typealias Output = String
        var path = "/stock"
        var storageIdentifier: String? { path }
        func request(for service: WebService) -> Request { service.request(.GET, path: path) }
        func decode(_ response: Response) -> String { String(decoding: response.data, as: UTF8.self) }
    }

    private struct RawStock: HTTPServiceRequest, RawStorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "raw" }
        func request(for service: WebService) -> Request { service.request(.GET, path: "/stock") }
    }

    private struct LiveStock: HTTPServiceRequest, StorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "live" }
        func request(for service: WebService) -> Request { service.request(.GET, path: "/stock") }
    }

    private static let date = Date(timeIntervalSince1970: 1_234_567.891_234_567)

    private func folder() -> URL { TemporaryFolder.forTest().url.appendingPathComponent("storage") }

    /// Returns the names of the files that contain a text.
    private func files(in folder: URL, with text: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
            FileManager.default.contents(atPath: folder.appendingPathComponent($0).path)?.range(of: Data(text.utf8))
                != nil
        }
    }

    @Test(
        "Data, kind and date of an entry are read by a new storage with the same key",
        arguments: Backing.allCases, [0, 1, 15, 16, 17, 100_000])
    func roundTrip(backing: Backing, count: Int) async throws {
        let folder = folder()
        let data = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let entries = [
            StorageEntry(.raw(data), date: Self.date), StorageEntry(.value(data), date: nil),
            StorageEntry(.unlabelled(data), date: Date(timeIntervalSince1970: -1)),
        ]
        let storage = try encrypted(try backing.storage(in: folder))
        for (number, entry) in entries.enumerated() {
            try await storage.store(entry, for: StorageKey(identifier: "\(number)", account: "ann"))
        }
        let other = try encrypted(try backing.storage(in: folder))
        for (number, entry) in entries.enumerated() {
            let key = StorageKey(identifier: "\(number)", account: "ann")
            let found = try #require(try await other.entry(for: key))
            #expect(found.date == entry.date)
            #expect("\(found.content)" == "\(entry.content)")
            #expect(found.data == data)
            try await other.removeEntry(for: key)
            #expect(try await storage.entry(for: key) == nil)
        }
    }

    @Test("No file of a storage contains the data", arguments: Backing.allCases)
    func noPlainText(backing: Backing) async throws {
        let folder = folder()
        let plain = try backing.storage(in: folder)
        let secret = "canary-body-of-a-response"
        let storage = try encrypted(plain)
        let key = StorageKey(identifier: "a")
        for _ in 0..<3 { try await storage.store(.text(String(repeating: secret, count: 200)), for: key) }
        #expect(try files(in: folder, with: "canary-body").isEmpty)
        #expect(try await storage.text(key)?.hasPrefix(secret) == true)
        // The search finds what is not encrypted.
        try await plain.store(.text(secret), for: key)
        #expect(try !files(in: folder, with: "canary-body").isEmpty)
    }

    @Test("Entries of one classification are removed, and all are listed")
    func listAndRemoval() async throws {
        let other = DataClassification("other")
        let storage = try encrypted(try FileStorage(folder: folder()))
        let keys = ["a", "b"].map { StorageKey(identifier: $0) } + [StorageKey(identifier: "c", classification: other)]
        for key in keys { try await storage.store(StorageEntry(.raw(Data(count: 9)), date: Self.date), for: key) }
        let summaries = try await storage.summaries(after: nil, limit: 10)
        #expect(Set(summaries.map(\.key)) == Set(keys))
        #expect(summaries.compactMap(\.byteCount) == [53, 53, 53])  // 16 + 12 + 9 + 16
        try await storage.removeEntries(of: other)
        #expect(try await storage.summaries(after: nil, limit: 10).count == 2)
        try await storage.removeAll()
        #expect(try await storage.summaries(after: nil, limit: 10).isEmpty)
    }

    @Test("Typed requests are stored as bytes only", arguments: Backing.allCases)
    func typedRequests(backing: Backing) async throws {
        let folder = folder()
        let mock = MockService()
        mock.on(.GET, "/stock", .text("canary-stock"))
        let service = mock.service
        service.storages = [try encrypted(try backing.storage(in: folder))]
        _ = try await service.perform(Stock()).value
        _ = try await service.perform(RawStock()).value
        #expect(await service.finishStoring())
        #expect(try await service.stored(Stock()).value.value == "canary-stock")
        #expect(try await service.stored(RawStock()).value.value == "canary-stock")
        #expect(try files(in: folder, with: "canary-stock").isEmpty)
        #expect(try !encrypted(MemoryStorage()).supports(LiveStock()))
        let live = StorageEntry(.live("canary"), date: nil)
        let error = await #expect(throws: WebServiceError.self) {
            try await encrypted(MemoryStorage()).store(live, for: StorageKey(identifier: "a"))
        }
        #expect(error?.code == .storage)
    }

    @Test("The HTTP cache serves encrypted responses", arguments: Backing.allCases)
    func httpCache(backing: Backing) async throws {
        let folder = folder()
        let mock = MockService()
        mock.on(.GET, "/stock", .text("canary-stock").header(.cacheControl, "max-age=60"))
        for source in [Response.Source.mock, .cache] {
            let cache = ResponseCache(storage: try encrypted(try backing.storage(in: folder)))
            mock.service.interceptors = [cache]
            let response = try await mock.service.GET("/stock").data().response
            #expect(response.source == source)
            #expect(response.data == Data("canary-stock".utf8))
            #expect(await cache.finishStoring())
        }
        #expect(mock.receivedRequests.count == 1)
        #expect(try files(in: folder, with: "canary-stock").isEmpty)
    }

    @Test("Cache groups of typed requests are encrypted and respected")
    func groups() async throws {
        let folder = folder()
        let mock = MockService()
        let response = MockResponse(
            statusCode: 200, headers: ["Cache-Groups": #""canary-group""#], data: Data("canary-stock".utf8))
        mock.on(.GET, "/stock", response)
        let cache = ResponseCache(storage: MemoryStorage())
        mock.service.interceptors = [cache]
        mock.service.storages = [GroupedStorage(try encrypted(try FileStorage(folder: folder)), of: cache)]
        _ = try await mock.service.perform(Stock()).value
        #expect(try await mock.service.stored(Stock()).value.value == "canary-stock")
        #expect(try files(in: folder, with: "canary-group").isEmpty)
        try await cache.invalidate(group: "canary-group", for: try mock.service.absoluteURL("/"))
        let error = await #expect(throws: WebServiceError.self) {
            try await mock.service.stored(Stock()).value
        }
        #expect(error?.code == .noStoredData)
    }

    @Test("Concurrent reads and writes return complete entries", arguments: Backing.allCases)
    func concurrency(backing: Backing) async throws {
        let storage = try encrypted(try backing.storage(in: folder()))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<64 {
                group.addTask {
                    let key = StorageKey(identifier: "\(number % 8)")
                    try await storage.store(.text("text \(number % 8)"), for: key)
                    #expect(try await storage.text(key) == "text \(number % 8)")
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("An entry of several megabytes is read")
    func largeEntry() async throws {
        let storage = try encrypted(MemoryStorage())
        let data = Data(repeating: 65, count: 20 << 20)
        try await storage.store(StorageEntry(.raw(data), date: nil), for: StorageKey(identifier: "a"))
        #expect(try await storage.entry(for: StorageKey(identifier: "a"))?.data == data)
    }
}
