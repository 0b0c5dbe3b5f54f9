import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("Names of downloaded files", .permit)
struct FileNameTests {
    @Test(
        "A hostile name is reduced to one safe component",
        arguments: [
            ("../../x", "x"), ("..\\x", "x"), ("/etc/x", "x"), ("C:\\x", "x"), ("C:x", "Cx"), ("CON", "_CON"),
            ("con.txt", "_con.txt"), ("COM1", "_COM1"), ("lpt9.tar.gz", "_lpt9.tar.gz"), ("COM", "COM"),
            ("COM10", "COM10"), ("CON .txt", "_CON .txt"), ("nul", "_nul"), (".bashrc", "bashrc"), ("a\u{0}b", "ab"),
            ("a\r\nb\u{7F}\u{85}", "ab"), ("exe\u{202E}gpj.a", "exegpj.a"), ("\u{2066}a\u{2069}\u{200F}\u{61C}", "a"),
            ("a\u{2028}b", "ab"), (" a b . ", "a b"), ("...a...", "a"), ("\u{A0}a\u{3000}", "a"),
            ("%2e%2e%2f", "%2e%2e%2f"), ("-rf", "-rf"), ("~", "~"), ("~root", "~root"), ("a?b*c|d\"", "a?b*c|d\""),
            ("e\u{301}.txt", "\u{E9}.txt"), ("file:///x/y.z", "y.z"), ("a.tar.gz", "a.tar.gz"),
        ])
    func component(name: String, expected: String) {
        #expect(FileName.component(name).map { Array($0.utf8) } == Array(expected.utf8))
    }

    @Test(
        "A name of which nothing remains is not a name",
        arguments: ["", ".", "..", " ", "/", "a/", "a\\", "../..", ":::", "\u{202E}", ". . .", "\n"])
    func empty(name: String) {
        #expect(FileName.component(name) == nil)
    }

    @Test("A long name is truncated at a character, before its extension")
    func long() throws {
        #expect(
            FileName.component(String(repeating: "a", count: 300) + ".zip") == String(repeating: "a", count: 196)
                + ".zip")
        #expect(FileName.component(String(repeating: "a", count: 200)) == String(repeating: "a", count: 200))
        let family = "👨‍👩‍👧‍👦"
        #expect(FileName.component(String(repeating: family, count: 40)) == String(repeating: family, count: 8))
        #expect(
            FileName.component("a." + String(repeating: "b", count: 300)) == "a." + String(repeating: "b", count: 198))
        let stacked = "a" + String(repeating: "\u{301}\u{327}", count: 200)
        #expect(FileName.component(stacked) == nil)
        #expect(FileName.component(stacked + ".txt") == "txt")
        #expect(
            FileName.component(String(repeating: "a", count: 195) + "    .zip") == String(repeating: "a", count: 195)
                + ".zip")
    }

    @Test("A name that is taken gets a number before its extension, and remains short")
    func numbers() {
        func names(_ name: String) -> [String] { Array(FileName.candidates(name).prefix(3)) }
        #expect(names("a.iso") == ["a.iso", "a (1).iso", "a (2).iso"])
        #expect(names("a") == ["a", "a (1)", "a (2)"])
        #expect(names("a.tar.gz") == ["a.tar.gz", "a.tar (1).gz", "a.tar (2).gz"])
        #expect(names(".profile") == [".profile", ".profile (1)", ".profile (2)"])
        #expect(names(".a.txt") == [".a.txt", ".a (1).txt", ".a (2).txt"])
        let long = String(repeating: "ä", count: 98) + ".zip"
        #expect(names(long)[1] == String(repeating: "ä", count: 96) + " (1).zip")
        #expect(Array(FileName.candidates(long)).count == 1_000)
        #expect(FileName.candidates(long).allSatisfy { $0.utf8.count <= FileName.maximumLength })
    }

    @Test("The field has precedence over the URL, and the URL over the default")
    func order() {
        func name(_ disposition: String?, _ url: String) -> String {
            FileName.suggested(disposition: disposition, url: url, default: "label")
        }
        #expect(name("attachment; filename=\"../a.pdf\"", "https://h/b.pdf") == "a.pdf")
        #expect(name("attachment; filename=\"..\"", "https://h/b.pdf") == "b.pdf")
        #expect(name("attachment", "https://h/x/b%20c.pdf?token=1#f") == "b c.pdf")
        #expect(name(nil, "https://h/x/%2e%2e%2f") == "label")
        #expect(name(nil, "https://h/x/..%2Fpasswd") == "passwd")
        #expect(name(nil, "https://h/x/%FF") == "\u{FFFD}")
        #expect(name(nil, "https://h/") == "label")
        #expect(name(nil, "https://h") == "label")
        #expect(name(nil, "https://h?a/b") == "label")
        #expect(FileName.suggested(disposition: nil, url: "https://h", default: "../") == "download")
    }
}
