import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The guarantee of the path rules for many inputs: the result is an error, or a URL at or below
/// the base URL.
@Suite(.permit) struct ConfinementTests {
    struct Base: Sendable {
        var text: String
        var origin: String
        var host: String
        var port: Int?
        /// The segments that the path of the result must begin with.
        var segments: [String]

        /// Returns the defect of a URL created from this base, or `nil` if the URL is below it.
        func complaint(_ url: String) -> String? {
            guard url.hasPrefix(origin) else { return "another origin" }
            let rest = url.dropFirst(origin.count)
            guard rest.isEmpty || rest.first == "/" || rest.first == "?" else { return "appended to the host" }
            guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
                !url.contains(where: { #""<>\^`{|}#[]"#.contains($0) && !origin.contains($0) })
            else {
                return "illegal bytes"
            }
            let path = rest.prefix { $0 != "?" }
            let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
            guard parts.starts(with: segments) else { return "not below the base path" }
            // The view of a careless server, which decodes first, accepts backslashes and resolves
            // dot segments.
            var followed: [[UInt8]] = []
            for part in Decoded.bytes(path).split(whereSeparator: {
                $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\")
            }) {
                if part.elementsEqual("..".utf8) { return "a parent segment remains" }
                if !part.elementsEqual(".".utf8) { followed.append(Array(part)) }
            }
            guard followed.starts(with: segments.map { Decoded.bytes($0) }.filter { !$0.isEmpty }) else {
                return "not below once decoded"
            }
            guard let parsed = URL(string: url, encodingInvalidCharacters: false) else {
                return "Foundation rejects the URL"
            }
            guard parsed.host == host, parsed.port == port, parsed.user == nil, parsed.password == nil,
                parsed.absoluteString == url
            else {
                return "Foundation parses another host"
            }
            return nil
        }
    }

    static let bases = [
        Base(text: "https://h/v1", origin: "https://h", host: "h", segments: ["v1"]),
        Base(text: "https://h/v1/", origin: "https://h", host: "h", segments: ["v1"]),
        Base(text: "http://h", origin: "http://h", host: "h", segments: []),
        Base(text: "http://h:8080/", origin: "http://h:8080", host: "h", port: 8080, segments: []),
        Base(
            text: "HTTPS://API.Example.com/a/b/c?k=1", origin: "https://api.example.com", host: "api.example.com",
            segments: ["a", "b", "c"]),
        Base(text: "http://[::1]:1/x#f", origin: "http://[::1]:1", host: "::1", port: 1, segments: ["x"]),
        Base(
            text: "https://127.0.0.1:65535/a%20b/é//", origin: "https://127.0.0.1:65535", host: "127.0.0.1",
            port: 65535,
            segments: ["a%20b", "%C3%A9"]),
        Base(text: "https://h//v1", origin: "https://h", host: "h", segments: ["", "v1"]),
        Base(text: "https://é.example?q", origin: "https://xn--9ca.example", host: "xn--9ca.example", segments: []),
    ]

    static let fragments = [
        "/", "//", "\\", "@", ":", ".", "..", "...", "%2e", "%2E", "%2f", "%5c", "%5C", "%252e", "%", "%0", "%00", "?",
        "#", " ", "\t", "\n", "\r\n",
        "\u{0}", "\u{7F}",
        "\u{1F4A9}", "e\u{301}", "é", "／", "。", "．", "＠", "\u{202E}", "\u{FEFF}", "{x}", "{", "}", "{y}", "a", "v1",
        "evil.host", "evil", ":80",
        "[::1]", ";", "&", "=", "+", "..;/",
        "../", "/..", "%2e%2e/", "..%2f", "..\\", "%c0%ae", "~", "'", "\"", "<", ">", "^", "`", "|", "$", "!", "*", ",",
        "user:pw@",
    ]

    private static func mix(upTo count: Int, _ random: inout SeededGenerator) -> String {
        (0..<Int.random(in: 0...count, using: &random)).reduce(into: "") { text, _ in
            text += fragments.randomElement(using: &random) ?? ""
        }
    }

    /// Checks the result and returns a Boolean value that indicates whether it is a URL.
    private func run(_ base: Base, _ service: WebService, _ path: String, _ values: Parameters?) -> Bool {
        do throws(WebServiceError) {
            let url = try service.request(.GET, path: path, pathParameters: values).encode().url
            if let complaint = base.complaint(url) {
                Issue.record(
                    "\(complaint): \(base.text) + \(path.debugDescription) \(values.map { "\($0)" } ?? "") = \(url)")
            }
            return true
        } catch {
            #expect(error.code == .invalidURL, "\(path.debugDescription)")
            return false
        }
    }

    @Test(
        "Random paths and values stay below their base URL or are rejected", arguments: 0..<10)
    func random(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let services = Self.bases.map { WebService(baseURLString: $0.text) }
        var accepted = 0
        let rounds = amount(1_000, thorough: 10_000)
        for round in 0..<rounds {
            let index = round % services.count
            let usesValue = Bool.random(using: &random)
            let path = Self.mix(upTo: 8, &random) + (usesValue ? "{x}" + Self.mix(upTo: 2, &random) : "")
            let values: Parameters? = usesValue ? ["x": Self.mix(upTo: 4, &random)] : nil
            if run(Self.bases[index], services[index], path, values) { accepted += 1 }
        }
        #expect(
            (rounds / 5...rounds / 10 * 9).contains(accepted),
            "both outcomes must be frequent for a meaningful test: \(accepted)")
    }

    @Test(
        "The check of this suite detects URLs outside the base URL",
        arguments: [
            "https://evil/v1", "https://h.evil/v1", "https://h@evil/v1", "https://h:80/v1", "http://h/v1",
            "https://h/v2", "https://h/v1evil",
            "https://h/", "https://h", "https://h/v1/../x",
            "https://h/v1/..", "https://h/v1/%2e%2e", "https://h/v1/a%2f..%2fb", "https://h/v1/..%5Cb",
            "https://h/v1/a b", "https://h/v1/é",
            "https://h/v1#a", "https://h/v1/{x}",
            "https://hv1", "https://h//v1", "https://h/./v1",
        ])
    func finds(url: String) throws {
        #expect(try #require(Self.bases.first).complaint(url) != nil)
    }

    @Test(
        "Strings from the traversal, redirect and injection lists stay below their base URL",
        .enabled(if: Corpora.areThere, Corpora.comment),
        arguments: [
            ("traversals-8-deep-exotic-encoding.txt", 500), ("redirect-urls-template.txt", 20),
            ("redirect-injection-template.txt", 5),
            ("path-traversal-windows.txt", 6), ("crlf-injection.txt", 20), ("hpp.txt", 30),
            ("NullByteRepresentations.txt", 5),
            ("naughty-unicode.txt", 5),
            ("right-to-left.txt", 1), ("terminal-escape-codes.txt", 1), ("corrupted.txt", 1),
        ])
    func fuzzdb(file: String, minimum: Int) throws {
        let lines = try Corpora.lines("fuzzdb/" + file).map {
            $0.replacing("{FILE}", with: "etc/passwd").replacing("{target}", with: "evil.host")
        }
        #expect(lines.count >= minimum)
        for base in Self.bases {
            let service = WebService(baseURLString: base.text)
            for line in sample(lines, every: 30, thorough: 3) {
                _ = run(base, service, line, nil)
                _ = run(base, service, "/" + line, nil)
                _ = run(base, service, "/files/{x}", ["x": line])
                _ = run(base, service, "{x}", ["x": line])
            }
        }
    }

    @Test(
        "Naughty strings stay below their base URL, and a placeholder value is preserved byte for byte",
        .enabled(if: Corpora.areThere, Corpora.comment))
    func naughtyStrings() throws {
        let strings = try Corpora.naughtyStrings()
        #expect(strings.count == 515)
        let base = try #require(Self.bases.first)
        let service = WebService(baseURLString: base.text)
        for text in strings {
            _ = run(base, service, "/" + text, nil)
            if run(base, service, "{x}", ["x": text]) {
                let url = try service.request(.GET, path: "{x}", pathParameters: ["x": text]).encode().url
                #expect(
                    Decoded.bytes(url.dropFirst("https://h/v1/".count)) == Array(text.utf8), "\(text.debugDescription)")
            } else {
                #expect(["", "."].contains(text) || text.contains(".."), "\(text.debugDescription)")
            }
        }
    }
}
