import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking

@testable import WebServiceInspector

/// Corpora of secrets and of ordinary data, over all outputs that redact.
@Suite(.permit) final class SecretCorpusTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url }

    private final class Lines: Sendable {
        private let text = Mutex("")
        func add(_ line: String) { text.withLock { $0 += line + "\n" } }
        var all: String { text.withLock { $0 } }
    }

    /// Secrets in encoded URLs, two levels deep, in each place of an exchange.
    private static let nested: [SecretCorpus.Secret] = {
        let url = "https://h.example.com/in?to=%2Fa%3Fu%3Dhttps%253A%252F%252Fg%252F%253Ftoken%253Dcanary-nested"
        let text = "302 to \(url)"
        return [
            ("url", nil, nil, url), ("requestHeader", nil, "Referer", url), ("responseHeader", nil, "Location", url),
            ("responseHeader", nil, "Link", "<\(url)>; rel=\"next\""), ("responseHeader", nil, "X-Note", text),
            ("requestBody", "application/x-www-form-urlencoded", nil, "a=1&log=\(text)"),
            ("responseBody", "application/json", nil, "{\"a\":\"\(text)\"}"), ("responseBody", "text/plain", nil, text),
            ("responseBody", "text/html", nil, "<a href=\"\(url)\">b</a>"),
        ].map { place, type, name, text in
            SecretCorpus.Secret(
                id: "\(place) \(name ?? type ?? "")", place: place, contentType: type, name: name, text: text,
                base64: nil, secret: "canary-nested", contentEncoding: nil)
        }
    }()

    /// Sends a request with a secret, and returns everything that is written and shown.
    private func outputs(of entry: SecretCorpus.Secret, _ index: Int) async throws -> [String: String] {
        let inspected = InspectedService(bodyLimit: 1 << 20, memoryLimit: 1 << 24)
        let lines = Lines()
        let file = folder.appendingPathComponent("\(index).har")
        let archive = try ArchiveObserver(file: file, bodyLimit: 1 << 20)
        inspected.service.observers += [.log(.trace, bodyLimit: 1 << 20) { lines.add($0.text) }, archive]
        inspected.session.on(.any, try entry.response).optional()
        let exchange = try await inspected.send(try entry.request)
        await archive.finish()
        let changes = ExchangeChanges(inspected.store.changes(after: ChangeFeed.Position()), .standard).pageJSON
        return [
            "log": lines.all,
            "archive": try SecretCorpus.strings(Data(contentsOf: file)),
            "inspector": try SecretCorpus.strings(Data(ShownExchange(exchange, .standard).pageJSON.utf8)),
            "list": try SecretCorpus.strings(Data(changes.utf8)),
            "inspector archive": try SecretCorpus.strings(InspectorArchive([exchange], .standard).data),
        ]
    }

    @Test(
        "No secret of the corpora is in a log, an archive and the inspector",
        arguments: SecretCorpus.names("secrets"))
    func outputs(name: String) async throws {
        let entries: [SecretCorpus.Secret] = try SecretCorpus.entries(name)
        for (index, entry) in sample(entries, every: 4).enumerated() {
            for (output, text) in try await outputs(of: entry, index) {
                #expect(!text.contains(entry.secret), "\(entry.id): \(output)")
            }
        }
        #expect(entries.count >= 160)
    }

    @Test("No secret in text within text is in a log, an archive, the inspector and a cassette")
    func nestedOutputs() async throws {
        for (index, entry) in Self.nested.enumerated() {
            for (output, text) in try await outputs(of: entry, index) {
                #expect(!text.contains(entry.secret), "\(entry.id): \(output)")
            }
            let mock = MockSession()
            mock.on(.any, try entry.response).optional()
            let file = folder.appendingPathComponent("\(index).json")
            let cassette = try CassetteSession(file: file, mode: .record, session: mock)
            let service = WebService("https://h.example.com", session: cassette)
            _ = await service.sessionTask(request: try entry.request).data().result
            try cassette.finish()
            let text = try SecretCorpus.strings(Data(contentsOf: file))
            #expect(!text.contains(entry.secret), "\(entry.id): cassette")
            #expect(text.contains("redacted-1"), "\(entry.id): cassette")
        }
    }

    @Test(
        "No secret of the corpora is in a cassette, and only unknown types are refused",
        arguments: SecretCorpus.names("secrets"))
    func cassettes(name: String) async throws {
        let entries: [SecretCorpus.Secret] = try SecretCorpus.entries(name)
        var tokens = 0
        for (index, entry) in sample(entries, every: 4).enumerated() {
            let mock = MockSession()
            mock.on(.any, try entry.response).optional()
            let file = folder.appendingPathComponent("\(index).json")
            let cassette = try CassetteSession(file: file, mode: .record, session: mock)
            let service = WebService("https://h.example.com", session: cassette)
            _ = await service.sessionTask(request: try entry.request).data().result
            do {
                try cassette.finish()
            } catch let error as WebServiceError where error.code == .cassetteSecret {
                let isUnsearched = error.message.contains("cannot be recognized")
                #expect(!isUnsearched || entry.isUnknown, "\(entry.id) is refused")
                if !isUnsearched { tokens += 1 }
                continue
            }
            let text = try SecretCorpus.strings(Data(contentsOf: file))
            #expect(!text.contains(entry.secret), "\(entry.id)")
        }
        // Recordings in which another value looks like a token.
        #expect(tokens <= entries.count / 20)
    }

    @Test(
        "Ordinary data of the corpora remains byte for byte, also in a replay",
        arguments: SecretCorpus.names("harmless"))
    func harmless(name: String) async throws {
        let entries: [SecretCorpus.Harmless] = try SecretCorpus.entries(name)
        var tokens = 0
        for (index, entry) in sample(entries, every: 4).enumerated() {
            let data = Data(entry.text.utf8)
            let shown = Redaction.standard.body(data, contentType: entry.contentType)
            #expect(shown.map { Data($0.utf8) } == data, "\(entry.id)")
            let mock = MockSession()
            var response = MockResponse(statusCode: 200, data: data)
            if let type = entry.contentType { response.headers[.contentType] = type }
            mock.on(.any, response)
            let file = folder.appendingPathComponent("\(index).json")
            for mode in [CassetteSession.Mode.record, .replay] {
                let cassette = try CassetteSession(file: file, mode: mode, session: mock)
                let service = WebService("https://h.example.com", session: cassette)
                #expect(try await service.GET("/a").data().value == data, "\(entry.id)")
                do { try cassette.finish() } catch let error as WebServiceError where error.code == .cassetteSecret {
                    #expect(error.message.contains("a value that looks like a token"), "\(entry.id)")
                    tokens += 1
                    break
                }
            }
        }
        #expect(entries.count >= 160)
        // Random values that the caller would have to allow.
        #expect(tokens <= entries.count / 20)
    }
}
