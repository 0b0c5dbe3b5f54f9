import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("List of partial files", .permit)
struct PartialTests {
    private typealias Partial = DownloadedFile.Partial

    private static let state = DownloadState(url: "https://h/a", headers: ["ETag": "\"1\""], total: 10)

    /// Leaves a partial file of five bytes.
    ///
    /// - Parameter state: The state beside it. Defaults to one of a file of 10 bytes.
    @discardableResult
    private func leave(_ folder: URL, _ name: String = "a.iso", state: DownloadState? = Self.state) throws -> PartFile {
        let part = try PartFile(DownloadDestination(folder: folder, name: name), replaces: true)
        if let state { try part.store(state) }
        try Data("hello".utf8).withUnsafeBytes { bytes in try part.write(bytes, at: 0) }
        return part
    }

    private func write(_ folder: URL, _ name: String, _ content: Data = Data("mine".utf8)) throws {
        try content.write(to: folder.appendingPathComponent(name))
    }

    private func error(_ body: () async throws -> Void) async -> WebServiceError.Code? {
        do { try await body() } catch { return (error as? WebServiceError)?.code }
        return nil
    }

    @Test("An interrupted download is listed with its values, and removed with its state")
    func values() async throws {
        let folder = TemporaryFolder.forTest().url
        try leave(folder).close()
        try write(folder, "other")
        try write(folder, ".a.iso.webservice-new")
        let partials = try await Partial.list(in: folder)
        let partial = try #require(partials.first)
        #expect(partials.count == 1)
        #expect(partial.destination == folder.appendingPathComponent("a.iso"))
        #expect(partial.bytesReceived == 5)
        #expect(partial.bytesToReceive == 10)
        #expect(!partial.isInProgress)
        let attributes = try FileManager.default.attributesOfItem(
            atPath: folder.appendingPathComponent(".a.iso.webservice-part").path)
        let changed = try #require(attributes[.modificationDate] as? Date)
        #expect(abs(partial.lastChange.timeIntervalSince(changed)) < 0.001)
        try await partial.remove()
        #expect(try names(in: folder) == ["other"])
        try await partial.remove()
        #expect(try await Partial.list(in: folder).isEmpty)
    }

    @Test("A file that a download has locked is in progress, and is not removed")
    func locked() async throws {
        let folder = TemporaryFolder.forTest().url
        let part = try leave(folder)
        let partial = try #require(try await Partial.list(in: folder).first)
        #expect(partial.isInProgress)
        #expect(await error { try await partial.remove() } == .downloadInProgress)
        #expect(try part.length() == 5)
        part.close()
        try await partial.remove()
        #expect(try names(in: folder) == [])
    }

    @Test("A file that was continued since it was listed is not removed")
    func changed() async throws {
        let folder = TemporaryFolder.forTest().url
        try leave(folder).close()
        let partial = try #require(try await Partial.list(in: folder).first)
        let part = try PartFile(DownloadDestination(folder: folder, name: "a.iso"), replaces: true)
        try Data("world".utf8).withUnsafeBytes { bytes in try part.write(bytes, at: 5) }
        part.close()
        #expect(await error { try await partial.remove() } == .downloadInProgress)
        #expect(try names(in: folder).count == 2)
    }

    @Test("Listing fails no download that begins at the same time")
    func concurrent() async throws {
        let folder = TemporaryFolder.forTest().url
        try leave(folder).close()
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask { for _ in 0..<200 { _ = try? await Partial.list(in: folder) } }  // one succeeds below
            }
            for _ in 0..<500 {
                #expect(throws: Never.self) { try leave(folder).close() }
            }
            await group.waitForAll()
        }
        #expect(try await Partial.list(in: folder).count == 1)
    }

    @Test("Locks of lists do not disturb a download that begins, or a removal")
    func race() async throws {
        let folder = TemporaryFolder.forTest().url
        for _ in 0..<amount(20, thorough: 200) {
            try leave(folder).close()
            let partial = try #require(try await Partial.list(in: folder).first)
            let handle = try FileHandle(forReadingFrom: folder.appendingPathComponent(".a.iso.webservice-part"))
            let (hasBegun, isOver) = (ThreadSignal(), OnceFlag())
            defer { _ = isOver.set() }
            let lists = Task.detached {
                try await blocking {
                    while !isOver.isSet {
                        if flock(handle.fileDescriptor, LOCK_SH | LOCK_NB) == 0 { hasBegun.signal() }
                        flock(handle.fileDescriptor, LOCK_UN)
                    }
                }
            }
            try await blocking { hasBegun.wait() }
            try await blocking {
                for _ in 0..<20 {
                    try PartFile(DownloadDestination(folder: folder, name: "a.iso"), replaces: true).close()
                }
            }
            try await partial.remove()
            _ = isOver.set()
            try await lists.value
            #expect(try names(in: folder) == [])
        }
    }

    @Test("Files that only have such a name, and links, are neither listed nor followed")
    func similar() async throws {
        let folder = TemporaryFolder.forTest().url
        let target = TemporaryFolder.forTest()
        try leave(target.url, "x").close()
        for name in [".x.webservice-part", ".x.webservice-state"] {
            try FileManager.default.createSymbolicLink(
                at: folder.appendingPathComponent(name),
                withDestinationURL: target.url.appendingPathComponent(name))
        }
        try write(folder, ".a.webservice-part")
        try write(folder, ".b.webservice-part")
        try write(folder, ".b.webservice-state", Data(count: 5_000))
        try FileManager.default.createDirectory(
            at: folder.appendingPathComponent(".c.webservice-part"), withIntermediateDirectories: false)
        try #require(mkfifo(folder.appendingPathComponent(".d.webservice-part").path, 0o600) == 0)
        for name in [".webservice-part", "...webservice-part", "e.webservice-part", ".f.webservice-state"] {
            try write(folder, name)
        }
        let before = try names(in: folder)
        #expect(try await Partial.list(in: folder).isEmpty)
        #expect(try names(in: folder) == before)
        #expect(try names(in: target.url) == [".x.webservice-part", ".x.webservice-state"])
    }

    @Test("A link that takes the place of a listed file is not followed")
    func replacedByLink() async throws {
        let folder = TemporaryFolder.forTest().url
        try leave(folder).close()
        let partial = try #require(try await Partial.list(in: folder).first)
        try write(folder, "target")
        let part = folder.appendingPathComponent(".a.iso.webservice-part")
        try FileManager.default.removeItem(at: part)
        try FileManager.default.createSymbolicLink(
            at: part, withDestinationURL: folder.appendingPathComponent("target"))
        #expect(await error { try await partial.remove() } == .download)
        #expect(try Data(contentsOf: folder.appendingPathComponent("target")) == Data("mine".utf8))
        #expect(try names(in: folder) == [".a.iso.webservice-part", ".a.iso.webservice-state", "target"])
    }

    @Test("An empty file without a state is listed: a process was killed before the response")
    func empty() async throws {
        let folder = TemporaryFolder.forTest().url
        try write(folder, ".a.iso.webservice-part", Data())
        let partial = try #require(try await Partial.list(in: folder).first)
        #expect(partial.bytesReceived == 0)
        #expect(partial.bytesToReceive == nil)
        try await partial.remove()
        #expect(try names(in: folder) == [])
    }

    @Test("A complete file that a killed process also left as a partial file is retained")
    func linkedTwice() async throws {
        let folder = TemporaryFolder.forTest().url
        try leave(folder).close()
        try FileManager.default.linkItem(
            at: folder.appendingPathComponent(".a.iso.webservice-part"), to: folder.appendingPathComponent("a.iso"))
        for partial in try await Partial.list(in: folder) { try await partial.remove() }
        #expect(try names(in: folder) == ["a.iso"])
        #expect(try Data(contentsOf: folder.appendingPathComponent("a.iso")) == Data("hello".utf8))
    }

    @Test("A name of 255 bytes is that of the destination, and one that does not fit is not")
    func longName() async throws {
        let folder = TemporaryFolder.forTest().url
        let name = String(repeating: "a", count: 255)
        try leave(folder, name).close()
        let partial = try #require(try await Partial.list(in: folder).first)
        #expect(partial.destination.lastPathComponent == name)
        try await partial.remove()
        #expect(try names(in: folder) == [])
        var state = Self.state
        state.name = String(repeating: "b", count: 255)
        try write(folder, ".b.webservice-state", try #require(state.encoded))
        try write(folder, ".b.webservice-part")
        #expect(try await Partial.list(in: folder).first?.destination.lastPathComponent == "b")
    }

    @Test("The bytes of a download in pieces are those of complete pieces")
    func pieces() async throws {
        let folder = TemporaryFolder.forTest().url
        let total = Int64(44 << 20)
        var map = PieceMap(total: total)
        map.complete(2)
        map.complete(5)
        var state = DownloadState(url: "https://h/a", headers: ["ETag": "\"1\""], total: total)
        state.pieces = map
        try leave(folder, state: state).close()
        let partial = try #require(try await Partial.list(in: folder).first)
        #expect(partial.bytesReceived == 12 << 20)
        #expect(partial.bytesToReceive == total)
    }

    @Test("The oldest file is first, and 5,000 other files do not matter")
    func order() async throws {
        let folder = TemporaryFolder(inMemory: true)
        for number in 0..<5_000 { try write(folder.url, "file \(number)", Data()) }
        for (number, name) in ["c", "a", "b"].enumerated() {
            try leave(folder.url, name).close()
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_000 + Double(number))],
                ofItemAtPath: folder.url.appendingPathComponent(".\(name).webservice-part").path)
        }
        let partials = try await Partial.list(in: folder.url)
        #expect(partials.map(\.destination.lastPathComponent) == ["c", "a", "b"])
    }

    @Test("A missing folder has no partial files, and a file is an error")
    func folders() async throws {
        let folder = TemporaryFolder.forTest().url
        #expect(try await Partial.list(in: folder.appendingPathComponent("missing")).isEmpty)
        try write(folder, "file")
        let file = folder.appendingPathComponent("file")
        #expect(await error { _ = try await Partial.list(in: file) } == .download)
        let remote = try #require(URL(string: "https://h/a"))
        #expect(await error { _ = try await Partial.list(in: remote) } == .download)
        let linked = folder.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: linked, withDestinationURL: folder)
        try leave(folder).close()
        #expect(try await Partial.list(in: linked).count == 1)
    }
}
