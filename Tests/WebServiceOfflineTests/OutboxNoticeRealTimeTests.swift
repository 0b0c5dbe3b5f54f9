import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

/// With the system clock, an outbox reads its folder after a notification, and otherwise every 30
/// seconds.
@Suite("Notifications of changes of an outbox", .permit)
struct OutboxNoticeRealTimeTests {
    private let folder = TemporaryFolder.forTest().url

    private var options: Outbox.Options {
        var options = Outbox.Options()
        options.pollInterval = .milliseconds(10)
        return options
    }

    @Test(
        "A submission by another outbox and its end are noticed long before the next reading",
        arguments: OutboxPlace.allCases)
    func notices(_ place: OutboxPlace) async throws {
        let mock = MockService()
        mock.on(.POST, "/{n}", .status(200))
        let url = place.url(in: folder)
        let first = try place.outbox(of: mock.service, at: url, options: options)
        // Otherwise, the second one could take the lock.
        await eventually { first.state.withLock { $0.isSender } }
        let second = try place.outbox(of: mock.service, at: url, options: options)
        let start = ContinuousClock.now
        try await second.submit(mock.service.request(.POST, path: "/a"))
        await eventually { mock.receivedRequests.count == 1 }
        await eventually { await second.entries.isEmpty }
        await first.close()
        try await second.submit(mock.service.request(.POST, path: "/b"))
        await eventually { mock.receivedRequests.count == 2 }
        #expect(ContinuousClock.now - start < .seconds(25))
        await second.close()
    }

    @Test("A file is watched until the object is released")
    func watch() async throws {
        let file = folder.appendingPathComponent("file")
        try Data().write(to: file)
        #expect(FileWatch(folder.appendingPathComponent("missing")) {} == nil)
        let notices = Collected<Void>()
        var watch = FileWatch(file) { notices.add(()) }
        #expect(watch != nil)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 0)], ofItemAtPath: file.path)
        await eventually { !notices.values.isEmpty }
        // The end of a process closes its files.
        let handle = try FileHandle(forWritingTo: file)
        let count = notices.values.count
        try handle.close()
        await eventually { notices.values.count > count }
        watch = nil
    }

    #if os(Linux)
    @Test(
        "Only a local file system is known to notify of every change",
        .enabled(if: SmallDisk.canMount, "requires the permission to mount a file system"))
    func reliability() async throws {
        #expect(FileWatch(URL(fileURLWithPath: "/proc/self/stat")) {}?.isReliable == false)
        try await SmallDisk.with { disk in
            let file = disk.appendingPathComponent("file")
            try Data().write(to: file)
            #expect(FileWatch(file) {}?.isReliable == true)
        }
    }
    #endif

    @Test("With a clock of tests and after closing, no file is watched")
    func unwatched() async throws {
        let fixture = OfflineFixture()
        #expect(try await fixture.open().watch.withLock { $0 == nil })
        let outbox = try MockService().service.outbox(in: folder.appendingPathComponent("outbox"))
        #expect(outbox.watch.withLock { $0 != nil })
        await outbox.close()
        #expect(outbox.watch.withLock { $0 == nil })
    }
}
