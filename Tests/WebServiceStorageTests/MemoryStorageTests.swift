import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceStorage

@Suite("MemoryStorage", .permit)
struct MemoryStorageTests {
    private func entry(_ text: String) -> StorageEntry { StorageEntry(.raw(Data(text.utf8)), date: nil) }
    private func key(_ text: String) -> StorageKey { StorageKey(identifier: text) }

    @Test("Any string is an identifier, and identifiers are compared by their bytes")
    func identifiers() throws {
        let storage = MemoryStorage()
        let identifiers = [
            "é", "e\u{301}", "A", "a", "", "../../x", "/etc/x", "..", "a\0b", "a", "~",
            String(repeating: "x", count: 300),
        ]
        for (index, identifier) in identifiers.enumerated() {
            try storage.store(entry("\(index)"), for: key(identifier))
        }
        #expect(storage.count == 11)
        #expect(storage.entry(for: key("é"))?.data == Data("0".utf8))
        #expect(storage.entry(for: key("e\u{301}"))?.data == Data("1".utf8))
        #expect(storage.entry(for: key("A"))?.data == Data("2".utf8))
        #expect(storage.entry(for: key("a"))?.data == Data("9".utf8))
    }

    @Test("Keys with different parts are different even if the concatenated parts are equal")
    func parts() {
        let keys = [
            StorageKey(identifier: "bc", classification: DataClassification("a")),
            StorageKey(identifier: "c", classification: DataClassification("ab")),
            StorageKey(identifier: "c", classification: DataClassification("a"), account: "b"),
            StorageKey(identifier: "", classification: DataClassification("a"), account: "bc"),
            StorageKey(identifier: "x"),
            StorageKey(identifier: "x", account: ""),
        ]
        #expect(Set(keys).count == keys.count)
        #expect(Set(keys.map(\.fileName)).count == keys.count)
    }

    @Test("An entry without bytes is an entry")
    func empty() throws {
        let storage = MemoryStorage()
        try storage.store(entry(""), for: key("a"))
        #expect(storage.entry(for: key("a"))?.data == Data())
        #expect(storage.entry(for: key("b")) == nil)
    }

    @Test("The most recently used entries remain within both limits after storing ten times as many")
    func limits() throws {
        let storage = MemoryStorage(maximumCount: 100, maximumBytes: 1 << 20)
        for number in 0..<1_000 {
            try storage.store(entry("\(number)"), for: key("\(number)"))
            if number >= 50 { #expect(storage.entry(for: key("50")) != nil || number == 50) }
        }
        #expect(storage.count == 100)
        #expect(storage.entry(for: key("50")) != nil)
        #expect(storage.entry(for: key("999")) != nil)
        #expect(storage.entry(for: key("899")) == nil)

        let small = MemoryStorage(maximumBytes: 10_000)
        for number in 0..<1_000 { try small.store(entry(String(repeating: "x", count: 90)), for: key("\(number)")) }
        #expect(small.bytes <= 10_000)
        #expect(small.bytes > 9_800)
    }

    @Test("An entry that exceeds the limit is a typed error, and the old one remains")
    func tooLarge() throws {
        let storage = MemoryStorage(maximumBytes: 100)
        try storage.store(entry("old"), for: key("a"))
        let error = #expect(throws: WebServiceError.self) {
            try storage.store(entry(String(repeating: "x", count: 100)), for: key("a"))
        }
        #expect(error?.code == .entryTooLarge)
        #expect(storage.entry(for: key("a"))?.data == Data("old".utf8))
        storage.removeEntry(for: key("a"))
        #expect(storage.bytes == 0)
    }

    @Test("An entry of exactly the maximum size is stored, and one byte more is an error")
    func exactFit() throws {
        let size = key("a").bytes.count + 10
        let storage = MemoryStorage(maximumBytes: size)
        try storage.store(entry("0123456789"), for: key("a"))
        #expect(storage.bytes == size)
        #expect(storage.count == 1)
        #expect(throws: WebServiceError.self) { try storage.store(entry("0123456789x"), for: key("a")) }
        #expect(storage.entry(for: key("a"))?.data == Data("0123456789".utf8))
    }

    @Test("The counts are correct after storing many keys with a limit")
    func manyKeys() throws {
        let limit = amount(2_000, thorough: 20_000)
        let storage = MemoryStorage(maximumCount: limit, maximumBytes: .max)
        for number in 0..<limit * 10 { try storage.store(entry("x"), for: key("\(number)")) }
        #expect(storage.count == limit)
        storage.removeAll()
        #expect(storage.count == 0)
        #expect(storage.bytes == 0)
    }

    @Test("Entries remain intact while eight threads store, read and remove them")
    func threads() {
        let storage = MemoryStorage(maximumCount: 50)
        Thread.concurrently(8) { thread in
            for number in 0..<2_000 {
                let key = StorageKey(identifier: "\((thread * 7 + number) % 80)")
                switch number % 5 {
                case 0: storage.removeEntry(for: key)
                case 1, 2:
                    let entry = StorageEntry(.raw(key.bytes.withUnsafeBytes { Data($0) }), date: nil)
                    try? storage.store(entry, for: key)  // the entry is never too large
                default:
                    if let data = storage.entry(for: key)?.data { #expect(Array(data) == key.bytes) }
                }
            }
        }
        #expect(storage.count <= 50)
    }
}

@Suite("XXH64", .permit)
struct XXHash64Tests {
    /// The expected values are those of the reference implementation (`xxhsum -H1`) and its tests.
    @Test(
        "A hash matches the reference implementation",
        arguments: [
            ("", 0xef46_db37_51d8_e999 as UInt64), ("a", 0xd24e_c4f1_a98c_6e5b), ("abc", 0x44bc_2cf5_ad77_0999),
            ("The quick brown fox jumps over the lazy dog", 0x0b24_2d36_1fda_71bc),
            ("0123456789abcdef0123456789abcdef", 0x642a_9495_8e71_e6c5),
        ])
    func vectors(_ text: String, _ hash: UInt64) {
        #expect(Array(text.utf8).withUnsafeBytes { XXHash64.hash($0) } == hash)
    }

    @Test("The hashes of all lengths up to 40 match the reference implementation")
    func lengths() {
        let hashes = """
            ef46db3751d8e999 5c80c09683041123 d9de3a08201733ee 3c3750d957b59c9b 97062684a9165cb8 1b1381fb6f12b0bd 9e6dbacfd198e764 57abb58a45ee501a
            f3844dcda4eeabbf bde863450fda5c72 ac77de0d7504060a 021b787f3ea40675 282738a998dbbd4e 87e11847a349b1bc 4738588fdb07f5a6 093f6c0ea54b9e89
            0572ac5bed1c5a11 2215cf593832a5ee 474dc7c63a5468d4 2195c825e753fca7 18330abd374ccf12 a32d3aa97259839d 75e602e103ddc3b6 578b5f2615838d4c
            709d3d0b82ee15f9 c0aaeb18b7725dc6 642f87a784cdd6c5 4a482ec8e1cacb8a 55f6e519ba38e40e d26f45a4bafa31f2 9a422ffddce73389 60dd0d01083b99f0
            e2df261fc2ec30eb b3fa465f554208a6 dd4a590fadb27347 8c637da9e0d8ff9f 9db3828ba5cbfcb5 1e580c475bdc5381 289a0418db4879e7 406bb8d63d7e1ac0
            926f564e1b3e18d5
            """
        for (length, hash) in hashes.split(whereSeparator: \.isWhitespace).enumerated() {
            #expect(
                [UInt8](repeating: 0x78, count: length).withUnsafeBytes { XXHash64.hash($0) } == UInt64(hash, radix: 16)
            )
        }
    }

    @Test(
        "Each naughty string is a distinct identifier, classification and account",
        .enabled(if: Corpora.areThere, Corpora.comment))
    func naughtyKeys() throws {
        let strings = Array(Set(try Corpora.naughtyStrings().map { Data($0.utf8) })).map {
            String(decoding: $0, as: UTF8.self)
        }
        let storage = MemoryStorage(maximumCount: 10_000)
        func keys(_ text: String) -> [StorageKey] {
            [
                StorageKey(identifier: text), StorageKey(identifier: "i", classification: DataClassification(text)),
                StorageKey(identifier: "i", account: text),
            ]
        }
        for string in strings {
            for (place, key) in keys(string).enumerated() {
                try storage.store(StorageEntry(.raw(Data("\(place)\(string)".utf8)), date: nil), for: key)
            }
        }
        #expect(storage.count == 3 * strings.count)
        #expect(strings.count > 490)
        for string in strings {
            for (place, key) in keys(string).enumerated() {
                #expect(storage.entry(for: key)?.data == Data("\(place)\(string)".utf8))
            }
        }
    }
}
