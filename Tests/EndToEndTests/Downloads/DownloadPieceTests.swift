import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Downloads by several requests at a time.
@Suite("Downloads in pieces", .permit)
struct DownloadPieceTests {
    private static let piece = 8 << 20
    private static let content = DownloadFixture.content(44 << 20)

    /// Returns the requested part of the file.
    @Sendable
    private static func part(_ request: ReceivedRequest) -> MockResponse {
        MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
    }

    private static func download(
        _ fixture: DownloadFixture, connections: Int = 4
    ) async throws -> DownloadedFile {
        try await fixture.service.GET("/a.iso").download(to: fixture.destination, connections: connections).value
    }

    /// The ranges of all pieces, sorted.
    private static let ranges = (0..<6).map { "bytes=\($0 * piece)-\(min(($0 + 1) * piece, content.count) - 1)" }
        .sorted()

    @Test("Several connections download the pieces of a large file", arguments: [2, 4, 64])
    func pieces(connections: Int) async throws {
        let active = Mutex((now: 0, most: 0))
        let fixture = try DownloadFixture(0) { request, _ in
            var response = Self.part(request)
            let body = response.data
            response.headers[.contentLength] = "\(body.count)"
            response.writer = { writer in
                active.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                defer { active.withLock { $0.now -= 1 } }
                writer.pause(for: .milliseconds(50))
                try writer.write(body)
            }
            return response
        }
        let file = try await Self.download(fixture, connections: connections)
        #expect(try fixture.fileHas(Self.content))
        #expect(try fixture.names == ["a.iso"])
        #expect(file.byteCount == Int64(Self.content.count))
        #expect(file.response.status == 206)
        #expect(fixture.ranges.sorted() == Self.ranges)
        #expect(fixture.requests.dropFirst().allSatisfy { $0.headers["If-Range"] == DownloadFixture.tag })
        #expect(active.withLock { $0.most } >= 2)
        #expect(active.withLock { $0.most } <= connections)
    }

    @Test("A server that does not serve parts receives one request")
    func unsupported() async throws {
        let fixture = try DownloadFixture(0) { _, _ in MockResponse(statusCode: 200, data: Self.content) }
        let file = try await Self.download(fixture)
        #expect(file.restarts == 0)
        #expect(try fixture.fileHas(Self.content))
        #expect(fixture.requests.count == 1)
    }

    @Test("A file without a validator is downloaded by one request for the whole file")
    func withoutValidator() async throws {
        let fixture = try DownloadFixture(0) { request, _ in MockResponse(file: Self.content, eTag: nil, for: request) }
        _ = try await Self.download(fixture)
        #expect(try fixture.fileHas(Self.content))
        #expect(fixture.ranges == ["bytes=0-8388607", ""])
    }

    @Test("A short file is downloaded by one connection")
    func short() async throws {
        let fixture = try DownloadFixture(9 << 20)
        _ = try await Self.download(fixture)
        #expect(try fixture.fileHas(fixture.content))
        #expect(fixture.ranges == ["bytes=0-8388607", "bytes=8388608-"])
        let tiny = try DownloadFixture(1_000)
        _ = try await Self.download(tiny)
        #expect(try tiny.fileHas(tiny.content))
        #expect(tiny.ranges == ["bytes=0-8388607"])
    }

    @Test("A connection without parts is given up, and the others go on")
    func oneRefuses() async throws {
        let second = DispatchSemaphore(value: 0)
        let fixture = try DownloadFixture(0) { request, number in
            var response = Self.part(request)
            switch number {
            case 1:
                // The first connection sends no further request before the second one.
                let body = response.data
                response.headers[.contentLength] = "\(body.count)"
                response.writer = { writer in
                    _ = second.wait(timeout: .now() + .seconds(60))
                    try writer.write(body)
                }
            case 2:
                second.signal()
                response = response.whole(Self.content)
            default: break
            }
            return response
        }
        let file = try await Self.download(fixture)
        #expect(try fixture.fileHas(Self.content))
        #expect(file.restarts == 0)
        #expect(fixture.requests.count == 7)
    }

    @Test(
        "A server that accepts two of eight connections rejects few requests", arguments: [429, 503])
    func fewOfMany(status: Int) async throws {
        let content = DownloadFixture.content(96 << 20)
        let active = Mutex((now: 0, most: 0, rejected: 0))
        let fixture = try DownloadFixture(0) { request, _ in
            let isAccepted = active.withLock { active in
                guard active.now < 2 else {
                    active.rejected += 1
                    return false
                }
                active = (active.now + 1, max(active.most, active.now + 1), active.rejected)
                return true
            }
            guard isAccepted else { return MockResponse(statusCode: status) }
            var response = MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
            let body = response.data
            response.headers[.contentLength] = "\(body.count)"
            response.writer = { writer in
                writer.pause(for: .milliseconds(20))
                // The client may send its next request as soon as it has the last bytes.
                let result = Result { try writer.write(body.dropLast(1_000)) }
                active.withLock { $0.now -= 1 }
                try result.get()
                try writer.write(body.suffix(1_000))
            }
            return response
        }
        let file = try await Self.download(fixture, connections: 8)
        #expect(try fixture.fileHas(content))
        #expect(file.restarts == 0)
        let (_, most, rejected) = active.withLock { $0 }
        #expect(most == 2)
        #expect(rejected >= 1)
        // Six at the beginning, and then one after 2, 4 and 8 pieces.
        #expect(rejected <= 6 + 3)
        #expect(fixture.requests.count == 12 + rejected)
    }

    @Test("A file that changes between two pieces is downloaded again by one connection")
    func changed() async throws {
        let new = DownloadFixture.content(1_000_000, seed: 7)
        let fixture = try DownloadFixture(0) { request, number in
            number < 3 ? Self.part(request) : MockResponse(file: new, eTag: "\"v2\"", for: request)
        }
        let file = try await Self.download(fixture)
        #expect(try fixture.fileHas(new))
        #expect(file.restarts == 1)
        #expect(fixture.ranges.last == "")
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("Pieces that are interrupted or stall are continued by a retry policy")
    func interrupted() async throws {
        let fixture = try DownloadFixture(0) { request, number in
            var response = Self.part(request)
            if number == 1 { return response.cut(response.data, after: 3_000_000) }
            if number == 2 { response.wire = .stall(after: 1_000_000) }
            return response
        }
        fixture.service.interceptors = [.continuing()]
        let file = try await fixture.service.GET("/a.iso").setTimeout(.seconds(1))
            .download(to: fixture.destination, connections: 3).value
        #expect(file.restarts == 0)
        #expect(try fixture.fileHas(Self.content))
        #expect(fixture.requests.count >= 8)
    }

    @Test("A file whose pieces are all complete is not requested again", arguments: [1, 4])
    func complete(connections: Int) async throws {
        // A folder appears at the destination during the download, so the file cannot be renamed.
        let fixture = try DownloadFixture(0)
        let destination = fixture.destination
        fixture.serve { request, number in
            if number == 1 {
                try? FileManager.default.createDirectory(at: destination, withIntermediateDirectories: false)  // tested
            }
            return Self.part(request)
        }
        await #expect(throws: WebServiceError.self) { try await Self.download(fixture) }
        try FileManager.default.removeItem(at: fixture.destination)
        fixture.serve { request, _ in Self.part(request) }
        let file = try await Self.download(fixture, connections: connections)
        #expect(try fixture.fileHas(Self.content))
        #expect(fixture.ranges == ["bytes=\(Self.content.count)-"])
        #expect(file.resumedFrom == Int64(Self.content.count))
        #expect(file.response.status == 416)
    }

    @Test(
        "Complete pieces are not downloaded again, with any number of connections", arguments: [1, 4])
    func resumed(connections: Int) async throws {
        let fixture = try DownloadFixture(0) { request, number in
            let response = Self.part(request)
            return number == 4 ? response.cut(response.data, after: 3_000_000) : response
        }
        await #expect(throws: URLError.self) { try await Self.download(fixture, connections: 2) }
        let names = [".a.iso.webservice-part", ".a.iso.webservice-state"]
        #expect(try fixture.names == names)
        let before = Set(fixture.ranges)
        fixture.serve { request, _ in Self.part(request) }
        let file = try await Self.download(fixture, connections: connections)
        #expect(try fixture.fileHas(Self.content))
        #expect(file.resumedFrom >= Int64(3 * Self.piece))
        #expect(Set(fixture.ranges).union(before) == Set(Self.ranges))
        #expect(Int64(fixture.requests.count) == (Int64(Self.content.count) - file.resumedFrom + 8_388_607) / 8_388_608)
    }
}

extension MockResponse {
    /// Returns the response with the whole file in place of the part.
    fileprivate func whole(_ content: Data) -> MockResponse {
        var response = MockResponse(statusCode: 200, data: content)
        response.headers["ETag"] = headers["ETag"]
        return response
    }
}
