import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Downloads to a destination that the caller names, where other files exist.
@Suite("Existing files at the destination of a download", .permit)
struct DownloadExistingTests {
    private static let mine = Data("mine".utf8)

    private static func download(_ fixture: DownloadFixture, _ path: String = "/a.iso") async throws -> DownloadedFile {
        // The URL of the fixture ends with a slash while there is a folder.
        let destination = fixture.folder.appendingPathComponent("a.iso", isDirectory: false)
        return try await fixture.service.GET(path).download(to: destination, existing: .addNumber).value
    }

    @Test(
        "A file at the destination is retained, replaced or an error, as specified",
        arguments: [DownloadedFile.Existing.resume, .replace, .fail, .addNumber])
    func file(existing: DownloadedFile.Existing) async throws {
        let fixture = try DownloadFixture()
        try Self.mine.write(to: fixture.destination)
        let task = fixture.service.GET("/a.iso")
            .download(into: fixture.folder, name: "a.iso", existing: existing)
        if existing == .fail {
            await fails(.download) { try await task.value }
            #expect(fixture.requests.isEmpty)
        } else {
            let file = try await task.value
            #expect(file.url.lastPathComponent == (existing == .addNumber ? "a (1).iso" : "a.iso"))
            #expect(try Data(contentsOf: file.url) == fixture.content)
        }
        let isRetained = existing == .fail || existing == .addNumber
        #expect(try fixture.fileHas(isRetained ? Self.mine : fixture.content))
    }

    @Test(
        "The bytes of an interrupted download of the same URL are reused or discarded, as specified",
        arguments: [DownloadedFile.Existing.resume, .replace, .fail, .addNumber])
    func interrupted(existing: DownloadedFile.Existing) async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        let file = try await fixture.download(existing: existing).value
        #expect(file.resumedFrom == (existing == .replace ? 0 : 400_000))
        #expect(fixture.ranges == [existing == .replace ? "" : "bytes=400000-"])
        #expect(try fixture.fileHas(fixture.content))
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A number is added if a link or a folder is at the destination")
    func otherEntries() async throws {
        let fixture = try DownloadFixture(1_000)
        let target = fixture.folder.appendingPathComponent("target")
        try Self.mine.write(to: target)
        try FileManager.default.createSymbolicLink(at: fixture.destination, withDestinationURL: target)
        #expect(try await Self.download(fixture).url.lastPathComponent == "a (1).iso")
        try FileManager.default.removeItem(at: fixture.destination)
        try FileManager.default.createDirectory(at: fixture.destination, withIntermediateDirectories: false)
        #expect(try await Self.download(fixture).url.lastPathComponent == "a (2).iso")
        #expect(try Data(contentsOf: target) == Self.mine)
        #expect(try fixture.names == ["a (1).iso", "a (2).iso", "a.iso", "target"])
    }

    @Test("An interrupted download with a number is continued, one of another URL is retained")
    func interruptedWithNumber() async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        let other = DownloadFixture.content(1_000_000, seed: 1)
        fixture.serve { request, _ in
            let response = MockResponse(file: other, eTag: DownloadFixture.tag, for: request)
            return response.cut(response.data, after: 300_000)
        }
        await #expect(throws: URLError.self) { try await Self.download(fixture, "/other") }
        #expect(
            try fixture.names.filter { $0.hasSuffix("part") } == [
                ".a (1).iso.webservice-part", ".a.iso.webservice-part",
            ])
        fixture.serve { request, _ in MockResponse(file: other, eTag: DownloadFixture.tag, for: request) }
        let file = try await Self.download(fixture, "/other")
        #expect(file.url.lastPathComponent == "a (1).iso")
        #expect(file.resumedFrom == 300_000)
        #expect(try Data(contentsOf: file.url) == other)
        #expect(try fixture.partHas(fixture.content.prefix(400_000)))
    }

    @Test("Downloads to one destination at the same time are different files")
    func simultaneous() async throws {
        let fixture = try DownloadFixture(1_000)
        let contents = (0..<8).map { DownloadFixture.content(1_000, seed: $0) }
        fixture.serve { request, _ in
            MockResponse(
                file: contents[Int(request.path.dropFirst()) ?? 0], eTag: DownloadFixture.tag, for: request)
        }
        let files = try await withThrowingTaskGroup { group in
            for number in contents.indices {
                group.addTask { (number, try await Self.download(fixture, "/\(number)").url) }
            }
            return try await group.reduce(into: [(Int, URL)]()) { $0.append($1) }
        }
        #expect(Set(files.map(\.1)).count == contents.count)
        for (number, url) in files { #expect(try Data(contentsOf: url) == contents[number]) }
        #expect(try fixture.names.count == contents.count)
    }

    @Test("A file that appears during the download is retained")
    func appearing() async throws {
        let fixture = try DownloadFixture(1_000)
        let destination = fixture.destination
        fixture.serve { [content = fixture.content] request, _ in
            #expect((try? Self.mine.write(to: destination)) != nil)
            return MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
        }
        #expect(try await Self.download(fixture).url.lastPathComponent == "a (1).iso")
        #expect(try fixture.fileHas(Self.mine))
        #expect(try fixture.names == ["a (1).iso", "a.iso"])
    }

    @Test("If all names are taken, the download is an error before the request")
    func allTaken() async throws {
        let fixture = try DownloadFixture(1_000)
        try Self.mine.write(to: fixture.destination)
        for number in 1...999 {
            try Self.mine.write(to: fixture.folder.appendingPathComponent("a (\(number)).iso"))
        }
        await fails(.download) { try await Self.download(fixture) }
        #expect(fixture.requests.isEmpty)
        try FileManager.default.removeItem(at: fixture.folder.appendingPathComponent("a (999).iso"))
        #expect(try await Self.download(fixture).url.lastPathComponent == "a (999).iso")
    }
}
