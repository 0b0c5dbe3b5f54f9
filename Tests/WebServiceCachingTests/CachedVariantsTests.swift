import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("Stored variants", .permit)
struct CachedVariantsTests {
    private let key = StorageKey(identifier: "GET https://h/", account: "a")

    private func variants() throws -> CachedVariants {
        var request = Request(url: "https://h/")
        var variants = CachedVariants()
        for language in ["de", "en"] {
            request.headers[.acceptLanguage] = language
            let stored = try CachedResponseTests.stored(
                ["Vary": "Accept-Language", "ETag": "\"\(language)\"", "X-Empty": "", "X-Text": "Grüße"],
                status: language == "de" ? 200 : 404,
                received: 1.5, request: request, account: nil, body: "body \(language)")
            variants.insert(stored, for: request)
        }
        return variants
    }

    @Test("Stored variants are restored unchanged")
    func roundTrip() throws {
        let variants = try variants()
        let read = try #require(CachedVariants(variants.data(for: key), for: key))
        #expect(read.responses.count == 2)
        for (old, new) in zip(variants.responses, read.responses) {
            #expect(old.status == new.status)
            #expect(old.headers == new.headers)
            #expect(old.body.data == new.body.data)
            #expect(new.body.data.startIndex == 0)
            #expect(old.body.file == new.body.file)
            #expect(old.requestTime == new.requestTime)
            #expect(old.responseTime == new.responseTime)
            #expect(old.selection == new.selection)
        }
        #expect(CachedVariants(CachedVariants().data(for: key), for: key)?.responses.isEmpty == true)
    }

    @Test("An entry that is truncated, extended, changed in any byte or stored for another key is invalid")
    func damage() throws {
        let data = try variants().data(for: key)
        for count in 0..<data.count { #expect(CachedVariants(data.prefix(count), for: key) == nil) }
        #expect(CachedVariants(data + [0], for: key) == nil)
        for index in 0..<data.count {
            var damaged = data
            damaged[index] ^= 0x10
            #expect(CachedVariants(damaged, for: key) == nil, "byte \(index)")
        }
        #expect(CachedVariants(data, for: StorageKey(identifier: "GET https://h/", account: "b")) == nil)
    }

    @Test("Invalid lengths in an entry with a valid checksum do not trap or add variants")
    func lies() throws {
        let data = try variants().data(for: key)
        for index in 0..<(data.count - 8) {
            var lying = data.dropLast(8)
            lying[index] = 0xFF
            let sum = lying.withUnsafeBytes { XXHash64.hash($0) }
            withUnsafeBytes(of: sum.littleEndian) { lying.append(contentsOf: $0) }
            let read = CachedVariants(lying, for: key)
            #expect(read.map { $0.responses.count <= 2 } ?? true)
        }
    }

    /// Returns the content followed by its checksum.
    private func sealed(_ content: Data) -> Data {
        let sum = content.withUnsafeBytes { XXHash64.hash($0) }
        return withUnsafeBytes(of: sum.littleEndian) { content + Data($0) }
    }

    @Test(
        "An entry with too many variants or trailing bytes is invalid even with a valid checksum"
    )
    func surplus() throws {
        let begin = 4 + 8 + key.bytes.count  // the magic bytes and the key; the number of variants follows
        var eight = CachedVariants()
        var one = CachedVariants()
        for number in 0...8 {
            var request = Request(url: "https://h/")
            request.headers["X-N"] = "\(number)"
            let stored = try CachedResponseTests.stored(["Vary": "X-N"], request: request)
            if number < 8 { eight.insert(stored, for: request) } else { one.insert(stored, for: request) }
        }
        let content = eight.data(for: key).dropLast(8)
        #expect(CachedVariants(sealed(content), for: key)?.responses.count == 8)
        #expect(CachedVariants(sealed(content + [0]), for: key) == nil)
        // Up to 8 responses to GET, and up to 8 to QUERY.
        var more = content + content.dropFirst(begin + 8)
        more[begin] = 16
        #expect(CachedVariants(sealed(more), for: key)?.responses.count == 16)
        more += one.data(for: key).dropLast(8).dropFirst(begin + 8)
        more[begin] = 17
        #expect(CachedVariants(sealed(more), for: key) == nil)
    }

    @Test("The most recent of several matching variants is used (RFC 9111, section 4.1)")
    func lastOfSeveral() throws {
        var request = Request(url: "https://h/")
        var variants = CachedVariants()
        request.headers["Accept"] = "1"
        variants.insert(try CachedResponseTests.stored(["Vary": "Accept"], request: request, body: "old"), for: request)
        request.headers["Accept"] = "2"
        variants.insert(try CachedResponseTests.stored([:], request: request, body: "new"), for: request)
        request.headers["Accept"] = "1"
        #expect(variants.responses.count == 2)
        #expect(variants.match(request)?.body.data == Data("new".utf8))
    }

    @Test("A variant replaces the one for the same request, although their salts differ")
    func sameSelection() throws {
        var request = Request(url: "https://h/")
        request.headers["X-A"] = "1"
        var variants = CachedVariants()
        for body in ["old", "new"] {
            variants.insert(
                try CachedResponseTests.stored(["Vary": "X-A"], request: request, body: body), for: request)
        }
        #expect(variants.responses.map(\.body.data) == [Data("new".utf8)])
    }

    @Test("An entry does not contain the values of its selecting fields")
    func noValues() throws {
        var request = Request(url: "https://h/")
        request.headers = ["Authorization": "Bearer canary", "X-Key": "canary"]
        let stored = try CachedResponseTests.stored(["Vary": "X-Key, Authorization"], request: request)
        var variants = CachedVariants()
        variants.insert(stored, for: request)
        let data = variants.data(for: key)
        #expect(data.range(of: Data("x-key".utf8)) != nil)
        #expect(data.range(of: Data("canary".utf8)) == nil)
        #expect(stored.selection.matches(request))
        request.headers["X-Key"] = "other"
        #expect(!stored.selection.matches(request))
    }

    @Test("An entry has at most 8 variants, and the oldest ones are removed")
    func limit() throws {
        var variants = CachedVariants()
        var request = Request(url: "https://h/")
        for number in [0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9] {
            request.headers["X-N"] = "\(number)"
            variants.insert(
                try CachedResponseTests.stored(["Vary": "X-N", "X-Number": "\(number)"], request: request), for: request
            )
        }
        #expect(variants.responses.map { $0.headers["X-Number"] } == ["3", "4", "5", "6", "7", "0", "8", "9"])
    }

    @Test(
        "A variant matches a request with equal selecting fields",
        arguments: [
            ("X-A", ["X-A": "1"], ["x-a": " 1 "], true), ("x-a", ["X-A": "1"], ["X-A": "2"], false),
            ("X-A", ["X-A": "1"], [:], false),
            ("X-A", [:], ["X-A": "1"], false), ("X-A", [:], ["X-B": "1"], false), ("X-A", [:], ["Accept": "1"], true),
            ("X-A", ["X-A": ""], [:], false),
            ("X-A, X-B", ["X-B": "1"], ["X-B": "1"], true),
            ("X-A, X-B", ["X-A": "1", "X-B": "2"], ["X-B": "1", "X-A": "2"], false),
            ("X-A", ["X-A": "1,2"], ["X-A": "1, 2"], false),
            ("Accept-Language", ["Accept-Language": "en, de"], ["Accept-Language": "EN,de"], true),
            ("Accept-Language", ["Accept-Language": "en, de"], ["Accept-Language": "de, en"], false),
            ("Accept-Charset", ["Accept-Charset": "utf-8, x"], ["Accept-Charset": "UTF-8,X"], true),
            ("Accept-Encoding", ["Accept-Encoding": "gzip;q=1, br"], ["Accept-Encoding": "GZIP; q=1,br"], true),
            ("X-A", ["Authorization": "1"], ["Authorization": "2"], false), ("X-A", ["Cookie": "1"], [:], false),
            ("X-A", ["Authorization": "1"], ["Authorization": "1"], true),
        ] as [(String, Headers, Headers, Bool)])
    func selection(vary: String, stored: Headers, asked: Headers, matches: Bool) throws {
        var request = Request(url: "https://h/")
        request.headers = stored
        let response = try CachedResponseTests.stored(["Vary": vary], request: request)
        request.headers = asked
        #expect(response.selection.matches(request) == matches)
    }
}
