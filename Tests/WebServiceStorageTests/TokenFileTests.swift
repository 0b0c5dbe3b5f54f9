import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceStorage

@Suite("Token file", .permit)
struct TokenFileTests {
    /// Reverses the bytes, and rejects those of another key.
    private struct ReversingCipher: StorageCipher {
        let key: UInt8

        func seal(_ data: Data, authenticating context: Data) throws -> Data { Data([key] + data.reversed()) }

        func open(_ sealed: Data, authenticating context: Data) throws -> Data {
            guard sealed.first == key else { throw CocoaError(.coderInvalidValue) }
            return Data(sealed.dropFirst().reversed())
        }
    }

    private let folder = TemporaryFolder.forTest()
    private var file: URL { folder.url.appendingPathComponent("account/tokens") }
    private let old = TokenFile.Tokens(.bearer("a1"), refreshToken: "r1")
    private let new = TokenFile.Tokens(.bearer("a2"), refreshToken: "r2")

    @Test("Tokens are read by another object, with all their parts")
    func parts() async throws {
        let credential = Credential(header: "X-Key", value: "k", expires: Date(timeIntervalSince1970: 1_800_000_000.5))
        let tokens = TokenFile.Tokens(credential, refreshToken: "r", scopes: ["read", "write"])
        try await TokenFile(file).store(tokens)
        #expect(try await TokenFile(file).tokens() == tokens)
    }

    @Test("Only the user can access the file and its folder")
    func modes() async throws {
        try await TokenFile(file).store(old)
        #expect(try mode(of: file) == 0o600)
        #expect(try mode(of: file.deletingLastPathComponent()) == 0o700)
    }

    @Test("Tokens that another object stores are read without a new object")
    func changes() async throws {
        let reader = try TokenFile(file)
        #expect(try await reader.credential() == nil)
        try await TokenFile(file).store(old)
        #expect(try await reader.credential() == old.credential)
        try await TokenFile(file).store(new)
        #expect(try await reader.credential() == new.credential)
        try await TokenFile(file).remove()
        #expect(try await reader.credential() == nil)
    }

    @Test("Descriptions contain neither the credential nor the refresh token")
    func descriptions() {
        let texts = [
            "\(old)", String(reflecting: old), String(describing: Mirror(reflecting: old).children.map(\.value)),
        ]
        #expect(!texts.contains { $0.contains("a1") || $0.contains("r1") })
    }

    @Test("A file with a cipher contains no token, and is not read with another key")
    func cipher() async throws {
        try await TokenFile(file, cipher: ReversingCipher(key: 1)).store(old)
        #expect(try !Data(contentsOf: file).contains(Data("a1".utf8)))
        #expect(try await TokenFile(file, cipher: ReversingCipher(key: 1)).tokens() == old)
        for other in [try TokenFile(file, cipher: ReversingCipher(key: 2)), try TokenFile(file)] {
            let error = await #expect(throws: WebServiceError.self) { _ = try await other.tokens() }
            #expect(error?.code == .storage)
        }
    }

    @Test("Without a URL of a local file, the initializer throws", arguments: ["https://a.example/b", "data:,"])
    func remote(_ url: String) throws {
        let error = #expect(throws: WebServiceError.self) { try TokenFile(#require(URL(string: url))) }
        #expect(error?.code == .storage)
    }

    @Test("A damaged, foreign or linked file is an error until other tokens are stored", arguments: 0..<4)
    func damaged(_ kind: Int) async throws {
        try await TokenFile(file).store(new)
        let other = try folder.file("other", Data(contentsOf: file))
        switch kind {
        case 0: try Data().write(to: file)
        case 1: try Data("webservice-tokens 2 ".utf8).write(to: file)
        case 2: try Data((Data(contentsOf: file) + [0])).write(to: file)
        default:
            try FileManager.default.removeItem(at: file)
            try FileManager.default.createSymbolicLink(at: file, withDestinationURL: other)
        }
        let tokens = try TokenFile(file)
        let error = await #expect(throws: WebServiceError.self) { _ = try await tokens.tokens() }
        #expect(error?.code == .storage)
        try await tokens.store(old)
        #expect(try await tokens.tokens() == old)
        #expect(try await TokenFile(other).tokens() == new)
    }

    // MARK: - Refresh

    @Test("Concurrent refreshes over several objects obtain tokens once")
    func together() async throws {
        let count = Collected<TokenFile.Tokens>()
        let files = try (0..<5).map { _ in
            try TokenFile(file) { old in
                count.add(old)
                await Task.yield()
                return new
            }
        }
        try await files[0].store(old)
        try await withThrowingTaskGroup(of: Credential?.self) { group in
            for number in 0..<50 { group.addTask { try await files[number % 5].refresh(old.credential) } }
            for try await credential in group { #expect(credential == new.credential) }
        }
        #expect(count.values == [old])
        #expect(try await TokenFile(file).tokens() == new)
    }

    @Test("Tokens that another process has refreshed are used, unless they have expired", arguments: [false, true])
    func refreshedElsewhere(_ hasExpired: Bool) async throws {
        let clock = WebServiceMocking.TestClock()
        let tokens = try TokenFile(file, clock: clock) { _ in new }
        let stored = Credential.bearer("a3", expiresIn: .seconds(60), from: clock.date)
        try await TokenFile(file).store(.init(stored, refreshToken: "r3"))
        if hasExpired { await clock.advance(by: .seconds(60)) }
        #expect(try await tokens.refresh(old.credential) == (hasExpired ? new.credential : stored))
    }

    @Test("Without tokens, and without new ones, a refresh returns nil")
    func impossible() async throws {
        #expect(try await TokenFile(file) { _ in new }.refresh(nil) == nil)
        try await TokenFile(file).store(old)
        #expect(try await TokenFile(file).refresh(old.credential) == nil)
        #expect(try await TokenFile(file).tokens() == old)
    }

    @Test("A refresh that fails throws its error and keeps the tokens")
    func failure() async throws {
        let tokens = try TokenFile(file) { _ in throw CocoaError(.userCancelled) }
        try await tokens.store(old)
        await #expect(throws: CocoaError.self) { try await tokens.refresh(old.credential) }
        #expect(try await tokens.tokens() == old)
    }

    @Test("A log-out during a refresh wins")
    func logOut() async throws {
        let tokens = try TokenFile(file) { [file] _ in
            try await TokenFile(file).remove()
            return new
        }
        try await tokens.store(old)
        #expect(try await tokens.refresh(old.credential) == nil)
        #expect(try await tokens.tokens() == nil)
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }

    @Test("A log-in during a refresh wins")
    func logIn() async throws {
        let login = TokenFile.Tokens(.bearer("a9"))
        let tokens = try TokenFile(file) { [file] _ in
            try await TokenFile(file).store(login)
            return new
        }
        try await tokens.store(old)
        #expect(try await tokens.refresh(old.credential) == login.credential)
        #expect(try await tokens.tokens() == login)
    }

    @Test("Tokens that cannot be written are used until others are stored")
    func unwritten() async throws {
        let obstacle = URL(fileURLWithPath: file.path + ".temporary")
        let tokens = try TokenFile(file) { _ in
            try FileManager.default.createDirectory(at: obstacle, withIntermediateDirectories: true)
            return new
        }
        try await tokens.store(old)
        #expect(try await tokens.refresh(old.credential) == new.credential)
        #expect(try await tokens.tokens() == new)
        #expect(try await TokenFile(file).tokens() == old)
        try FileManager.default.removeItem(at: obstacle)
        try await tokens.store(old)
        #expect(try await tokens.tokens() == old)
    }

    @Test("After a removal that fails, the object returns no tokens until others are stored")
    func unremoved() async throws {
        let obstacle = URL(fileURLWithPath: file.path + ".temporary")
        let tokens = try TokenFile(file)
        try await tokens.store(old)
        try FileManager.default.createDirectory(at: obstacle, withIntermediateDirectories: true)
        let error = await #expect(throws: WebServiceError.self) { try await tokens.remove() }
        #expect(error?.code == .storage)
        #expect(try await tokens.tokens() == nil)
        try FileManager.default.removeItem(at: obstacle)
        try await tokens.store(new)
        #expect(try await tokens.tokens() == new)
    }

    @Test("Cancelling the Swift task ends the wait for another refresh")
    func cancelled() async throws {
        let (began, ended) = (Collected<Int>(), Collected<Int>())
        let first = try TokenFile(file) { _ in
            began.add(0)
            await ended.wait()
            return new
        }
        try await first.store(old)
        let refresh = Task { try await first.refresh(old.credential) }
        await began.wait()
        let second = Task { [file] in try await TokenFile(file).refresh(old.credential) }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        ended.add(0)
        #expect(try await refresh.value == new.credential)
    }

    // MARK: - Processes

    /// A server that rejects each access token after five requests, and each refresh token after
    /// one.
    private final class TokenServer: Sendable {
        struct State {
            var number = 1
            var uses = 0
            var rejectedRefreshes = 0
        }

        let state = Mutex(State())

        func response(to request: ReceivedRequest) -> MockResponse {
            state.withLock { state in
                if request.target == "/token" {
                    guard String(decoding: request.body, as: UTF8.self) == "refresh_token=r\(state.number)" else {
                        state.rejectedRefreshes += 1
                        return .status(400)
                    }
                    state.number += 1
                    state.uses = 0
                    return .json(["access_token": "a\(state.number)", "refresh_token": "r\(state.number)"])
                }
                guard request.headers["Authorization"] == "Bearer a\(state.number)", state.uses < 5 else {
                    return .status(401)
                }
                state.uses += 1
                return .status(200)
            }
        }
    }

    @Test("Processes with one file never send a refresh token twice")
    func processes() async throws {
        let tokens = TokenServer()
        let server = try MockServer.forTest { tokens.response(to: $0) }
        try await TokenFile(file).store(old)
        let port = try #require(URL(string: server.baseURLString)?.port)
        let count = amount(50, thorough: 500)
        let probes = (0..<3).map { _ in
            ChildProcess(
                programPath("storage-probe"), ["tokens", file.path, "send", "\(count)", "\(port)"],
                input: .null, output: .null, errors: .null)
        }
        for probe in probes { try probe.run() }
        for probe in probes { #expect(try await blocking { probe.waitUntilExit() } == 0) }
        let state = tokens.state.withLock { $0 }
        #expect(state.rejectedRefreshes == 0)
        #expect(state.number >= 3 * count / 5)
        #expect(try await TokenFile(file).tokens()?.refreshToken == "r\(state.number)")
    }

    @Test("A process that is killed at any time leaves the tokens that it has stored")
    func kills() async throws {
        for round in 0..<amount(10, thorough: 200) {
            let pipe = Pipe()
            let probe = ChildProcess(
                programPath("storage-probe"), ["tokens", file.path, "store", "100000", "0"], input: .null,
                output: .pipe(pipe), errors: .null)
            try probe.run()
            let text = try await blocking {
                var text = Data()
                while text.count(where: { $0 == UInt8(ascii: "\n") }) <= round % 7 {
                    guard case let more = pipe.fileHandleForReading.availableData, !more.isEmpty else { break }
                    text += more
                }
                probe.send(SIGKILL)
                text += try pipe.fileHandleForReading.readToEnd() ?? Data()
                probe.waitUntilExit()
                return String(decoding: text, as: UTF8.self)
            }
            let acknowledged = text.split(separator: "\n").last.flatMap { Int($0.dropFirst("ack ".count)) }
            let stored = try await TokenFile(file).tokens()?.refreshToken.flatMap { Int($0) }
            // The store after the acknowledged one may have completed.
            #expect([acknowledged, acknowledged.map { $0 + 1 }].contains(stored))
        }
        try await TokenFile(file).store(old)
        #expect(try names(in: file.deletingLastPathComponent()) == ["tokens", "tokens.lock"])
    }
}
