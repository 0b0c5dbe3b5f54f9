import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceStorage

/// The lists of storages.
@Suite(.permit) struct StorageListTests {
    private let temporary = TemporaryFolder()

    private enum Kind: CaseIterable { case memory, file, prefixedFile }

    private func storage(_ kind: Kind) throws -> any ResponseStorage {
        switch kind {
        case .memory: MemoryStorage()
        case .file: try FileStorage(folder: temporary.url)
        case .prefixedFile: try FileStorage(folder: temporary.url, prefix: "b-")
        }
    }

    @Test(
        "The pages of a list contain each entry once, with its date and size",
        arguments: Kind.allCases)
    private func pages(kind: Kind) async throws {
        let storage = try storage(kind)
        #expect(try await storage.summaries(after: nil, limit: 10).isEmpty)
        var sizes: [StorageKey: Int] = [:]
        for number in 0..<25 {
            let key = StorageKey(identifier: "GET /\(number)", account: number % 2 == 0 ? "ann" : nil)
            sizes[key] = number * 700
            let entry = StorageEntry(
                .raw(Data(count: number * 700)), date: Date(timeIntervalSince1970: Double(number)))
            try await storage.store(entry, for: key)
        }
        var found: [StorageEntry.Summary] = []
        while true {
            let page = try await storage.summaries(after: found.last?.key, limit: 10)
            #expect(page.count <= 10)
            guard !page.isEmpty else { break }
            found += page
        }
        #expect(found.count == 25)
        #expect(Dictionary(found.map { ($0.key, $0.byteCount) }) { first, _ in first } == sizes.mapValues { $0 })
        for summary in found {
            let number = try #require(Int(summary.key.identifier.dropFirst("GET /".count)))
            #expect(summary.date == Date(timeIntervalSince1970: Double(number)))
            #expect(summary.key.account == (number % 2 == 0 ? "ann" : nil))
        }
    }

    @Test("A list continues after an entry that was removed", arguments: Kind.allCases)
    private func removed(kind: Kind) async throws {
        let storage = try storage(kind)
        for number in 0..<6 {
            try await storage.store(StorageEntry(.value(Data()), date: nil), for: StorageKey(identifier: "\(number)"))
        }
        let first = try await storage.summaries(after: nil, limit: 3)
        let last = try #require(first.last?.key)
        try await storage.removeEntry(for: last)
        let rest = try await storage.summaries(after: last, limit: 3)
        #expect(Set((first + rest).map(\.key)).count == 6)
        #expect(rest.map(\.date) == [nil, nil, nil])
        #expect(try await storage.summaries(after: nil, limit: 0).isEmpty)
        #expect(try await storage.summaries(after: nil, limit: -1).isEmpty)
    }

    @Test("A list is no use of the entries of a memory storage")
    func use() async throws {
        let storage = MemoryStorage(maximumCount: 2)
        for name in ["a", "b"] {
            try storage.store(StorageEntry(.live(name), date: nil), for: StorageKey(identifier: name))
        }
        #expect(await storage.summaries(after: nil, limit: 1).map(\.byteCount) == [nil])
        #expect(await storage.summaries(after: nil, limit: 2).count == 2)
        try storage.store(StorageEntry(.live("c"), date: nil), for: StorageKey(identifier: "c"))
        #expect(storage.entry(for: StorageKey(identifier: "a")) == nil)
        #expect(storage.entry(for: StorageKey(identifier: "b")) != nil)
    }

    @Test("Keys of any length, other files and damaged ones do not end a list of files")
    func files() async throws {
        let storage = try FileStorage(folder: temporary.url)
        let long = StorageKey(identifier: String(repeating: "é", count: 5_000))
        try await storage.store(StorageEntry(.raw(Data(count: 2 << 20)), date: nil), for: long)
        for number in 0..<20 {
            try await storage.store(
                StorageEntry(.raw(Data("ale".utf8)), date: nil), for: StorageKey(identifier: "\(number)"))
        }
        let names = try names(in: temporary.url).filter { !$0.hasPrefix(long.fileName) }
        let damaged = ["", "WSEn", "WSEn\u{1}" + String(repeating: "\u{7F}", count: 60)]
        for (name, text) in zip(names, damaged) {
            try Data(text.utf8).write(to: temporary.url.appendingPathComponent(name))
        }
        _ = try temporary.file("other.entry")
        try FileManager.default.createSymbolicLink(
            at: temporary.url.appendingPathComponent(String(repeating: "0", count: 32) + ".entry"),
            withDestinationURL: temporary.url.appendingPathComponent(names[5]))
        let summaries = try await storage.summaries(after: nil, limit: 100)
        #expect(summaries.count == 18)
        #expect(summaries.first { $0.key == long }?.byteCount == 2 << 20)
    }

    @Test("A storage that stores no keys, and one without a list, throw a typed error")
    func withoutList() async throws {
        let bare = try FileStorage(folder: temporary.url, format: .bare)
        for storage in [bare, HandStorage()] as [any ResponseStorage] {
            let error = await #expect(throws: WebServiceError.self) {
                try await storage.summaries(after: nil, limit: 1)
            }
            #expect(error?.code == .storage)
        }
    }

    @Test("A key is created from its bytes, and from no others")
    func keys() {
        for account in [nil, "", "ann"] {
            let key = StorageKey(identifier: "é/\u{0}", classification: DataClassification("menu"), account: account)
            #expect(StorageKey(bytes: key.bytes) == key)
            #expect(key.identifier == "é/\u{0}")
            #expect(key.classification == DataClassification("menu"))
            #expect(key.account == account)
        }
        let bytes = StorageKey(identifier: "a", account: "b").bytes
        for count in 0..<(bytes.count - 1) { #expect(StorageKey(bytes: Array(bytes.prefix(count))) == nil) }
        #expect(StorageKey(bytes: [0xFF, 0xFF, 0xFF, 0x7F] + bytes) == nil)
        #expect(StorageKey(bytes: bytes + [0xFF]) == nil)
    }
}
