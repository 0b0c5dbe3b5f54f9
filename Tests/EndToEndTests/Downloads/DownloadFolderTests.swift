import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceTransfers

/// Downloads to folders that do not exist.
@Suite("Folders of downloads", .permit)
struct DownloadFolderTests {
    /// Returns the error of a download to a folder in the folder of the fixture.
    private static func error(_ fixture: DownloadFixture, _ path: String) async -> WebServiceError? {
        let folder = fixture.folder.appendingPathComponent(path, isDirectory: true)
        return await #expect(throws: WebServiceError.self) {
            try await fixture.service.GET("/a.iso").download(into: folder, name: "a.iso", createsFolders: true).value
        }
    }

    @Test("Missing folders are created on request, with the permissions of new folders")
    func missing() async throws {
        let fixture = try DownloadFixture()
        let destination = fixture.folder.appendingPathComponent("b/ü c/a.iso")
        let task = fixture.service.GET("/a.iso")
        let error = await #expect(throws: WebServiceError.self) { try await task.download(to: destination).value }
        #expect(error?.message.contains("createsFolders") == true)
        #expect(try fixture.names == [])
        let file = try await fixture.service.GET("/a.iso").download(to: destination, createsFolders: true).value
        #expect(file.url == destination)
        #expect(try Data(contentsOf: destination) == fixture.content)
        try FileManager.default.createDirectory(
            at: fixture.folder.appendingPathComponent("new"), withIntermediateDirectories: false)
        let usual = try mode(of: fixture.folder.appendingPathComponent("new"))
        #expect(try mode(of: fixture.folder.appendingPathComponent("b")) == usual)
        #expect(try mode(of: fixture.folder.appendingPathComponent("b/ü c")) == usual)
    }

    @Test("Existing folders, and links to folders, are used")
    func existing() async throws {
        let fixture = try DownloadFixture(1_000)
        let folder = fixture.folder.appendingPathComponent("b")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let link = fixture.folder.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder)
        for name in ["link", "link/c", "b"] {
            let place = fixture.folder.appendingPathComponent(name, isDirectory: true)
            let file = try await fixture.service.GET("/a.iso").download(into: place, createsFolders: true).value
            #expect(try Data(contentsOf: file.url) == fixture.content)
        }
        #expect(try names(in: folder) == ["a (1).iso", "a.iso", "c"])
    }

    @Test("Without a name, the folders are created when the response has arrived")
    func withoutName() async throws {
        let fixture = try DownloadFixture(1_000) { _, number in
            number == 0 ? MockResponse(statusCode: 404) : .text("ale")
        }
        let folder = fixture.folder.appendingPathComponent("b/c")
        let first = fixture.service.GET("/a.iso").download(into: folder, createsFolders: true)
        await #expect(throws: WebServiceError.self) { try await first.value }
        #expect(try fixture.names == [])
        let file = try await fixture.service.GET("/a.iso").download(into: folder, createsFolders: true).value
        #expect(try Data(contentsOf: file.url) == Data("ale".utf8))
        #expect(file.url.path.hasSuffix("b/c/a.iso"))
    }

    @Test("A file or a broken link in the path is an error before the request that names it")
    func obstacles() async throws {
        let fixture = try DownloadFixture(1_000)
        let file = fixture.folder.appendingPathComponent("file")
        try Data("mine".utf8).write(to: file)
        for path in ["file", "file/b", "file/b/c"] {
            let error = await Self.error(fixture, path)
            #expect(error?.code == .download)
            #expect(error?.message.contains("the folder \(file.path) could not be") == true)
            #expect((error?.underlying as? POSIXError)?.code == .ENOTDIR)
        }
        #expect(try Data(contentsOf: file) == Data("mine".utf8))
        let link = fixture.folder.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(
            at: link, withDestinationURL: fixture.folder.appendingPathComponent("missing"))
        for path in ["link", "link/b"] {
            let error = await Self.error(fixture, path)
            #expect(error?.message.contains("the folder \(link.path) could not be") == true)
        }
        #expect(fixture.requests.isEmpty)
        #expect(try fixture.names == ["file", "link"])
    }
}
