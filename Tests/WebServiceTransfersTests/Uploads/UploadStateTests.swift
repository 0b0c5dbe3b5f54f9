import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
@testable import WebServiceTransfers

/// The stored state of uploads.
@Suite("The state of uploads", .permit)
struct UploadStateTests {
    private let state = UploadState(
        request: "r", size: 7, modified: 1.5, changed: 2.5, prefix: "p", location: "https://example.com/u",
        expires: nil,
        checksum: "sha1")

    @Test("A state that is encoded and decoded is equal")
    func roundTrip() throws {
        #expect(UploadState(encoded: try #require(state.encoded)) == state)
    }

    @Test("No truncated or changed state is decoded")
    func damage() throws {
        let bytes = try #require(state.encoded)
        let decoded = (0..<bytes.count).filter { UploadState(encoded: bytes.prefix($0)) != nil }
        #expect(decoded == [])
        let flipped = (0..<bytes.count).filter { index in
            var changed = bytes
            changed[index] ^= 1
            return UploadState(encoded: changed) != nil
        }
        #expect(flipped == [])
    }

    @Test("A state of another request, or of a file with another size, date or prefix, is not used")
    func identity() {
        var others = [state, state, state, state]
        others[0].request = "s"
        others[1].size = 8
        others[2].modified = 1
        others[3].prefix = "q"
        #expect(others.filter { $0.isSameUpload(as: state) }.count == 0)
        #expect(state.isSameUpload(as: state))
    }

    @Test("A state that is too long is not encoded")
    func long() {
        var state = state
        state.location = String(repeating: "a", count: UploadState.maximumLength)
        #expect(state.encoded == nil)
    }

    @Test("A damaged state starts the upload over", arguments: [0, 1, 40, 200, -1])
    func damagedState(_ length: Int) async throws {
        let fixture = try UploadFixture(.tus)
        try await fixture.interrupt(after: 2)
        let file = try #require(try fixture.state)
        let bytes = try Data(contentsOf: file)
        try (length < 0 ? bytes + Data("x".utf8) : bytes.prefix(length)).write(to: file)
        let uploaded = try await fixture.upload().value
        #expect(uploaded.resumedFrom == 0)
        #expect(fixture.server.violations == [])
        #expect(fixture.server.current.uploads["/uploads/2"]?.data == fixture.content)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A file whose size, date, first or later bytes have changed starts over", arguments: 0...3)
    func changedFile(_ change: Int) async throws {
        let fixture = try UploadFixture(.draft)
        try await fixture.interrupt(after: 2)
        let date = try #require(
            try FileManager.default.attributesOfItem(atPath: fixture.file.path)[.modificationDate] as? Date)
        var content = fixture.content
        switch change {
        case 0: content += Data("x".utf8)
        case 1: content = UploadFixture.content(350_000, seed: 2)
        case 3: content.replaceSubrange(250_000..<250_001, with: [content[250_000] ^ 1])
        default: break
        }
        try content.write(to: fixture.file)
        try FileManager.default.setAttributes(
            [.modificationDate: change == 2 ? date.addingTimeInterval(5) : date], ofItemAtPath: fixture.file.path)
        let uploaded = try await fixture.upload().value
        #expect(uploaded.resumedFrom == 0)
        #expect(fixture.server.violations == [])
        let isStored = fixture.server.current.uploads["/uploads/2"]?.data == content
        #expect(isStored)
    }

    @Test(
        "A file that changes while it is uploaded is an error, and never a whole file on the server")
    func changesMeanwhile() async throws {
        let fixture = try UploadFixture(.tus)
        fixture.server.set { _, number in
            if number == 2 { try? Data("short".utf8).write(to: fixture.file) }
            return nil
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(fixture.server.upload?.isComplete == false)
    }

    @Test("Another URL, method or protocol has its own state")
    func otherRequest() async throws {
        let fixture = try UploadFixture(.tus)
        try await fixture.interrupt(after: 2)
        let tasks = [fixture.service.PUT("/files/2"), fixture.service.POST("/files/1")]
        for task in tasks {
            let file = try await task.setBody(file: fixture.file)
                .upload(resuming: .tus, pieceSize: UploadFixture.pieceSize).value
            #expect(file.resumedFrom == 0)
        }
        #expect(try await fixture.upload().value.resumedFrom == 200_000)
    }

    @Test("A state in a folder of the caller distinguishes files of the same name")
    func ownFolder() async throws {
        let fixture = try UploadFixture(.tus)
        let states = TemporaryFolder()
        fixture.server.set { request, _ in request.method == .PATCH ? .lost : nil }
        await #expect(throws: URLError.self) { try await fixture.upload(state: states.url).value }
        #expect(try fixture.names == ["a.iso"])
        #expect(try names(in: states.url).count == 1)
        #expect(try mode(of: states.url.appendingPathComponent(try #require(try names(in: states.url).first))) == 0o600)
        fixture.server.set(nil)
        let twin = try TemporaryFolder.forTest().file("a.iso", fixture.content)
        let other = try await fixture.service.PUT("/files/1").setBody(file: twin)
            .upload(resuming: .tus, pieceSize: UploadFixture.pieceSize, state: states.url).value
        #expect(other.resumedFrom == 0)
        #expect(try await fixture.upload(state: states.url).value.resumedFrom == 100_000)
        #expect(try names(in: states.url) == [])
    }

    @Test("A folder that does not exist fails before anything is sent")
    func noFolder() async throws {
        let fixture = try UploadFixture(.tus)
        let error = await #expect(throws: WebServiceError.self) {
            try await fixture.upload(state: fixture.folder.url.appendingPathComponent("none")).value
        }
        #expect(error?.code == .upload)
        #expect((error?.underlying as? POSIXError)?.code == .ENOENT)
        #expect(fixture.server.log == [])
    }

    @Test("A long file name is replaced by a hash")
    func longName() async throws {
        let fixture = try UploadFixture(.tus)
        let name = String(repeating: "é", count: 120)
        let file = try fixture.folder.file(name, fixture.content)
        fixture.server.set { request, _ in request.method == .PATCH ? .lost : nil }
        let task = { fixture.service.PUT("/files/1").setBody(file: file).upload(resuming: .tus, pieceSize: 100_000) }
        await #expect(throws: URLError.self) { try await task().value }
        fixture.server.set(nil)
        #expect(try await task().value.resumedFrom == 100_000)
    }
}

#if os(Linux)
/// Uploads whose state cannot be written.
@Suite("The state of uploads on a small disk", .permit)
struct UploadStateDiskTests {
    @Test(
        "A full disk fails before anything is sent, and the upload succeeds when there is space",
        .enabled(if: SmallDisk.canMount, "requires the permission to mount a file system"))
    func full() async throws {
        try await SmallDisk.with(kilobytes: 64) { disk in
            let fixture = try UploadFixture(.draft)
            let filler = disk.appendingPathComponent("filler")
            try Data(count: 64 << 10).write(to: filler)
            let error = await #expect(throws: WebServiceError.self) { try await fixture.upload(state: disk).value }
            #expect(error?.code == .upload)
            #expect((error?.underlying as? POSIXError)?.code == .ENOSPC)
            #expect(fixture.server.log == [])
            try FileManager.default.removeItem(at: filler)
            _ = try await fixture.upload(state: disk).value
            let isStored = fixture.isStored
            #expect(isStored)
        }
    }

    @Test(
        "A disk that becomes full ends the upload with an error, and its state remains readable",
        .enabled(if: SmallDisk.canMount, "requires the permission to mount a file system"))
    func becomesFull() async throws {
        try await SmallDisk.with(kilobytes: 64) { disk in
            let fixture = try UploadFixture(.draft)
            let filler = disk.appendingPathComponent("filler")
            fixture.server.set { request, _ in
                if request.method == .PUT { try? FullDisk.fill(filler) }
                return nil
            }
            let error = await #expect(throws: WebServiceError.self) { try await fixture.upload(state: disk).value }
            #expect(error?.code == .upload)
            #expect((error?.underlying as? POSIXError)?.code == .ENOSPC)
            fixture.server.set(nil)
            try FileManager.default.removeItem(at: filler)
            _ = try await fixture.upload(state: disk).value
            #expect(fixture.server.violations == [])
            #expect(fixture.server.current.uploads.values.filter(\.isComplete).map(\.data).contains(fixture.content))
        }
    }

    @Test(
        "A read-only folder fails before anything is sent",
        .enabled(if: SmallDisk.canMount, "requires the permission to mount a file system"))
    func readOnly() async throws {
        try await SmallDisk.with(kilobytes: 64) { disk in
            try #require(FullDisk.makeReadOnly(disk))
            let fixture = try UploadFixture(.tus)
            let error = await #expect(throws: WebServiceError.self) { try await fixture.upload(state: disk).value }
            #expect(error?.code == .upload)
            #expect((error?.underlying as? POSIXError)?.code == .EROFS)
            #expect(fixture.server.log == [])
        }
    }
}
#endif
