import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("Partial files", .permit)
struct PartFileTests {
    /// Calls the closure with a new folder.
    private func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = TemporaryFolder.forTest()
        try body(folder.url)
    }

    private func open(_ folder: URL, _ name: String = "a.iso", replaces: Bool = true) throws -> PartFile {
        try PartFile(DownloadDestination(folder: folder, name: name), replaces: replaces)
    }

    private func write(_ text: String, to part: PartFile, at offset: Int64 = 0) throws {
        try Data(text.utf8).withUnsafeBytes { bytes in try part.write(bytes, at: offset) }
    }

    private func text(_ folder: URL, _ name: String = "a.iso") throws -> String {
        String(decoding: try Data(contentsOf: folder.appendingPathComponent(name)), as: UTF8.self)
    }

    private static let state = DownloadState(url: "https://h/a", headers: ["ETag": "\"1\""], total: 10)

    @Test("Bytes and state are beside the destination, and both are gone at the end")
    func life() throws {
        try withFolder { folder in
            let part = try open(folder)
            try part.store(Self.state)
            try write("hello", to: part)
            try write("world", to: part, at: 5)
            #expect(try names(in: folder) == [".a.iso.webservice-part", ".a.iso.webservice-state"])
            #expect(try mode(of: folder.appendingPathComponent(".a.iso.webservice-part")) == 0o600)
            #expect(try mode(of: folder.appendingPathComponent(".a.iso.webservice-state")) == 0o600)
            #expect(try part.length() == 10)
            #expect(part.state() == Self.state)
            try part.finish(replaces: true, synchronize: true)
            #expect(try names(in: folder) == ["a.iso"])
            #expect(try text(folder) == "helloworld")
            try Data().write(to: folder.appendingPathComponent("b"))
            #expect(
                try mode(of: folder.appendingPathComponent("a.iso")) == mode(of: folder.appendingPathComponent("b")))
        }
    }

    @Test("a part is continued after it was closed, and truncating it removes the state")
    func continuing() throws {
        try withFolder { folder in
            let first = try open(folder)
            try first.store(Self.state)
            try write("hello", to: first)
            first.close()
            let second = try open(folder)
            #expect(try second.length() == 5)
            #expect(second.state() == Self.state)
            try second.truncate(to: 3)
            #expect(try second.length() == 3)
            #expect(second.state() == Self.state)
            try second.truncate(to: 0)
            #expect(try names(in: folder) == [".a.iso.webservice-part"])
            #expect(second.state() == nil)
            try second.discard()
            #expect(try names(in: folder) == [])
        }
    }

    @Test("A second download to the destination is refused, also in one process")
    func locked() throws {
        try withFolder { folder in
            let part = try open(folder)
            #expect(code { _ = try open(folder) } == .downloadInProgress)
            #expect(try open(folder, "b.iso").length() == 0)
            part.close()
            #expect(try open(folder).length() == 0)
        }
    }

    /// Returns the code of the error that the closure throws.
    private func code(_ body: () throws -> Void) -> WebServiceError.Code? {
        do { try body() } catch { return (error as? WebServiceError)?.code }
        return nil
    }

    @Test("An existing file is refused at the beginning and at the end, and is not changed")
    func existing() throws {
        try withFolder { folder in
            let part = try open(folder, replaces: false)
            try write("new", to: part)
            try Data("old".utf8).write(to: folder.appendingPathComponent("a.iso"))
            #expect(code { try part.finish(replaces: false, synchronize: false) } == .download)
            #expect(try names(in: folder) == ["a.iso"])
            #expect(try text(folder) == "old")
            #expect(code { _ = try open(folder, replaces: false) } == .download)
            #expect(try names(in: folder) == ["a.iso"])
            let second = try open(folder)
            try write("newer", to: second)
            try second.finish(replaces: true, synchronize: false)
            #expect(try text(folder) == "newer")
        }
    }

    @Test("Without an existing file, the part gets its name")
    func absent() throws {
        try withFolder { folder in
            let part = try open(folder, replaces: false)
            try write("new", to: part)
            try part.store(Self.state)
            try part.finish(replaces: false, synchronize: false)
            #expect(try names(in: folder) == ["a.iso"])
            #expect(try text(folder) == "new")
        }
    }

    @Test("A link at the destination is replaced, and its target is not changed")
    func link() throws {
        try withFolder { folder in
            let target = folder.appendingPathComponent("target")
            try Data("old".utf8).write(to: target)
            try FileManager.default.createSymbolicLink(
                at: folder.appendingPathComponent("a.iso"), withDestinationURL: target)
            let part = try open(folder)
            try write("new", to: part)
            try part.finish(replaces: true, synchronize: false)
            #expect(try text(folder, "target") == "old")
            #expect(try text(folder) == "new")
            #expect(
                try FileManager.default.attributesOfItem(atPath: folder.path + "/a.iso")[.type] as? FileAttributeType
                    == .typeRegular)
        }
    }

    @Test("A link in place of the part is not followed")
    func linkedPart() throws {
        try withFolder { folder in
            let target = folder.appendingPathComponent("target")
            try Data("old".utf8).write(to: target)
            try FileManager.default.createSymbolicLink(
                at: folder.appendingPathComponent(".a.iso.webservice-part"), withDestinationURL: target)
            #expect(code { _ = try open(folder) } == .download)
            #expect(try text(folder, "target") == "old")
        }
    }

    @Test("A folder, a FIFO and a missing folder are refused before anything is created")
    func unusable() throws {
        try withFolder { folder in
            try FileManager.default.createDirectory(
                at: folder.appendingPathComponent("a.iso"), withIntermediateDirectories: false)
            try #require(mkfifo(folder.appendingPathComponent("b.iso").path, 0o600) == 0)
            #expect(code { _ = try open(folder) } == .download)
            #expect(code { _ = try open(folder, "b.iso") } == .download)
            let missing = folder.appendingPathComponent("missing")
            #expect(code { _ = try open(missing) } == .download)
            #expect(try names(in: folder) == ["a.iso", "b.iso"])
            try #require(mkfifo(folder.appendingPathComponent(".c.iso.webservice-part").path, 0o600) == 0)
            #expect(code { _ = try open(folder, "c.iso") } == .download)
        }
    }

    @Test("A complete part that a killed process linked to the destination is not written to")
    func linkedTwice() throws {
        try withFolder { folder in
            let destination = folder.appendingPathComponent("a.iso")
            try Data("whole".utf8).write(to: destination)
            try FileManager.default.linkItem(
                at: destination, to: folder.appendingPathComponent(".a.iso.webservice-part"))
            let part = try open(folder)
            #expect(try part.length() == 0)
            try write("x", to: part)
            #expect(try text(folder) == "whole")
        }
    }

    @Test("A file that a killed process left while it stored the state does not matter")
    func leftOver() throws {
        try withFolder { folder in
            try Data("torn".utf8).write(to: folder.appendingPathComponent(".a.iso.webservice-new"))
            let part = try open(folder)
            try part.store(Self.state)
            #expect(part.state() == Self.state)
            #expect(try names(in: folder) == [".a.iso.webservice-part", ".a.iso.webservice-state"])
        }
    }

    @Test("A damaged, large or special state is absent")
    func damagedState() throws {
        try withFolder { folder in
            let part = try open(folder)
            let state = folder.appendingPathComponent(".a.iso.webservice-state")
            for content in [Data(), Data("x".utf8), Data(count: 5_000), Data(count: 3 << 20)] {
                try content.write(to: state)
                #expect(part.state() == nil)
            }
            try FileManager.default.removeItem(at: state)
            try #require(mkfifo(state.path, 0o600) == 0)
            #expect(part.state() == nil)
            try part.store(Self.state)
            #expect(part.state() == Self.state)
        }
    }

    @Test("a state that is too long is removed")
    func longState() throws {
        try withFolder { folder in
            let part = try open(folder)
            try part.store(Self.state)
            try part.store(
                DownloadState(url: "https://h/a", headers: ["ETag": "\"" + String(repeating: "a", count: 5_000) + "\""])
            )
            #expect(part.state() == nil)
            #expect(try names(in: folder) == [".a.iso.webservice-part"])
        }
    }

    @Test("bytes are compared and hashed in ranges")
    func ranges() throws {
        try withFolder { folder in
            let part = try open(folder)
            let content = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
            try content.withUnsafeBytes { bytes in try part.write(bytes, at: 0) }
            #expect(try content[5..<700_000].withUnsafeBytes { bytes in try part.contains(bytes, at: 5) })
            #expect(try !content[5..<700_000].withUnsafeBytes { bytes in try part.contains(bytes, at: 6) })
            #expect(try !content.withUnsafeBytes { bytes in try part.contains(bytes, at: 1) })
            #expect(try part.hash(.sha256, of: 0..<1_000_000) == SHA2.sha256.hash(content))
            #expect(try part.hash(.sha512, of: 3..<400_000) == SHA2.sha512.hash(content[3..<400_000]))
            #expect(try part.hash(.sha256, of: 999_999..<2_000_000) == SHA2.sha256.hash(content.suffix(1)))
        }
    }

    @Test("More bytes than are available are refused")
    func space() throws {
        try withFolder { folder in
            let part = try open(folder)
            try part.reserve(1)
            let error = try #require(throws: WebServiceError.self) { try part.reserve(.max) }
            #expect(error.code == .download)
            #expect((error.underlying as? POSIXError)?.code == .ENOSPC)
        }
    }

    @Test("a name of 255 bytes is possible")
    func longName() throws {
        try withFolder { folder in
            let name = String(repeating: "a", count: 255)
            let part = try open(folder, name)
            try part.store(Self.state)
            try write("x", to: part)
            try part.finish(replaces: false, synchronize: false)
            #expect(try names(in: folder) == [name])
        }
    }

    @Test("the folder may be a link")
    func linkedFolder() throws {
        try withFolder { folder in
            let link = folder.appendingPathComponent("link")
            try FileManager.default.createDirectory(
                at: folder.appendingPathComponent("real"), withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(
                at: link, withDestinationURL: folder.appendingPathComponent("real"))
            let part = try open(link)
            try write("x", to: part)
            try part.finish(replaces: true, synchronize: false)
            #expect(try text(folder.appendingPathComponent("real")) == "x")
        }
    }

    @Test(
        "only the URL of a local file is a destination",
        arguments: [
            "https://h/a", "file://host/a", "file:///", "file:///a/", "file:///a/..", "file:///a/.", "a",
        ])
    func destinations(url: String) throws {
        let url = try #require(URL(string: url))
        #expect(code { _ = try DownloadDestination(file: url) } == .download)
    }

    @Test("the URL of a destination is that of its file")
    func destination() throws {
        let destination = try DownloadDestination(file: URL(fileURLWithPath: "/a b/c%d"))
        #expect(destination.folder == "/a b")
        #expect(destination.name == "c%d")
        #expect(destination.url.path == "/a b/c%d")
    }
}
