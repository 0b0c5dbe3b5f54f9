import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceStorage

@testable import WebServiceOffline

@Suite("The generations of an account", .permit(minutes: isSoak ? 60 : 5))
struct AccountGenerationTests {
    private let parent = TemporaryFolder(inMemory: true)
    private var folder: URL { parent.url.appendingPathComponent("anna", isDirectory: true) }
    private let key = StorageKey(identifier: "a")
    private let entry = StorageEntry(.raw(Data("secret".utf8)), date: nil)

    @Test("A repeated log-out does not change a newer account in the folder")
    func repeated() async throws {
        let gate = Once<Bool>()
        let hand = HandStorage(gate: gate)
        let old = try Account(in: folder, logOutLimit: .milliseconds(20))
        let storage = old.storage(hand)
        let store = Task { try await storage.store(entry, for: key) }
        await eventually { hand.begun.values.count == 1 }
        await #expect(throws: WebServiceError.self) { try await old.logOut() }
        gate.set(true)
        try await store.value
        await eventually { (try? Account(in: folder)) != nil }
        let newer = try Account(in: folder)
        try Data("new".utf8).write(to: newer.file("file"))
        try await old.logOutAgain()
        #expect(try Data(contentsOf: newer.file("file")) == Data("new".utf8))
        #expect(newer.ownFolder.generation != old.ownFolder.generation)
    }

    @Test("Storages that could not be emptied are not emptied after another account was opened")
    func failedStorage() async throws {
        let old = try Account(in: folder)
        let failing = PathStorage(folder.appendingPathComponent("responses"), isFailing: true)
        _ = old.storage(failing)
        await #expect(throws: POSIXError.self) { try await old.logOut() }
        let newer = try Account(in: folder)
        let storage = newer.storage(PathStorage(folder.appendingPathComponent("responses")))
        try await storage.store(entry, for: key)
        failing.isFailing.withLock { $0 = false }
        let error = await #expect(throws: WebServiceError.self) { try await old.logOut() }
        #expect(error?.message.contains("'\(folder.path)'") == true)
        _ = old.storage(PathStorage(folder.appendingPathComponent("responses")))
        await eventually { (try? Account(in: folder)) != nil }
        #expect(try await storage.entry(for: key)?.data == entry.data)
        try await newer.logOut()
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    @Test("A folder that cannot be read does not keep the first log-out from emptying the storages")
    func unreadable() async throws {
        let account = try Account(in: folder)
        let storage = PathStorage(parent.url.appendingPathComponent("responses"))
        try await account.storage(storage).store(entry, for: key)
        try replaceFolderByFile()
        let error = await #expect(throws: WebServiceError.self) { try await account.logOut() }
        #expect(error?.code == .storage)
        #expect(try await storage.entry(for: key)?.data == nil)
    }

    @Test("A repeated log-out empties no storage while the folder cannot be read")
    func unreadableLater() async throws {
        let file = parent.url.appendingPathComponent("responses")
        let old = try Account(in: folder)
        let failing = PathStorage(file, isFailing: true)
        _ = old.storage(failing)
        await #expect(throws: POSIXError.self) { try await old.logOut() }
        let newer = try Account(in: folder)
        let storage = newer.storage(PathStorage(file))
        try await storage.store(entry, for: key)
        failing.isFailing.withLock { $0 = false }
        try replaceFolderByFile()
        let error = await #expect(throws: WebServiceError.self) { try await old.logOut() }
        #expect(error?.code == .storage)
        #expect(try await storage.entry(for: key)?.data == entry.data)
    }

    private func replaceFolderByFile() throws {
        try FileManager.default.moveItem(at: folder, to: parent.url.appendingPathComponent("moved"))
        try Data().write(to: folder)
    }

    @Test(
        "In random interleavings of openings, writes, log-outs and kills, a log-out removes its own data alone")
    func model() async throws {
        let rounds = isSanitized ? 200 : amount(200, thorough: 1_000, soak: 100_000)
        var statistics: [String: Int] = [:]
        for round in 0..<rounds {
            var generator = SeededGenerator(seed: UInt64(round))
            let model = GenerationModel(folder)
            try await model.run(&generator)
            #expect(model.violations == [], "round \(round)")
            for (name, count) in model.statistics { statistics[name, default: 0] += count }
            if !model.violations.isEmpty { return }
        }
        for name in ["newer accounts", "refused openings", "repeated log-outs of older accounts", "kills"] {
            #expect(statistics[name, default: 0] > rounds / 50, "\(name)")
        }
        if isSoak { print(rounds, statistics.sorted { $0.key < $1.key }) }
    }
}

/// Accounts that are opened in one folder one after another, and what the newest one has written.
private final class GenerationModel {
    private struct Member {
        let account: Account
        let storage: PathStorage
        let generation: UUID
    }

    private(set) var violations: [String] = []
    private(set) var statistics: [String: Int] = [:]
    private let folder: URL
    private let parked = AccountModel.Parked()
    private var members: [Member] = []
    private var logOuts: [Task<Void, Never>] = []
    private var current: UUID?
    /// The files of the current generation.
    private var files: [String: Data] = [:]
    /// Whether a log-out of the current generation has begun.
    private var isEnding = false

    init(_ folder: URL) { self.folder = folder }

    func run(_ generator: inout SeededGenerator) async throws {
        for _ in 0..<(8 + generator.next() % 24) {
            let random = generator.next()
            switch random % 8 {
            case 0, 1: open(random >> 8)
            case 2, 3: try write(random >> 8)
            case 4: begin(random >> 8)
            case 5: parked.release(random >> 8)
            case 6: if random >> 8 & 3 == 0 { try await kill(&generator) } else { await Task.yield() }
            default: for _ in 0..<(random >> 8 % 16) { await Task.yield() }
            }
            check()
        }
        try await end(&generator)
    }

    private func open(_ random: UInt64) {
        let limit: Duration = random & 1 == 0 ? .zero : .seconds(100)
        guard let account = try? Account(in: folder, logOutLimit: limit) else { return count("refused openings") }
        let storage = PathStorage(account.file("responses"), parked: parked, isFailing: random >> 1 & 3 == 0)
        _ = account.storage(storage)
        let generation = account.ownFolder.generation
        members.append(Member(account: account, storage: storage, generation: generation))
        guard generation != current else { return }
        if current != nil {
            count("newer accounts")
            if !isEnding { violations.append("a generation was replaced without a log-out") }
        }
        (current, files, isEnding) = (generation, [:], false)
        if (try? names(in: folder)) != [".account"] { violations.append("files of an older account remain") }
    }

    private func write(_ random: UInt64) throws {
        guard !isEnding, let member = members.last(where: { $0.generation == current }) else { return }
        let name = ["a", "b", "responses", "outbox"][Int(random % 4)]
        let data = Data("\(random)".utf8)
        try data.write(to: member.account.file(name))
        files[name] = data
    }

    private func begin(_ random: UInt64) {
        guard !members.isEmpty else { return }
        let member = members[Int(random % UInt64(members.count))]
        if member.generation == current {
            isEnding = true
        } else {
            count("repeated log-outs of older accounts")
        }
        member.storage.isFailing.withLock { if random >> 32 & 1 == 0 { $0 = false } }
        logOuts.append(Task { try? await member.account.logOut() })
    }

    /// The process ends at any step of a log-out, or without one, and the next one begins.
    private func kill(_ generator: inout SeededGenerator) async throws {
        await settle(&generator)
        count("kills")
        if let current, generator.next() % 2 == 0 {
            isEnding = true
            try AccountFolder(folder, current).beginLogOut()
            for name in (try? names(in: folder)) ?? [] where name != ".logged-out" && generator.next() % 2 == 0 {
                try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
            }
        }
        if generator.next() % 2 == 0 { try Account.finishLogOuts(in: folder.deletingLastPathComponent()) }
        if generator.next() % 2 == 0 { members = [] }
    }

    /// Continues everything that waits until no log-out is in progress.
    private func settle(_ generator: inout SeededGenerator) async {
        let tasks = logOuts
        logOuts = []
        let hasEnded = OnceFlag()
        Task {
            for task in tasks { await task.value }
            _ = hasEnded.set()
        }
        var waits = 0
        while !hasEnded.isSet || AccountFolder.logOuts.withLock({ $0[folder.path] }) != nil {
            if !parked.release(generator.next()) { await Task.yield() }
            waits += 1
            if waits == 3_000_000 {
                let count = AccountFolder.logOuts.withLock { $0[folder.path] } ?? 0
                violations.append("a log-out does not end: \(hasEnded.isSet), \(count)")
                return
            }
        }
    }

    private func end(_ generator: inout SeededGenerator) async throws {
        await settle(&generator)
        check()
        guard violations.isEmpty else { return }
        let last = try Account(in: folder)
        for member in members where member.generation != last.ownFolder.generation {
            member.storage.isFailing.withLock { $0 = false }
            logOuts.append(Task { try? await member.account.logOut() })
        }
        await settle(&generator)
        check()
        try await last.logOut()
        if FileManager.default.fileExists(atPath: folder.path) { violations.append("a file remains") }
    }

    private func check() {
        guard !isEnding else { return }
        for (name, data) in files where (try? Data(contentsOf: folder.appendingPathComponent(name))) != data {
            violations.append("\(name) of the newest account was changed")
        }
    }

    private func count(_ name: String) { statistics[name, default: 0] += 1 }
}

/// A storage that writes to a path and removes it, and can fail or wait.
private final class PathStorage: ResponseStorage {
    let isFailing: Mutex<Bool>
    private let file: URL
    private let parked: AccountModel.Parked?

    init(_ file: URL, parked: AccountModel.Parked? = nil, isFailing: Bool = false) {
        (self.file, self.parked) = (file, parked)
        self.isFailing = Mutex(isFailing)
    }

    func entry(for key: StorageKey) async throws -> StorageEntry? {
        (try? Data(contentsOf: file)).map { StorageEntry(.raw($0), date: nil) }  // missing
    }

    func store(_ entry: StorageEntry, for key: StorageKey) async throws { try entry.data?.write(to: file) }

    func removeEntry(for key: StorageKey) async throws { try await removeAll() }

    func removeAll() async throws {
        if let parked { await withCheckedContinuation { continuation in parked.add { _ in continuation.resume() } } }
        if isFailing.withLock({ $0 }) { throw POSIXError(.EIO) }
        try? FileManager.default.removeItem(at: file)  // missing
    }
}
