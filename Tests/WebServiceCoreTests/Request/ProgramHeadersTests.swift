import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Header fields of the program", .permit)
struct ProgramHeadersTests {
    private let version = OperatingSystemVersion(majorVersion: 6, minorVersion: 1, patchVersion: 9)

    private func agent(_ info: [String: Any], process: String = "brewd") -> String? {
        Headers(info: info, process: process, system: version, languages: [])[.userAgent]
    }

    private func languages(_ languages: [String]) -> String? {
        Headers(info: [:], process: "brewd", system: version, languages: languages)[.acceptLanguage]
    }

    /// The name of the system in the values.
    private var system: String {
        #if os(Linux)
        "Linux 6.1"
        #else
        "macOS 6.1"
        #endif
    }

    @Test("The user agent is name, version, identifier, build and system, without what is unknown")
    func agents() {
        let info = [
            "CFBundleExecutable": "BrewApp", "CFBundleShortVersionString": "2.1", "CFBundleVersion": "7",
            "CFBundleIdentifier": "com.example.brew",
        ]
        #expect(agent(info) == "BrewApp/2.1 (com.example.brew; build 7; \(system)) WebService")
        #expect(agent([:]) == "brewd (\(system)) WebService")
        #expect(agent(["CFBundleVersion": 7, "CFBundleExecutable": Data()]) == "brewd (\(system)) WebService")
        #expect(agent([:], process: "") == "(\(system)) WebService")
        #expect(agent(["CFBundleShortVersionString": "3"], process: "ales") == "ales/3 (\(system)) WebService")
    }

    @Test("No value of an Info.plist ends a product, a comment or a line")
    func injection() throws {
        let hostile = [
            "ale\r\nX-Evil: 1", "ale\0", "bi\u{E8}re \u{1F37A}", "a)b(c;d\\e\"f", "\u{7F}\u{85}\u{2028}x",
            String(repeating: "a", count: 100_000), "\r\n", "\u{E8}", " ale/1 ",
        ]
        for text in hostile {
            let info = [
                "CFBundleExecutable": text, "CFBundleShortVersionString": text, "CFBundleVersion": text,
                "CFBundleIdentifier": text,
            ]
            let sent = try #require(agent(info, process: text))
            #expect(sent.utf8.allSatisfy { (0x20..<0x7F).contains($0) })
            #expect(sent.utf8.count <= 350)
            #expect(sent.filter { $0 == "(" }.count == 1)
            #expect(sent.hasSuffix("; \(system)) WebService") || sent.hasSuffix("(\(system)) WebService"))
            #expect(Request.isUnchangedFieldValue(sent))
        }
        #expect(
            agent(["CFBundleExecutable": "Bi\u{E8}re\r\n App", "CFBundleVersion": "(7;8)"])
                == "Bi-re---App (build -7-8-; \(system)) WebService")
    }

    @Test("At most six languages are sent in order, and no field without a language")
    func acceptedLanguages() {
        #expect(languages([]) == nil)
        #expect(languages(["C", "", "POSIX", "en_US", "de-", "a b", "de\r\nX: 1", "d\u{E9}", "12-de"]) == nil)
        #expect(languages(["de-DE"]) == "de-DE")
        #expect(languages(["C", "zh-Hant-TW", "en", "fil"]) == "zh-Hant-TW, en;q=0.9, fil;q=0.8")
        #expect(
            languages(["aa", "bb", "cc", "dd", "ee", "ff", "gg"])
                == "aa, bb;q=0.9, cc;q=0.8, dd;q=0.7, ee;q=0.6, ff;q=0.5")
        #expect(
            languages(["en-" + String(repeating: "a", count: 9), "en-a-" + String(repeating: "b-", count: 40)]) == nil)
    }

    @Test("The configuration of a session with these fields adds no credentials")
    func credentials() throws {
        #expect(Headers.program[.userAgent]?.hasSuffix(" WebService") == true)
        let configuration = FoundationSession.defaultConfiguration
        #expect(configuration.httpAdditionalHeaders as? [String: String] == Headers.program.combined())
        let url = try #require(URL(string: "https://h/"))
        #expect(!FoundationSession(configuration: configuration).addsCredentials(to: url))
        configuration.httpAdditionalHeaders?["X-Key"] = "canary"
        #expect(FoundationSession(configuration: configuration).addsCredentials(to: url))
    }
}
