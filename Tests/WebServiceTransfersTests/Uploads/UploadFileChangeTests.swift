import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
@testable import WebServiceTransfers

/// Files that are replaced, written to or only touched during an upload or between two.
@Suite("Changes of uploaded files", .permit)
struct UploadFileChangeTests {
    enum Change: CaseIterable {
        case replaced, replacedWithSameDate, rewrittenWithSameDate, truncated

        /// Changes the file, and restores its date unless it is only replaced.
        func apply(to fixture: UploadFixture) throws {
            let path = fixture.file.path
            let date = try #require(try FileManager.default.attributesOfItem(atPath: path)[.modificationDate])
            switch self {
            case .replaced, .replacedWithSameDate:
                let other = try fixture.folder.file("other", UploadFixture.content(fixture.content.count, seed: 7))
                if self == .replacedWithSameDate {
                    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: other.path)
                }
                guard rename(other.path, path) == 0 else { throw POSIXError(.EIO) }
            case .rewrittenWithSameDate:
                let handle = try FileHandle(forWritingTo: fixture.file)
                try handle.seek(toOffset: 70_000)
                try handle.write(contentsOf: Data("changed".utf8))
                try handle.close()
                try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
            case .truncated:
                try FileHandle(forWritingTo: fixture.file).truncate(atOffset: 10)
            }
        }
    }

    enum Touch: CaseIterable {
        case permissions, hardLink, moved

        /// Changes only the status of the file.
        func apply(to fixture: UploadFixture) throws {
            let (path, other) = (fixture.file.path, fixture.folder.url.appendingPathComponent("other").path)
            switch self {
            case .permissions: try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
            case .hardLink:
                guard link(path, other) == 0, unlink(other) == 0 else { throw POSIXError(.EIO) }
            case .moved:
                guard rename(path, other) == 0, rename(other, path) == 0 else { throw POSIXError(.EIO) }
            }
        }
    }

    @Test(
        "A file that is replaced or written to during an upload is an error, with each protocol",
        arguments: UploadProtocol.allCases, Change.allCases)
    func changed(_ kind: UploadProtocol, _ change: Change) async throws {
        let fixture = try UploadFixture(kind)
        // A date of whole seconds can be restored exactly.
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)], ofItemAtPath: fixture.file.path)
        let pieces = Mutex(0)
        fixture.server.set { request, _ in
            guard !request.body.isEmpty,
                pieces.withLock({
                    $0 += 1; return $0 == 2
                })
            else { return nil }
            do { try change.apply(to: fixture) } catch { Issue.record(error) }
            return nil
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.code == .upload)
        #expect(error?.message.contains("changed while it was uploaded") == true)
        fixture.server.set(nil)
        let content = try Data(contentsOf: fixture.file)
        #expect(try await fixture.upload().value.resumedFrom == 0)
        let isStored = fixture.server.current.uploads.values.contains { $0.isComplete && $0.data == content }
        #expect(isStored)
    }

    @Test(
        "A file that is replaced while its last bytes are sent is an error",
        arguments: UploadProtocol.allCases, [50_000, 350_000])
    func changedAtTheEnd(_ kind: UploadProtocol, _ count: Int) async throws {
        let fixture = try UploadFixture(kind, count)
        fixture.server.set { request, _ in
            let isLast = request.headers["Upload-Complete"] == "?1" || request.body.count == 50_000
            guard isLast, !request.body.isEmpty else { return nil }
            do { try Change.replacedWithSameDate.apply(to: fixture) } catch { Issue.record(error) }
            return nil
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.message.contains("changed while it was uploaded") == true)
        #expect(try fixture.state == nil)
    }

    @Test("A file that is replaced during an ordinary request is an error")
    func changedInOrdinaryRequest() async throws {
        let fixture = try UploadFixture(.tus)
        fixture.server.set { request, _ in
            guard request.method != .OPTIONS else { return MockResponse(statusCode: 404) }
            do { try Change.replaced.apply(to: fixture) } catch { Issue.record(error) }
            return MockResponse(statusCode: 201)
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.upload().value }
        #expect(error?.message.contains("changed while it was uploaded") == true)
    }

    @Test(
        "Changed permissions, names and links restart no upload, during one and between two",
        arguments: UploadProtocol.allCases, Touch.allCases)
    func touched(_ kind: UploadProtocol, _ touch: Touch) async throws {
        let fixture = try UploadFixture(kind)
        try await fixture.interrupt(after: 2)
        try touch.apply(to: fixture)
        fixture.server.set { request, _ in
            guard request.method == .PATCH else { return nil }
            do { try touch.apply(to: fixture) } catch { Issue.record(error) }
            return nil
        }
        let file = try await fixture.upload().value
        #expect(file.resumedFrom == 200_000)
        #expect(file.restarts == 0)
        #expect(fixture.isStored)
        #expect(fixture.server.violations == [])
    }

    @Test(
        "A touched file continues again after a second interruption, within the bytes that were read",
        arguments: UploadProtocol.allCases)
    func interruptedTwice(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        try await fixture.interrupt(after: 1)
        try Touch.permissions.apply(to: fixture)
        fixture.service.interceptors = [.retry(baseDelay: .zero)]
        let pieces = Mutex(0)
        fixture.server.set { request, _ in
            guard !request.body.isEmpty else { return nil }
            // The first two pieces are stored, so that the server has more than before the change.
            return pieces.withLock {
                $0 += 1; return $0 == 3 ? MockResponse(statusCode: 503) : nil
            }
        }
        let file = try await fixture.upload().value
        #expect(pieces.withLock { $0 } == 4)
        #expect(file.resumedFrom == 100_000)
        #expect(file.restarts == 0)
        #expect(fixture.isStored)
    }

    @Test("A file that is removed during an upload is sent completely")
    func removed() async throws {
        let fixture = try UploadFixture(.tus)
        fixture.server.set { request, _ in
            if request.method == .PATCH { unlink(fixture.file.path) }
            return nil
        }
        _ = try await fixture.upload().value
        #expect(fixture.isStored)
    }

    @Test(
        "A file that is removed or moved while one request contains all of it is sent completely",
        arguments: [false, true])
    func removedInWholeRequest(_ isMoved: Bool) async throws {
        let fixture = try UploadFixture(.draft, 50_000)
        fixture.server.set { request, _ in
            guard !request.body.isEmpty else { return nil }
            let (path, other) = (fixture.file.path, fixture.folder.url.appendingPathComponent("other").path)
            if (isMoved ? rename(path, other) : unlink(path)) != 0 { Issue.record(POSIXError(.EIO)) }
            return nil
        }
        _ = try await fixture.upload().value
        #expect(fixture.isStored)
        #expect(try fixture.state == nil)
    }

    @Test("Bytes that were sent and are not known to be unchanged are sent again")
    func unknownContent() async throws {
        let fixture = try UploadFixture(.tus)
        try await fixture.interrupt(after: 2)
        let file = try #require(try fixture.state)
        var state = try #require(UploadState(encoded: try Data(contentsOf: file)))
        #expect(state.content?.length == 300_000)
        state.content = nil
        try #require(state.encoded).write(to: file)
        try Touch.permissions.apply(to: fixture)
        let uploaded = try await fixture.upload().value
        #expect(uploaded.resumedFrom == 0)
        #expect(uploaded.restarts == 1)
        #expect(fixture.server.current.uploads["/uploads/2"]?.data == fixture.content)
    }

    @Test("A hash of the first bytes is the same however it was extended")
    func hash() {
        let bytes = UploadFixture.content(300_000)
        func hash(_ ends: [Int64], of bytes: Data = bytes) -> ContentHash {
            var hash = ContentHash()
            for end in ends { hash.extend(to: end) { bytes[Int($0.lowerBound)..<Int($0.upperBound)] } }
            return hash
        }
        let expected = hash([300_000])
        #expect(expected.length == 300_000)
        let ends: [[Int64]] = [
            [1, 300_000], [65_536, 300_000], [100_000, 200_000, 300_000], [65_535, 65_537, 131_072, 300_000],
        ]
        for ends in ends { #expect(hash(ends) == expected) }
        #expect(hash([300_000, 10]) == expected)
        #expect(hash([299_999]) != expected)
        for index in [0, 65_535, 65_536, 299_999] {
            var other = bytes
            other[index] ^= 1
            #expect(hash([300_000], of: other) != expected)
            #expect(hash([100_000, 300_000], of: other) != expected)
        }
    }
}
