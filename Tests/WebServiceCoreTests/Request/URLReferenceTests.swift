import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct URLReferenceTests {
    static let examples = [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../", "http://a/b/"),
        ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"),
    ]

    static let abnormalExamples = [
        ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
        ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/./x", "http://a/b/c/g#s/./x"), ("g#s/../x", "http://a/b/c/g#s/../x"), ("http:g", "http:g"),
    ]

    @Test("References resolve as in the 42 examples of RFC 3986, section 5.4")
    func examples() {
        let all = Self.examples + Self.abnormalExamples
        #expect(all.count == 42)
        for (reference, target) in all {
            #expect(URLReference.resolve(reference, against: "http://a/b/c/d;p?q") == target, "\(reference)")
        }
    }

    @Test(
        "Encoded characters are preserved byte for byte",
        arguments: [
            ("../ok", "http://h/dir/x", "http://h/ok"), ("ok?x=%2F", "http://h/dir/x", "http://h/dir/ok?x=%2F"),
            ("/a%2Fb", "http://h/dir/x", "http://h/a%2Fb"), ("/a%2fb%zz%", "http://h/", "http://h/a%2fb%zz%"),
            ("%2e%2e/x", "http://h/a/b", "http://h/a/%2e%2e/x"), ("x", "http://h/a%2Fb/c?q=%2F", "http://h/a%2Fb/x"),
            ("é", "http://H:80/%C3%A9/", "http://H:80/%C3%A9/é"), ("e\u{301}/..", "http://h/", "http://h/"),
            ("/\u{301}", "http://h/a", "http://h/\u{301}"),
            ("a\r\nb/./c", "http://h/", "http://h/a\r\nb/c"), ("a b\\..\\c", "http://h/", "http://h/a b\\..\\c"),
            ("{x}", "http://h/", "http://h/{x}"),
            ("HTTPS://H/A", "http://h/", "HTTPS://H/A"), ("//u:p@H:81", "https://h/x?y#z", "https://u:p@H:81"),
        ])
    func bytes(reference: String, base: String, target: String) {
        let resolved = URLReference.resolve(reference, against: base)
        #expect(resolved.map { Array($0.utf8) } == Array(target.utf8))
    }

    @Test(
        "Empty components are distinguished from missing ones",
        arguments: [
            ("", "http://h", "http://h"), ("", "http://h/x?#f", "http://h/x?"), ("?", "http://h/x?q", "http://h/x?"),
            ("#", "http://h/x?q", "http://h/x?q#"),
            ("#a#b?c", "http://h/x?q#f", "http://h/x?q#a#b?c"), ("?a?b", "http://h", "http://h?a?b"),
            ("g", "http://h", "http://h/g"),
            ("g", "http://h?q", "http://h/g"), ("..", "http://h", "http://h/"),
            ("../..", "http://h/a/b/c", "http://h/"),
            ("//", "http://h/x", "http://"),
            ("//g?y", "https://h/x", "https://g?y"), ("///x", "http://h/", "http:///x"),
            (".//x", "http://h/a", "http://h//x"),
            ("/..//x", "http://h/a", "http://h//x"), ("a//..//b", "http://h/", "http://h/a//b"),
            ("...", "http://h/", "http://h/..."),
            (":", "http://h/", "http://h/:"), ("1:x", "http://h/", "http://h/1:x"), ("a:", "http://h/", "a:"),
            ("g", "mailto:a/b", "mailto:a/g"),
            ("../../g", "mailto:a", "mailto:g"), ("..", "mailto:a/b", "mailto:/"),
        ])
    func emptyParts(reference: String, base: String, target: String) {
        #expect(URLReference.resolve(reference, against: base) == target)
    }

    @Test(
        "A path is never interpreted as an authority",
        arguments: [
            ("http:/..//evil", "http:/.//evil"), ("http:/.//evil", "http:/.//evil"),
            ("http:/x/..//evil/y", "http:/.//evil/y"),
            ("http:x/..//e", "http:/.//e"),
        ])
    func noGainedAuthority(reference: String, target: String) {
        #expect(URLReference.resolve(reference, against: "http://h/") == target)
        #expect(URLReference(target).authority == nil)
    }

    @Test(
        "No reference resolves against a base without a scheme",
        arguments: ["", "/x", "//h/x", "h", "?q", "1:x", ":", "é:x"])
    func relativeBase(base: String) {
        #expect(URLReference.resolve("http://h/", against: base) == nil)
        #expect(URLReference.resolve("x", against: base) == nil)
    }

    /// A direct but slow implementation of RFC 3986, section 5.2.4.
    private func withoutDotSegments(_ path: String) -> String {
        var input = Array(path.utf8)
        var output: [UInt8] = []
        func begins(_ text: String) -> Bool { input.starts(with: text.utf8) }
        func pop() { output = Array(output[..<(output.lastIndex(of: UInt8(ascii: "/")) ?? 0)]) }
        while !input.isEmpty {
            if begins("../") {
                input.removeFirst(3)
            } else if begins("./") {
                input.removeFirst(2)
            } else if begins("/./") {
                input.removeFirst(2)
            } else if input == Array("/.".utf8) {
                input = Array("/".utf8)
            } else if begins("/../") {
                input.removeFirst(3)
                pop()
            } else if input == Array("/..".utf8) {
                input = Array("/".utf8)
                pop()
            } else if input == Array(".".utf8) || input == Array("..".utf8) {
                input = []
            } else {
                repeat { output.append(input.removeFirst()) } while !input.isEmpty && input[0] != UInt8(ascii: "/")
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    @Test("Dot segments of random paths are removed as RFC 3986 specifies", arguments: 0..<4)
    func dotSegments(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let pieces = ["/", "/", ".", "..", "/.", "/..", "./", "../", "a", "b.", ".c", "%2e", "é", "\r\n", ";"]
        for _ in 0..<amount(1_000, thorough: 5_000) {
            let path = (0..<Int.random(in: 0...9, using: &random)).reduce(into: "") { text, _ in
                text += pieces.randomElement(using: &random) ?? ""
            }
            #expect(
                URLReference.resolve("s://h/" + path, against: "t:") == "s://h" + withoutDotSegments("/" + path),
                "\(path)")
            let rootless = withoutDotSegments("x" + path)
            #expect(
                URLReference.resolve("s:x" + path, against: "t:") == "s:" + (rootless.hasPrefix("//") ? "/." : "")
                    + rootless, "\(path)")
        }
    }

    @Test("No input traps, and a resolved reference resolves to itself", arguments: 0..<4)
    func random(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let pieces = [
            "http:", "https:", "//", "/", "?", "#", ":", "@", "[", "]", "..", ".", "%", "%2F", "\\", "\u{0}", "\r\n",
            " ", "é", "\u{301}",
            "\u{1F4A9}", "a", "h:80", "+",
        ]
        for _ in 0..<amount(1_000, thorough: 10_000) {
            let mix = (0..<2).map { _ in
                (0..<Int.random(in: 0...7, using: &random)).reduce(into: "") { text, _ in
                    text += pieces.randomElement(using: &random) ?? ""
                }
            }
            _ = URLReference.resolve(mix[0], against: mix[1])
            let base = try #require(URLReference.resolve("http://h/" + mix[1], against: "s:"))
            let target = try #require(URLReference.resolve(mix[0], against: base))
            #expect(URLReference.resolve(target, against: "s:") == target, "\(mix)")
        }
    }

    @Test(
        "A long reference is resolved correctly within the time limit",
        .permit,
        arguments: [
            ("../", "/", ""), ("a/../", "/k/", ""), ("a/b/../", "/k/", "a/"), ("/", "/k/", "/"), (".", "/k/", "."),
            ("é", "/k/", "é"),
            ("?", "/k/", "?"),
        ])
    func megabyte(piece: String, start: String, kept: String) {
        let count = amount(1 << 17, thorough: 1 << 20) / piece.utf8.count
        let reference = "/k/" + String(repeating: piece, count: count)
        #expect(
            URLReference.resolve(reference, against: "s://h") == "s://h" + start + String(repeating: kept, count: count)
        )
        let path = reference.prefix { $0 != "?" && $0 != "#" }
        #expect(URLReference.resolve("?q", against: "s://h" + reference) == "s://h\(path)?q")
    }
}
