import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
@testable import WebServiceTransfers

/// The list of earlier uploads.
@Suite("List of earlier uploads", .permit(minutes: 10))
struct UploadPartialTests {
    private typealias Partial = UploadedFile.Partial

    private func code(_ body: () async throws -> Void) async -> WebServiceError.Code? {
        do { try await body() } catch { return (error as? WebServiceError)?.code }
        return nil
    }

    /// Leaves the state of an upload of a file.
    ///
    /// - Returns: The URL of the state.
    @discardableResult
    private func leave(_ name: String, in folder: URL, url: String = "https://h/files") throws -> URL {
        let file = folder.appendingPathComponent(name)
        let listing = UploadState.Listing(protocol: "tus", method: "POST", url: url, file: file.path)
        let state = UploadState(
            request: listing.request, size: 7, modified: 1, changed: 1, prefix: "p", location: "https://h/u/\(name)",
            listing: listing)
        let entry = folder.appendingPathComponent(
            UploadStateFile.name(file, isElsewhere: false, request: listing.request))
        try #require(state.encoded).write(to: entry)
        return entry
    }

    @Test("An interrupted upload is listed with its values", arguments: UploadProtocol.allCases, [false, true])
    func values(_ kind: UploadProtocol, _ isElsewhere: Bool) async throws {
        let fixture = try UploadFixture(
            kind, 350_000,
            UploadServer.Settings(limit: "min-size=0, max-age=3600", expires: "Fri, 01 Jan 2100 00:00:00 GMT"))
        let states = TemporaryFolder.forTest()
        fixture.server.set { request, number in request.method == .PATCH && number == 3 ? .lost : nil }
        await #expect(throws: URLError.self) { try await fixture.upload(state: isElsewhere ? states.url : nil).value }
        let folder = isElsewhere ? states.url : fixture.folder.url
        let before = try names(in: folder)
        let found = try await Partial.list(in: folder)
        let upload = try #require(found.first)
        #expect(found.count == 1)
        #expect(upload.file.path == fixture.file.path)
        #expect(upload.url.absoluteString == fixture.server.server.baseURLString + "/files/1")
        #expect(upload.location.absoluteString == fixture.server.server.baseURLString + "/uploads/1")
        #expect(upload.protocol == kind)
        #expect(upload.byteCount == 350_000)
        #expect(upload.bytesSent == 300_000)
        #expect(try #require(upload.expires) > Date())
        #expect(!upload.isInProgress)
        let entry = try #require(before.first { $0.hasSuffix(".webservice-upload") })
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.appendingPathComponent(entry).path)
        let changed = try #require(attributes[.modificationDate] as? Date)
        #expect(abs(upload.lastChange.timeIntervalSince(changed)) < 0.001)
        #expect(try names(in: folder) == before)
    }

    @Test("A listed upload is continued, and a finished one is not listed", arguments: UploadTests.combinations)
    func continued(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        let fixture = try UploadFixture(kind, over: session)
        try await fixture.interrupt(after: 2)
        let upload = try #require(try await Partial.list(in: fixture.folder.url).first)
        // Another process has another service.
        let service = WebService("http://localhost:1", session: try session.session())
        let file = try await upload.task(with: service).upload(resuming: upload.protocol).value
        #expect(file.resumedFrom == 200_000)
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
        #expect(try await Partial.list(in: fixture.folder.url).isEmpty)
    }

    @Test("An upload whose file no longer exists, or has changed, is ended", arguments: UploadTests.combinations)
    func ended(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        for isRemoved in [false, true] {
            let fixture = try UploadFixture(kind, over: session)
            let states = TemporaryFolder.forTest().url
            fixture.server.set { request, number in
                request.method == .PATCH && number == 3 ? MockResponse(statusCode: 500) : nil
            }
            await #expect(throws: WebServiceError.self) { try await fixture.upload(state: states).value }
            fixture.server.set(nil)
            fixture.server.forgetRequests()
            if isRemoved {
                try FileManager.default.removeItem(at: fixture.file)
            } else {
                try Data("short".utf8).write(to: fixture.file)
            }
            let upload = try #require(try await Partial.list(in: states).first)
            let end = { upload.task(with: fixture.service).endUpload(resuming: upload.protocol, state: states) }
            #expect(try await end().value)
            #expect(fixture.server.log == ["DELETE /uploads/1"])
            #expect(fixture.server.violations == [])
            #expect(try names(in: states) == [])
            #expect(try await end().value == false)
        }
    }

    @Test("The URL of a listed upload has the query and the characters of its request")
    func query() async throws {
        let fixture = try UploadFixture(.tus)
        let task = fixture.service.PUT("/files/{name}", pathParameters: ["name": "a b/ü{x}"])
            .setBody(file: fixture.file).setQueryParameters(["q": "1+1 =", "é": "%7B"])
        fixture.server.set { request, _ in request.method == .PATCH ? .lost : nil }
        await #expect(throws: URLError.self) {
            try await task.upload(resuming: .tus, pieceSize: UploadFixture.pieceSize).value
        }
        fixture.server.set(nil)
        let upload = try #require(try await Partial.list(in: fixture.folder.url).first)
        #expect(try await upload.task(with: fixture.service).upload(resuming: .tus).value.resumedFrom == 100_000)
    }

    @Test("The state of another request ends nothing")
    func foreignState() async throws {
        let fixture = try UploadFixture(.tus)
        try await fixture.interrupt(after: 2)
        let entry = try #require(try fixture.state)
        var state = try #require(UploadState(encoded: Data(contentsOf: entry)))
        state.request = "other"
        try #require(state.encoded).write(to: entry)
        fixture.server.forgetRequests()
        #expect(try await fixture.request.endUpload(resuming: .tus).value == false)
        #expect(fixture.server.log == [])
    }

    @Test("A removed upload sends nothing, and the next one starts over")
    func removed() async throws {
        let fixture = try UploadFixture(.tus)
        try await fixture.interrupt(after: 2)
        fixture.server.forgetRequests()
        let upload = try #require(try await Partial.list(in: fixture.folder.url).first)
        try await upload.remove()
        #expect(try fixture.names == ["a.iso"])
        try await upload.remove()
        #expect(fixture.server.log == [])
        #expect(try await fixture.upload().value.resumedFrom == 0)
    }

    @Test("An upload in progress in this process is listed as such, and not removed")
    func inProgress() async throws {
        let fixture = try UploadFixture(.draft)
        let found = Collected<Partial>()
        let codes = Collected<WebServiceError.Code?>()
        fixture.server.set { request, number in
            guard request.method == .PATCH, number == 2 else { return nil }
            let signal = DispatchSemaphore(value: 0)
            Task {
                for upload in (try? await Partial.list(in: fixture.folder.url)) ?? [] {
                    found.add(upload)
                    codes.add(await code { try await upload.remove() })
                }
                signal.signal()
            }
            signal.wait()
            return nil
        }
        _ = try await fixture.upload().value
        #expect(found.values.map(\.isInProgress) == [true])
        #expect(codes.values == [.uploadInProgress])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("An upload in progress in another process is listed as such, until the process is killed")
    func otherProcess() async throws {
        let fixture = try UploadFixture(.tus)
        let process = ChildProcess(
            programPath("session-probe"),
            [
                "upload", fixture.server.server.baseURLString + "/files/1", fixture.file.path, "tus",
                "\(UploadFixture.pieceSize)", "-1",
            ], environment: ["SWIFT_BACKTRACE": "enable=no"], input: .null, output: .null)
        let found = Collected<Bool>()
        fixture.server.set { request, number in
            guard request.method == .PATCH, number == 2 else { return nil }
            let signal = DispatchSemaphore(value: 0)
            Task {
                found.add(((try? await Partial.list(in: fixture.folder.url)) ?? []).map(\.isInProgress) == [true])
                process.send(SIGKILL)
                signal.signal()
            }
            signal.wait()
            return nil
        }
        try process.run()
        #expect(try await blocking { process.waitUntilExit() } == -SIGKILL)
        #expect(found.values == [true])
        let upload = try #require(try await Partial.list(in: fixture.folder.url).first)
        #expect(!upload.isInProgress)
        try await upload.remove()
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("Locks of lists do not disturb an upload that begins, or a removal")
    func race() async throws {
        let folder = TemporaryFolder.forTest().url
        let file = folder.appendingPathComponent("a")
        let entry = try leave("a", in: folder)
        let request = try #require(UploadState(encoded: Data(contentsOf: entry))).request
        let upload = try #require(try await Partial.list(in: folder).first)
        let (hasBegun, isOver) = (ThreadSignal(), OnceFlag())
        defer { _ = isOver.set() }
        let handle = try FileHandle(forReadingFrom: entry)
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
            for _ in 0..<amount(300, thorough: 3_000) {
                let state = try UploadStateFile(file, in: nil, request: request)
                #expect(state.stored() != nil)
                state.close(isUnwanted: false)
            }
        }
        try await upload.remove()
        _ = isOver.set()
        try await lists.value
        #expect(try names(in: folder) == [])
    }

    @Test("A state that was stored again since it was listed is not removed")
    func changed() async throws {
        let folder = TemporaryFolder.forTest().url
        let entry = try leave("a", in: folder)
        let upload = try #require(try await Partial.list(in: folder).first)
        let state = try #require(UploadState(encoded: Data(contentsOf: entry)))
        let file = try UploadStateFile(folder.appendingPathComponent("a"), in: nil, request: state.request)
        #expect(file.stored() != nil)
        try file.store(state)
        file.close(isUnwanted: false)
        #expect(await code { try await upload.remove() } == .uploadInProgress)
        #expect(try await Partial.list(in: folder).count == 1)
    }

    @Test("Damaged, renamed and foreign states, links, FIFOs and folders are not listed")
    func hostile() async throws {
        let folder = TemporaryFolder.forTest().url
        let entry = try leave("a", in: folder)
        let bytes = try Data(contentsOf: entry)
        let name = { (prefix: String) in folder.appendingPathComponent(".\(prefix).webservice-upload") }
        for length in stride(from: 0, to: bytes.count, by: 13) {
            try bytes.prefix(length).write(to: name("cut\(length)"))
        }
        try bytes.write(to: name("renamed"))
        try Data(count: 1 << 20).write(to: name("long"))
        try FileManager.default.createSymbolicLink(at: name("link"), withDestinationURL: entry)
        try FileManager.default.createDirectory(at: name("folder"), withIntermediateDirectories: false)
        #expect(mkfifo(name("fifo").path, 0o600) == 0)
        try leave("b", in: folder, url: "\u{1}")
        if geteuid() == 0 {
            let other = try leave("c", in: folder)
            #expect(chown(other.path, 12_345, 12_345) == 0)
        }
        #expect(try await Partial.list(in: folder).map(\.file.lastPathComponent) == ["a"])
    }

    @Test("A folder that does not exist has no uploads; one that cannot be read is an error")
    func folders() async throws {
        let folder = TemporaryFolder.forTest()
        #expect(try await Partial.list(in: folder.url.appendingPathComponent("none")).isEmpty)
        let file = try folder.file("a")
        #expect(await code { _ = try await Partial.list(in: file) } == .upload)
        let web = try #require(URL(string: "https://h/\(file.lastPathComponent)"))
        #expect(await code { _ = try await Partial.list(in: web) } == .upload)
    }

    @Test("Thousands of uploads are listed, the oldest first")
    func many() async throws {
        let folder = TemporaryFolder.forTest().url
        let count = amount(1_000, thorough: 5_000)
        for number in 0..<count { try leave("\(number)", in: folder) }
        let oldest = try leave("\(count / 2)", in: folder)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: oldest.path)
        let found = try await Partial.list(in: folder)
        #expect(found.count == count)
        #expect(found.first?.file.lastPathComponent == "\(count / 2)")
    }

    @Test("A state of the first version is continued, and listed from then on")
    func firstVersion() async throws {
        let fixture = try UploadFixture(.tus)
        try await fixture.interrupt(after: 2)
        let entry = try #require(try fixture.state)
        let old = try #require(UploadState(encoded: Data(contentsOf: entry))).withoutListing
        #expect(old.listing == nil)
        try #require(old.encoded).write(to: entry)
        #expect(try await Partial.list(in: fixture.folder.url).isEmpty)
        fixture.server.set { request, _ in request.method == .PATCH ? .lost : nil }
        await #expect(throws: URLError.self) { try await fixture.upload().value }
        fixture.server.set(nil)
        #expect(try await Partial.list(in: fixture.folder.url).count == 1)
        #expect(try await fixture.upload().value.resumedFrom == 200_000)
    }

    @Test("The bytes of a state of the first version are read")
    func golden() throws {
        let bytes = Data(
            """
            webservice-upload 1 b7a49d14da5b0ea8
            {"changed":2.5,"checksum":"sha1","limits":{},"location":"https:\\/\\/example.com\\/u","modified":1.5,\
            "prefix":"p","request":"r","size":7}
            """.utf8)
        let state = try #require(UploadState(encoded: bytes))
        #expect(state.location == "https://example.com/u")
        #expect(state.checksum == "sha1")
        #expect(state.listing == nil)
    }

    @Test("A state that would be too long is stored without its request, and not listed")
    func long() async throws {
        let folder = TemporaryFolder.forTest().url
        let entry = try leave("a", in: folder)
        var state = try #require(UploadState(encoded: Data(contentsOf: entry)))
        state.listing?.url += String(repeating: "a", count: UploadState.maximumLength)
        let file = try UploadStateFile(folder.appendingPathComponent("a"), in: nil, request: state.request)
        try file.store(state)
        #expect(file.stored() == state.withoutListing)
        file.close(isUnwanted: false)
        #expect(try await Partial.list(in: folder).isEmpty)
    }

    @Test("A file and its state that were moved together, and a file with a long name, are continued")
    func places() async throws {
        let fixture = try UploadFixture(.draft)
        try await fixture.interrupt(after: 2)
        let moved = TemporaryFolder.forTest().url.appendingPathComponent("moved")
        try FileManager.default.moveItem(at: fixture.folder.url, to: moved)
        let upload = try #require(try await Partial.list(in: moved).first)
        #expect(upload.file.path == moved.appendingPathComponent("a.iso").path)
        #expect(try await upload.task(with: fixture.service).upload(resuming: .draft).value.resumedFrom == 200_000)

        let other = try UploadFixture(.tus)
        let file = try other.folder.file(String(repeating: "é", count: 120), other.content)
        other.server.set { request, _ in request.method == .PATCH ? .lost : nil }
        let task = other.service.PUT("/files/1").setBody(file: file).upload(resuming: .tus, pieceSize: 100_000)
        await #expect(throws: URLError.self) { try await task.value }
        other.server.set(nil)
        let long = try #require(try await Partial.list(in: other.folder.url).first)
        #expect(long.file.path == file.path)
        #expect(try await long.task(with: other.service).upload(resuming: .tus).value.resumedFrom == 100_000)
    }
}
