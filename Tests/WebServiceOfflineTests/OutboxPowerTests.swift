import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceOffline

#if WEBSERVICE_SQLITE
@testable import WebServiceSQLite
#endif

@Suite(
    "The power fails while processes use an outbox",
    .enabled(if: VolatileDisk.works, "requires a C compiler, and no sanitizer"), .permit(minutes: isSoak ? 120 : 5))
struct OutboxPowerTests {
    private let effects = Effects()

    @Test(
        "After power failures, no request is lost, has two effects, or overtakes another, with files and without",
        arguments: OutboxPlace.allCases, [false, true])
    func failures(_ place: OutboxPlace, _ hasFiles: Bool) async throws {
        let effects = Effects(checksBodies: hasFiles)
        let server = try MockServer.forTest { try effects.respond(to: $0) }
        let disk = try VolatileDisk()
        let outbox = place.url(in: disk.folder)
        var random = SeededGenerator(seed: 3)
        var acknowledged: [String] = []
        var failureCount = 0
        for round in 0..<amount(6, thorough: 20, soak: 1_400) {
            // The process is killed before any of its changes, or at any other instant.
            let last =
                Bool.random(using: &random) ? Int.random(in: 1...(place == .folder ? 70 : 200), using: &random) : nil
            let probe = OutboxProbe(
                outbox, server, "a", round, count: 6, hasFiles: hasFiles,
                environment: disk.environment(endingBefore: last))
            let other = OutboxProbe(
                outbox, server, "b", round, count: 6, hasFiles: hasFiles, environment: disk.environment())
            let usesOther = Int.random(in: 0..<4, using: &random) == 0
            if usesOther { try other.process.run() }
            async let others = usesOther ? other.lines { _ in false } : []
            if last == nil {
                acknowledged += try await probe.kill(at: .random(using: &random), effects, by: disk.kill)
            } else {
                try probe.process.run()
                acknowledged += try await probe.lines { $0 == "done" }
                disk.kill(probe.process)
            }
            if usesOther { disk.kill(other.process) }
            acknowledged += try await others
            // Otherwise, the next process finds the changes that were not synchronized.
            if Int.random(in: 0..<4, using: &random) > 0 {
                try disk.fail(using: &random)
                failureCount += 1
            }
        }
        #expect(try await effects.drain(place, outbox, server) == [])
        effects.expect(acknowledged)
        #expect(effects.changed == [])
        let folder = place == .folder ? outbox : outbox.deletingLastPathComponent()
        #expect(try names(in: folder).filter { $0.hasSuffix(".body") } == [])
        #expect(acknowledged.count > amount(6, thorough: 30, soak: 2_000))
        if isSoak { print("\(place): \(failureCount) power failures") }
    }

    @Test(
        "Without fsync, power failures lose requests", arguments: OutboxPlace.allCases,
        VolatileDisk.Ignored.allCases)
    func ignored(_ place: OutboxPlace, _ ignored: VolatileDisk.Ignored) async throws {
        let server = try MockServer.forTest { _ in .status(503) }
        let disk = try VolatileDisk()
        let outbox = place.url(in: disk.folder)
        let probe = OutboxProbe(outbox, server, "a", 0, count: 6, environment: disk.environment(ignoring: ignored))
        let (status, acknowledged) = try await probe.finish()
        #expect(status == 0)
        #expect(acknowledged.count == 6)
        try disk.fail()
        let all = try MockServer.forTest { try effects.respond(to: $0) }
        try await effects.drain(place, outbox, all)
        #expect(effects.missing(acknowledged).count > 0)
    }

    @Test(
        "A copied body remains until the removal of its entry by a killed process is on the disk",
        arguments: OutboxPlace.allCases)
    func orphans(_ place: OutboxPlace) async throws {
        let disk = try VolatileDisk()
        let outbox = place.url(in: disk.folder)
        let folder = place == .folder ? outbox : outbox.deletingLastPathComponent()
        func probe(_ round: Int, _ server: MockServer, count: Int, _ environment: [String: String]) -> OutboxProbe {
            OutboxProbe(outbox, server, "a", round, count: count, hasFiles: true, environment: environment)
        }
        let unavailable = try MockServer.forTest { _ in .status(503) }
        let first = probe(0, unavailable, count: 1, disk.environment())
        #expect(try await first.finish().status == 0)
        let copy = try #require(try names(in: folder).first { $0.hasSuffix(".body") })

        // The second process sends the entry and removes it, but not its copy, which is locked.
        let effects = Effects(checksBodies: true)
        let server = try MockServer.forTest { try effects.respond(to: $0) }
        let lock = open(folder.appendingPathComponent(copy).path, O_RDONLY | O_CLOEXEC)
        try #require(flock(lock, LOCK_SH) == 0)
        let second = probe(1, server, count: 0, disk.environment(ignoring: .all))
        let file = folder.appendingPathComponent(place == .folder ? "outbox.lock" : "outbox.sqlite.sending")
        let date = { try FileManager.default.attributesOfItem(atPath: file.path)[.modificationDate] as? Date }
        let before = try date()
        try second.process.run()
        try await eventually("the process announces the removal") { try date() != before }
        disk.kill(second.process)
        close(lock)

        let third = probe(2, server, count: 0, disk.environment())
        try third.process.run()
        try await eventually("the copy is removed") { try !names(in: folder).contains(copy) }
        disk.kill(third.process)
        try disk.failExceptLastChanges()

        let failures = Collected<Outbox.Failure.Kind>()
        let last = try place.outbox(of: WebService(baseURLString: server.baseURLString), at: outbox) { failure in
            failures.add(failure.kind)
            return .drop
        }
        await eventually { await last.entries.isEmpty }
        await last.close()
        #expect(failures.values == [])
        #expect(effects.paths == ["/effects/a/0/0"])
        #expect(effects.changed == [])
    }

    #if WEBSERVICE_SQLITE
    @Test("The mark of a removed entry remains until the removal of its row by a killed process is on the disk")
    func marks() async throws {
        let disk = try VolatileDisk()
        let outbox = OutboxPlace.database.url(in: disk.folder)
        let folder = outbox.deletingLastPathComponent()
        func probe(_ round: Int, _ server: MockServer, count: Int, _ environment: [String: String]) -> OutboxProbe {
            OutboxProbe(outbox, server, "a", round, count: count, environment: environment)
        }
        let unavailable = try MockServer.forTest { _ in .status(503) }
        #expect(try await probe(0, unavailable, count: 1, disk.environment()).finish().status == 0)
        // The changes of this process are not recorded.
        let copy = TemporaryFolder.forTest().url.appendingPathComponent("copy")
        try FileManager.default.copyItem(at: folder, to: copy)
        let database = try OutboxDatabase(copy.appendingPathComponent(outbox.lastPathComponent))
        let name = try #require(try database.names().entries.first)

        // The second process sends the entry and removes its row.
        let server = try MockServer.forTest { _ in .status(200) }
        let second = probe(1, server, count: 0, disk.environment(ignoring: .all))
        let file = folder.appendingPathComponent("outbox.sqlite.sending")
        let date = { try FileManager.default.attributesOfItem(atPath: file.path)[.modificationDate] as? Date }
        let before = try date()
        try second.process.run()
        try await eventually("the process announces the removal") { try date() != before }
        disk.kill(second.process)
        // An earlier attempt to remove the row has failed.
        let mark = "outbox.sqlite.\(name).removed"
        try Data().write(to: folder.appendingPathComponent(mark))

        let third = probe(2, server, count: 0, disk.environment())
        try third.process.run()
        try await eventually("the mark is removed") { try !names(in: folder).contains(mark) }
        disk.kill(third.process)
        try disk.fail()
        #expect(try OutboxDatabase(outbox).names().entries == [])
    }
    #endif

    @Test("The changes of a process are recorded completely", arguments: OutboxPlace.allCases)
    func records(_ place: OutboxPlace) async throws {
        let server = try MockServer.forTest { try effects.respond(to: $0) }
        let disk = try VolatileDisk()
        let outbox = place.url(in: disk.folder)
        for round in 0..<2 {
            let probe = OutboxProbe(outbox, server, "a", round, count: 6, environment: disk.environment())
            #expect(try await probe.finish().status == 0)
            #expect(try names(in: outbox.deletingLastPathComponent()) != [])
            #expect(try disk.unrecordedFiles() == [])
        }
    }

    @Test(
        "The folder of an outbox is synchronized, even if a killed process or the caller has created it",
        arguments: OutboxPlace.allCases, [nil, 1, 2, 3, 4, 5, 6, 8, 10, 12])
    func createdFolder(_ place: OutboxPlace, _ last: Int?) async throws {
        let server = try MockServer.forTest { _ in .status(503) }
        let disk = try VolatileDisk()
        let outbox = place.url(in: disk.folder.appendingPathComponent("a/b"))
        if let last {
            let killed = OutboxProbe(
                outbox, server, "a", 0, count: 0, environment: disk.environment(endingBefore: last))
            _ = try await killed.finish()
        }
        let probe = OutboxProbe(
            outbox, server, "a", 1, count: 3, createsFolder: last == nil, environment: disk.environment())
        let (status, acknowledged) = try await probe.finish()
        #expect(status == 0)
        try disk.fail()
        let all = try MockServer.forTest { try effects.respond(to: $0) }
        try await effects.drain(place, outbox, all)
        #expect(acknowledged.count == 3)
        #expect(effects.missing(acknowledged) == [])
    }
}
