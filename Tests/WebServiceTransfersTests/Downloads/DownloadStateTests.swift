import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("States of downloads", .permit)
struct DownloadStateTests {
    static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    static let second = "Sun, 06 Nov 1994 08:49:38 GMT"

    private static func validator(_ headers: Headers) -> String? {
        DownloadState(url: "https://h/a", headers: headers).validator
    }

    @Test("Only a strong entity tag is a validator")
    func tags() {
        #expect(Self.validator(["ETag": "\"a b\""]) == nil)
        #expect(Self.validator(["ETag": "\"a-ü\""]) == "\"a-ü\"")
        #expect(Self.validator(["ETag": "\"\""]) == "\"\"")
        for tag in ["W/\"a\"", "w/\"a\"", "a", "\"", "\"a", "a\"", "", "\"a\"b\"", "\"a\", \"b\""] {
            #expect(Self.validator(["ETag": tag]) == nil, "\(tag)")
            #expect(Self.validator(["ETag": tag, "Last-Modified": Self.date, "Date": Self.second]) == Self.date)
        }
    }

    @Test("A date is a validator if it is at least one second before the response")
    func dates() {
        #expect(Self.validator(["Last-Modified": Self.date, "Date": Self.second]) == Self.date)
        #expect(Self.validator(["Last-Modified": Self.date, "Date": Self.date]) == nil)
        #expect(Self.validator(["Last-Modified": Self.second, "Date": Self.date]) == nil)
        #expect(Self.validator(["Last-Modified": Self.date]) == nil)
        #expect(Self.validator(["Last-Modified": "yesterday", "Date": Self.second]) == nil)
        #expect(Self.validator([:]) == nil)
    }

    @Test("Another query is another file, unless it is ignored and there is an entity tag")
    func urls() {
        let tagged = DownloadState(url: "https://h/a?token=1", headers: ["ETag": "\"1\""])
        let dated = DownloadState(
            url: "https://h/a?token=1", headers: ["Last-Modified": Self.date, "Date": Self.second])
        let (same, token) = (DownloadState(url: "https://h/a?token=1#f"), DownloadState(url: "https://h/a?token=2"))
        for ignoresQuery in [false, true] {
            func validator(_ state: DownloadState, _ other: DownloadState) -> String? {
                state.validator(for: other, ignoresQuery: ignoresQuery)
            }
            #expect(validator(tagged, same) == "\"1\"")
            #expect(validator(tagged, token) == (ignoresQuery ? "\"1\"" : nil))
            #expect(validator(tagged, DownloadState(url: "https://h/b?token=1")) == nil)
            #expect(validator(dated, same) == Self.date)
            #expect(validator(dated, token) == nil)
        }
    }

    @Test("A part belongs to the version if its response repeats the validator")
    func repetition() {
        let tagged = DownloadState(url: "https://h/a", headers: ["ETag": "\"1\"", "Last-Modified": Self.date])
        #expect(tagged.isRepeated(by: ["ETag": "\"1\""]))
        for headers in [[:], ["ETag": "\"2\""], ["ETag": "W/\"1\""], ["Last-Modified": Self.date]] as [Headers] {
            #expect(!tagged.isRepeated(by: headers))
        }
        let dated = DownloadState(
            url: "https://h/a", headers: ["ETag": "W/\"1\"", "Last-Modified": Self.date, "Date": Self.second])
        #expect(dated.isRepeated(by: ["Last-Modified": Self.date]))
        #expect(dated.isRepeated(by: ["Last-Modified": Self.date, "ETag": "W/\"1\""]))
        for headers in [
            [:], ["ETag": "W/\"1\""], ["Last-Modified": Self.second],
            ["Last-Modified": Self.date, "ETag": "W/\"2\""],
        ] as [Headers] {
            #expect(!dated.isRepeated(by: headers))
        }
    }

    private static let state = DownloadState(
        url: "https://h/a?canary=1",
        headers: ["ETag": "\"ü\"", "Last-Modified": date, "Date": second, "Repr-Digest": "sha-256=:AA==:"], total: .max)

    @Test("a state is the same after it was stored, and contains no URL")
    func encoding() throws {
        let bytes = try #require(Self.state.encoded)
        #expect(DownloadState(encoded: bytes) == Self.state)
        #expect(!String(decoding: bytes, as: UTF8.self).contains("canary"))
        #expect(Self.state.digest == "sha-256=:AA==:")
        #expect(Self.state.total == .max)
    }

    @Test("A state with any changed bit, any missing end and of any other version is absent")
    func damage() throws {
        let bytes = try #require(Self.state.encoded)
        for index in bytes.indices {
            #expect(DownloadState(encoded: bytes.prefix(index)) == nil)
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                #expect(DownloadState(encoded: changed) == nil)
            }
        }
        #expect(DownloadState(encoded: bytes + Data([0])) == nil)
        let foreign = Data(
            String(decoding: bytes, as: UTF8.self).replacingOccurrences(of: "download 1", with: "download 2").utf8)
        #expect(foreign.count == bytes.count)
        #expect(DownloadState(encoded: foreign) == nil)
        #expect(DownloadState(encoded: Data()) == nil)
        #expect(DownloadState(encoded: Data(repeating: 0, count: 4_096)) == nil)
    }

    @Test("a state that is too long is not stored")
    func long() {
        let tag = "\"" + String(repeating: "a", count: 5_000) + "\""
        #expect(DownloadState(url: "https://h/a", headers: ["ETag": tag]).encoded == nil)
    }
}
