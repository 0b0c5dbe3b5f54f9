import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Downloads into a folder, whose names a server chooses, where other files exist.
@Suite("Names of downloads beside other files", .permit)
struct DownloadNameTests {
    /// Returns a server that suggests a name for its file.
    private static func fixture(
        _ count: Int = 1_000, name: String = "b.iso", over session: RealSession = .best
    ) throws -> DownloadFixture {
        let content = DownloadFixture.content(count)
        return try DownloadFixture(count, over: session) { request, _ in suggesting(name, content, request) }
    }

    @Sendable
    private static func suggesting(_ name: String, _ content: Data, _ request: ReceivedRequest) -> MockResponse {
        var response = MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
        response.headers["Content-Disposition"] = "attachment; filename=\"\(name)\""
        return response
    }

    private static func download(
        _ fixture: DownloadFixture, _ path: String = "/a.iso", existing: DownloadedFile.Existing = .resume
    ) -> TypedTask<DownloadedFile> {
        fixture.service.GET(path).download(into: fixture.folder, existing: existing)
    }

    private static func text(_ fixture: DownloadFixture, _ name: String) throws -> String {
        String(decoding: try Data(contentsOf: fixture.folder.appendingPathComponent(name)), as: UTF8.self)
    }

    @Test(
        "A file that exists is not replaced by one whose name the server chooses",
        arguments: RealSession.allCases, [DownloadedFile.Existing.resume, .replace])
    func existing(session: RealSession, existing: DownloadedFile.Existing) async throws {
        let fixture = try Self.fixture(over: session)
        try Data("mine".utf8).write(to: fixture.folder.appendingPathComponent("b.iso"))
        for number in 1...2 {
            let file = try await Self.download(fixture, existing: existing).value
            #expect(file.url.lastPathComponent == "b (\(number)).iso")
            #expect(try Data(contentsOf: file.url) == fixture.content)
        }
        #expect(try Self.text(fixture, "b.iso") == "mine")
        #expect(try fixture.names == ["b (1).iso", "b (2).iso", "b.iso"])
    }

    @Test("A name from the URL does not replace a file either")
    func nameOfURL() async throws {
        let fixture = try DownloadFixture(1_000)
        try Data("mine".utf8).write(to: fixture.destination)
        let file = try await Self.download(fixture, existing: .replace).value
        #expect(file.url.lastPathComponent == "a (1).iso")
        #expect(try Self.text(fixture, "a.iso") == "mine")
        let given = try await fixture.service.GET("/x").download(into: fixture.folder, name: "a.iso").value
        #expect(given.url.lastPathComponent == "a.iso")
        #expect(try fixture.fileHas(fixture.content))
    }

    @Test("With `existing: .fail`, a file with the suggested name is an error")
    func failing() async throws {
        let fixture = try Self.fixture()
        try Data("mine".utf8).write(to: fixture.folder.appendingPathComponent("b.iso"))
        let error = await #expect(throws: WebServiceError.self) {
            try await Self.download(fixture, existing: .fail).value
        }
        #expect(error?.code == .download)
        #expect((error?.underlying as? POSIXError)?.code == .EEXIST)
        #expect(try Self.text(fixture, "b.iso") == "mine")
        #expect(try fixture.names == ["b.iso"])
    }

    @Test("A link, a folder and a hidden file at the suggested name are not replaced")
    func otherEntries() async throws {
        let target = try Self.fixture()
        try Data("mine".utf8).write(to: target.destination)
        let fixture = try Self.fixture()
        let link = fixture.folder.appendingPathComponent("b.iso")
        for destination in [target.destination, target.folder.appendingPathComponent("missing")] {
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: destination)
            #expect(try await Self.download(fixture).value.url.lastPathComponent == "b (1).iso")
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link.path) == destination.path)
            try FileManager.default.removeItem(at: link)
            try FileManager.default.removeItem(at: fixture.folder.appendingPathComponent("b (1).iso"))
        }
        #expect(try Self.text(target, "a.iso") == "mine")
        #expect(try target.names == ["a.iso"])
        try FileManager.default.createDirectory(at: link, withIntermediateDirectories: false)
        #expect(try await Self.download(fixture).value.url.lastPathComponent == "b (1).iso")

        let hidden = try Self.fixture(name: ".profile")
        try Data("mine".utf8).write(to: hidden.folder.appendingPathComponent(".profile"))
        #expect(try await Self.download(hidden).value.url.lastPathComponent == "profile")
        #expect(try Self.text(hidden, ".profile") == "mine")
    }

    @Test("A file that appears during the download is not replaced")
    func appearing() async throws {
        let fixture = try DownloadFixture(1_000)
        let content = fixture.content
        let folder = fixture.folder
        let arrival = DispatchSemaphore(value: 0)
        fixture.serve { request, _ in
            var response = Self.suggesting("b.iso", content, request)
            let body = response.data
            response.headers[.contentLength] = "\(body.count)"
            response.writer = { writer in
                try writer.write(body.prefix(10))
                _ = arrival.wait(timeout: .now() + 60)
                for name in ["b.iso", "b (1).iso"] {
                    try Data("mine".utf8).write(to: folder.appendingPathComponent(name))
                }
                try writer.write(body.dropFirst(10))
            }
            return response
        }
        let file = try await Self.download(fixture).onProgress { _ in arrival.signal() }.value
        #expect(file.url.lastPathComponent == "b (2).iso")
        #expect(try Data(contentsOf: file.url) == content)
        for name in ["b.iso", "b (1).iso"] { #expect(try Self.text(fixture, name) == "mine") }
        #expect(try fixture.names == ["b (1).iso", "b (2).iso", "b.iso"])
    }

    @Test("Downloads with the same suggested name at the same time are different files")
    func simultaneous() async throws {
        let fixture = try DownloadFixture(1_000)
        let contents = (0..<8).map { DownloadFixture.content(1_000, seed: $0) }
        fixture.serve { request, _ in
            Self.suggesting("b.iso", contents[Int(request.path.dropFirst()) ?? 0], request)
        }
        let files = try await withThrowingTaskGroup { group in
            for number in contents.indices {
                group.addTask { (number, try await Self.download(fixture, "/\(number)").value.url) }
            }
            return try await group.reduce(into: [(Int, URL)]()) { $0.append($1) }
        }
        #expect(Set(files.map(\.1)).count == contents.count)
        for (number, url) in files { #expect(try Data(contentsOf: url) == contents[number]) }
        #expect(try fixture.names == (["b.iso"] + (1...7).map { "b (\($0)).iso" }).sorted())
    }

    @Test("The bytes of another interrupted download with the suggested name remain")
    func otherPart() async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        let other = DownloadFixture.content(1_000, seed: 1)
        fixture.serve { request, _ in Self.suggesting("a.iso", other, request) }
        for existing in [DownloadedFile.Existing.resume, .replace] {
            let file = try await Self.download(fixture, "/other", existing: existing).value
            #expect(file.url.lastPathComponent == (existing == .resume ? "a (1).iso" : "a (2).iso"))
            #expect(try Data(contentsOf: file.url) == other)
        }
        #expect(try fixture.partHas(fixture.content.prefix(400_000)))
        fixture.serve { [content = fixture.content] request, _ in Self.suggesting("a.iso", content, request) }
        let file = try await Self.download(fixture).value
        #expect(file.resumedFrom == 400_000)
        #expect(file.url.lastPathComponent == "a.iso")
        #expect(try fixture.fileHas(fixture.content))
    }
}
