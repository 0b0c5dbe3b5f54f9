#if os(Linux)
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

@Suite("How often an outbox reads the list of its files", .permit)
struct OutboxListingTests {
    private let fixture = OfflineFixture()

    @Test("A submission reads the list of files once, or twice after one by another process")
    func listings() async throws {
        fixture.mock.on(.POST, "/{n}", .status(200).after(.seconds(10)))
        let request = fixture.service.request(.POST, path: "/a")
        let (first, second) = (try await fixture.open(), try await fixture.open())
        let listings = try FolderOpenings(fixture.folder)
        for _ in 0..<3 { try await first.submit(request) }
        #expect(listings.take() == 3)
        try await second.submit(request)
        #expect(listings.take() == 2)
        try await second.submit(request)
        #expect(listings.take() == 1)
        #expect(await second.entries.count == 5)
    }
}

/// Counts how often a folder is opened.
private struct FolderOpenings: ~Copyable {
    private let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))

    init(_ folder: URL) throws {
        // With only one kind of event, the system would combine successive ones.
        let mask = UInt32(IN_OPEN | IN_CLOSE_NOWRITE | IN_CLOSE_WRITE)
        let watch = inotify_add_watch(descriptor, folder.path, mask)
        try #require(watch >= 0)
    }

    deinit { close(descriptor) }

    /// Returns the number since the last call.
    func take() -> Int {
        var count = 0
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while case let length = read(descriptor, &bytes, bytes.count), length > 0 {
            var offset = 0
            while offset < length {
                // An event has a descriptor, a mask, a cookie and the length of the name of 4 bytes each.
                let mask = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self) }
                let name = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self) }
                if mask & UInt32(IN_OPEN) != 0, name == 0 { count += 1 }
                offset += 16 + Int(name)
            }
        }
        return count
    }
}
#endif
