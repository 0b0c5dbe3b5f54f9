import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceStorage

@Suite("FileStorage", .permit)
struct FileStorageTests {
    @Test("An entry keeps its form, bytes and date to the microsecond when another storage reads it")
    func roundTrip() async throws {
        try await withScratchFolder { folder in
            let date = Date(timeIntervalSince1970: 1_700_000_000.123456)
            let contents: [StorageEntry.Content] = [
                .raw(Data("raw".utf8)), .value(Data("value".utf8)), .unlabelled(Data("any".utf8)),
            ]
            for (index, content) in contents.enumerated() {
                try await FileStorage(folder: folder).store(
                    StorageEntry(content, date: date), for: StorageKey(identifier: "\(index)"))
            }
            for (index, content) in contents.enumerated() {
                let entry = try #require(
                    try await FileStorage(folder: folder).entry(for: StorageKey(identifier: "\(index)")))
                #expect(entry.form == StorageEntry(content, date: nil).form)
                #expect(entry.data == StorageEntry(content, date: nil).data)
                #expect(abs(try #require(entry.date).timeIntervalSince(date)) < 1e-6)
            }
        }
    }

    @Test(
        "Distant dates, dates before 1970 and missing dates are restored",
        arguments: [Date.distantPast, .distantFuture, Date(timeIntervalSince1970: -0.5), nil])
    func dates(date: Date?) async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            try await storage.store(StorageEntry(.raw(Data()), date: date), for: StorageKey(identifier: "a"))
            #expect(try #require(try await storage.entry(for: StorageKey(identifier: "a"))).date == date)
        }
    }

    @Test("A date that cannot be represented is stored as missing", arguments: [Double.infinity, .nan, 1e300])
    func impossibleDates(seconds: Double) async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            let date = Date(timeIntervalSinceReferenceDate: seconds)
            try await storage.store(StorageEntry(.raw(Data([1])), date: date), for: StorageKey(identifier: "a"))
            let entry = try #require(try await storage.entry(for: StorageKey(identifier: "a")))
            #expect(entry.date == nil)
            #expect(entry.data == Data([1]))
        }
    }

    @Test("Entries of all identifiers are stored inside the folder and can be read")
    func identifiers() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("storage")
            let storage = try FileStorage(folder: folder)
            let identifiers = [
                "../../x", "/etc/x", "a/b", "..", ".", "\0", "a\0b", String(repeating: "i", count: 300), "~", "",
                "%2e%2e%2f", "\\..\\x",
            ]
            for identifier in identifiers {
                try await storage.store(
                    StorageEntry(.raw(Data(("of " + identifier).utf8)), date: nil),
                    for: StorageKey(identifier: identifier))
            }
            for identifier in identifiers {
                #expect(
                    try await storage.entry(for: StorageKey(identifier: identifier))?.data
                        == Data(("of " + identifier).utf8))
            }
            #expect(try names(in: parent) == ["storage"])
            #expect(
                try names(in: folder) == identifiers.map { StorageKey(identifier: $0).fileName + ".entry" }.sorted())
        }
    }

    @Test(
        "Every string of the Big List of Naughty Strings is valid as identifier, classification and account",
        .enabled(if: Corpora.areThere, Corpora.comment))
    func naughtyStrings() async throws {
        let strings = try Corpora.naughtyStrings()
        try #require(strings.count > 500)
        try await withScratchFolder { parent in
            let storage = try FileStorage(folder: parent.appendingPathComponent("storage"))
            let keys = strings.map { StorageKey(identifier: $0, classification: DataClassification($0), account: $0) }
            try await withThrowingDiscardingTaskGroup { group in
                for (key, string) in zip(keys, strings) {
                    group.addTask {
                        try await storage.store(StorageEntry(.value(Data(string.utf8)), date: nil), for: key)
                    }
                }
            }
            try await withThrowingDiscardingTaskGroup { group in
                for (key, string) in zip(keys, strings) {
                    group.addTask {
                        let entry = try await storage.entry(for: key)
                        #expect(entry?.data == Data(string.utf8))
                    }
                }
            }
            #expect(try names(in: parent) == ["storage"])
            #expect(try names(in: parent.appendingPathComponent("storage")).count == Set(keys).count)
            try await withThrowingDiscardingTaskGroup { group in
                for key in keys { group.addTask { try await storage.removeEntry(for: key) } }
            }
            #expect(try names(in: parent.appendingPathComponent("storage")) == [])
        }
    }

    @Test("Identifiers that look alike identify different entries")
    func lookAlikes() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            let identifiers = ["\u{E9}", "e\u{301}", "A", "a", "a ", "1", "01"]
            for (index, identifier) in identifiers.enumerated() {
                try await storage.store(
                    StorageEntry(.raw(Data([UInt8(index)])), date: nil), for: StorageKey(identifier: identifier))
            }
            for (index, identifier) in identifiers.enumerated() {
                #expect(try await storage.entry(for: StorageKey(identifier: identifier))?.data == Data([UInt8(index)]))
            }
        }
    }

    @Test(
        "An entry without bytes differs from a missing entry",
        arguments: [FileStorage.Format.wrapped, .bare])
    func empty(format: FileStorage.Format) async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder, format: format)
            let key = StorageKey(identifier: "a")
            #expect(try await storage.entry(for: key) == nil)
            try await storage.store(StorageEntry(.value(Data()), date: nil), for: key)
            #expect(try #require(try await storage.entry(for: key)).data == Data())
            try await storage.removeEntry(for: key)
            #expect(try await storage.entry(for: key) == nil)
            try await storage.removeEntry(for: key)
        }
    }

    @Test("An entry of 32 MiB and a slice of other data are restored completely")
    func big() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            let data = Data(repeating: 0xA5, count: 32 << 20)
            try await storage.store(StorageEntry(.raw(data), date: nil), for: StorageKey(identifier: "big"))
            #expect(try await storage.entry(for: StorageKey(identifier: "big"))?.data == data)
            try await storage.store(
                StorageEntry(.raw(Data("0123456789".utf8)[3..<6]), date: nil), for: StorageKey(identifier: "slice"))
            let slice = try #require(try await storage.entry(for: StorageKey(identifier: "slice"))?.data)
            #expect(slice == Data("345".utf8))
            #expect(slice.startIndex == 0)
        }
    }

    @Test("A new entry replaces the old one")
    func replacing() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder, durability: .power)
            let key = StorageKey(identifier: "a")
            for text in ["a long first value", "second", ""] {
                try await storage.store(StorageEntry(.value(Data(text.utf8)), date: nil), for: key)
                #expect(try await storage.entry(for: key)?.data == Data(text.utf8))
            }
            #expect(try names(in: folder) == [key.fileName + ".entry"])
        }
    }

    @Test("A bare file contains only the data, and data that another process writes is read")
    func bare() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder, prefix: "list-", format: .bare)
            let key = StorageKey(identifier: "a")
            try await storage.store(
                StorageEntry(.value(Data("[1]".utf8)), date: Date(timeIntervalSince1970: 0)), for: key)
            let file = folder.appendingPathComponent("list-\(key.fileName).entry")
            #expect(try Data(contentsOf: file) == Data("[1]".utf8))
            try Data("[2]".utf8).write(to: file)
            let entry = try #require(try await storage.entry(for: key))
            #expect(entry.data == Data("[2]".utf8))
            #expect(entry.form == "unlabelled")
            #expect(entry.date == nil)
        }
    }

    @Test("A live value is rejected, and the old entry remains")
    func live() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            let key = StorageKey(identifier: "a")
            try await storage.store(StorageEntry(.value(Data([1])), date: nil), for: key)
            let error = await #expect(throws: WebServiceError.self) {
                try await storage.store(StorageEntry(.live(1), date: nil), for: key)
            }
            #expect(error?.code == .storage)
            #expect(try await storage.entry(for: key)?.data == Data([1]))
        }
    }

    @Test("removeAll removes only files with the prefix, including temporary files")
    func removeAll() async throws {
        try await withScratchFolder { folder in
            let name = StorageKey(identifier: "a").fileName
            let others = [
                "notes.txt", "a.entry", name, "\(name).entry2", "x\(name).entry", name.uppercased() + ".entry",
                "\(name).0123.temporary",
                "\(name).0123456789abcdeg.temporary", ".\(name).entry", "ab\(name).entry",
            ]
            let ours = ["a\(name).entry", "a\(name).0123456789abcdef.temporary"]
            let unprefixed = ["\(name).entry", "\(name).0123456789abcdef.temporary"]
            for name in others + ours + unprefixed { try Data("x".utf8).write(to: folder.appendingPathComponent(name)) }
            try await FileStorage(folder: folder, prefix: "a").removeAll()
            #expect(try names(in: folder) == (others + unprefixed).sorted())
            try await FileStorage(folder: folder).removeAll()
            #expect(try names(in: folder) == others.sorted())
        }
    }

    @Test("Storages with different prefixes share a folder but no entries")
    func prefixes() async throws {
        try await withScratchFolder { folder in
            let key = StorageKey(identifier: "a")
            let prefixes = ["", "a", "aa", "0", "a-", String(repeating: "p", count: 64)]
            let storages = try prefixes.map { try FileStorage(folder: folder, prefix: $0, maximumCount: 1) }
            for (prefix, storage) in zip(prefixes, storages) {
                try await storage.store(StorageEntry(.raw(Data(prefix.utf8)), date: nil), for: key)
            }
            for (prefix, storage) in zip(prefixes, storages) {
                #expect(try await storage.entry(for: key)?.data == Data(prefix.utf8))
            }
            try await storages[0].removeAll()
            for (prefix, storage) in zip(prefixes, storages).dropFirst() {
                #expect(try await storage.entry(for: key)?.data == Data(prefix.utf8))
            }
            #expect(try await storages[0].entry(for: key) == nil)
        }
    }

    @Test(
        "Invalid prefixes are rejected",
        arguments: ["/", "../", ".hidden", "a/b", "é", "a b", "\0", "e\u{301}", String(repeating: "p", count: 65)])
    func refusedPrefixes(prefix: String) throws {
        let error = #expect(throws: WebServiceError.self) {
            try FileStorage(folder: URL(fileURLWithPath: "/nowhere"), prefix: prefix)
        }
        #expect(error?.code == .storage)
    }

    @Test(
        "A folder URL that is not a local file URL is rejected",
        arguments: ["https://h/a", "file://host/a", "file:///%FF", "file:a", "data:,x"])
    func refusedFolders(text: String) throws {
        let url = try #require(URL(string: text))
        let error = #expect(throws: WebServiceError.self) { try FileStorage(folder: url) }
        #expect(error?.code == .storage)
    }

    @Test("Creating a storage, reading and removing entries do not create a folder")
    func lazy() async throws {
        try await withScratchFolder { parent in
            let storage = try FileStorage(folder: parent.appendingPathComponent("a/b"))
            #expect(try await storage.entry(for: StorageKey(identifier: "a")) == nil)
            try await storage.removeEntry(for: StorageKey(identifier: "a"))
            try await storage.removeAll()
            #expect(try names(in: parent) == [])
        }
    }

    @Test("The default folder is WebService in the caches folder of the user")
    func defaultFolder() throws {
        let folder = try #require(FileStorage.defaultFolder)
        #expect(folder.lastPathComponent == "WebService")
        #expect(
            folder.deletingLastPathComponent().standardizedFileURL
                == FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first?.standardizedFileURL)
    }

    @Test("64 tasks that share a folder through two storages read only complete entries")
    func concurrency() async throws {
        try await withScratchFolder { folder in
            let storages = try [FileStorage(folder: folder), FileStorage(folder: folder)]
            let keys = (0..<4).map { StorageKey(identifier: "key \($0)") }
            let seen = try await withThrowingTaskGroup(of: Int.self) { group in
                for task in 0..<64 {
                    group.addTask {
                        var seen = 0
                        for turn in 0..<20 {
                            let key = keys[(task + turn) % keys.count]
                            let storage = storages[turn % 2]
                            if turn % 4 == 3 { try await storage.removeEntry(for: key) }
                            let text = "\(key.fileName) \(task) \(String(repeating: "x", count: task * 50))"
                            try await storage.store(StorageEntry(.raw(Data(text.utf8)), date: nil), for: key)
                            guard let data = try await storages[(turn + 1) % 2].entry(for: key)?.data else { continue }
                            let words = String(decoding: data, as: UTF8.self).split(
                                separator: " ", omittingEmptySubsequences: false)
                            #expect(words.first.map(String.init) == key.fileName)
                            #expect(
                                words.dropFirst().first.flatMap { Int($0) }.map { $0 * 50 } == words.last?.utf8.count)
                            seen += 1
                        }
                        return seen
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(seen > 0)
            #expect(try names(in: folder) == keys.map { $0.fileName + ".entry" }.sorted())
        }
    }
}

extension StorageEntry {
    /// The name of the form.
    var form: String {
        switch content {
        case .raw: "raw"
        case .value: "value"
        case .unlabelled: "unlabelled"
        case .live: "live"
        }
    }
}
