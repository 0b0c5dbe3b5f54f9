import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// The number of requests of downloads whose server sends little or accepts few connections.
@Suite("Attempts of downloads", .permit)
struct DownloadAttemptTests {
    private static let large = DownloadFixture.content(44 << 20)

    /// Returns the first bytes of the requested range.
    @Sendable
    private static func short(_ request: ReceivedRequest, of content: Data, count: Int = 1) -> MockResponse {
        let first = request.headers["Range"].flatMap { Int($0.dropFirst(6).prefix { $0 != "-" }) } ?? 0
        let last = min(first + count, content.count) - 1
        var response = MockResponse(statusCode: 206, data: content[first...last])
        response.headers["Content-Range"] = "bytes \(first)-\(last)/\(content.count)"
        response.headers["ETag"] = DownloadFixture.tag
        return response
    }

    @Test(
        "A server that sends one byte for each range gets nine requests",
        arguments: RealSession.streaming, [true, false])
    func oneByte(session: RealSession, servesWholeFile: Bool) async throws {
        let fixture = try DownloadFixture(over: session)
        try await fixture.interrupt(after: 400_000)
        fixture.service.interceptors = [.continuing(maximumAttempts: 100)]
        fixture.serve { [content = fixture.content] request, _ in
            servesWholeFile && request.headers["Range"] == nil
                ? MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
                : Self.short(request, of: content)
        }
        if servesWholeFile {
            #expect(try await fixture.download().value.restarts == 1)
            #expect(try fixture.fileHas(fixture.content))
        } else {
            await fails(.download) { try await fixture.download().value }
        }
        // The interrupted one, eight, and one for the whole file.
        #expect(fixture.requests.count == 10)
        #expect(fixture.ranges.last == "")
    }

    @Test("A server that sends one byte for each piece gets few requests", arguments: [2, 4])
    func oneBytePerPiece(connections: Int) async throws {
        let fixture = try DownloadFixture(0) { request, _ in Self.short(request, of: Self.large) }
        await fails(.download) { try await fixture.download(connections: connections).value }
        // Eight, those that are in flight, and one for the whole file.
        #expect(fixture.requests.count <= 8 + connections)
        // A request in flight may arrive after it.
        #expect(fixture.ranges.contains(""))
    }

    @Test(
        "Interruptions after one byte are limited by the maximum number of attempts",
        arguments: [1, 3])
    func interruptions(maximumAttempts: Int) async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        fixture.service.interceptors = [.continuing(maximumAttempts: maximumAttempts)]
        fixture.serve { [content = fixture.content] request, _ in
            let response = MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
            return response.cut(response.data, after: 1)
        }
        await #expect(throws: URLError.self) { try await fixture.download().value }
        // The bytes of the earlier download count as the first progress.
        #expect(fixture.requests.count <= maximumAttempts + 1)
    }

    @Test("Short parts of at least 64 KiB are not limited")
    func parts() async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 1)
        fixture.serve { [content = fixture.content] request, _ in
            Self.short(request, of: content, count: 65_536)
        }
        #expect(try await fixture.download().value.restarts == 0)
        #expect(try fixture.fileHas(fixture.content))
        #expect(fixture.requests.count == 16)
    }

    @Test(
        "A server that accepts two connections serves a download with four",
        arguments: [nil, .continuing(baseDelay: .milliseconds(2))] as [RetryPolicy?], [503, 429])
    func fewConnections(policy: RetryPolicy?, status: Int) async throws {
        let active = Mutex((now: 0, most: 0, rejected: 0))
        let rejection = DispatchSemaphore(value: 0)
        let fixture = try DownloadFixture(0) { request, _ in
            let isAccepted = active.withLock { active in
                guard active.now < 2 else {
                    active.rejected += 1
                    rejection.signal()
                    return false
                }
                active = (active.now + 1, max(active.most, active.now + 1), active.rejected)
                return true
            }
            guard isAccepted else { return MockResponse(statusCode: status) }
            var response = MockResponse(file: Self.large, eTag: DownloadFixture.tag, for: request)
            let body = response.data
            response.headers[.contentLength] = "\(body.count)"
            response.writer = { writer in
                // The first two requests are active until a third one is rejected.
                if active.withLock({ $0.rejected == 0 }) {
                    _ = rejection.wait(timeout: .now() + 60)
                    rejection.signal()
                }
                let (first, last) = (body.dropLast(1_000), body.suffix(1_000))
                do { try writer.write(first) } catch {
                    active.withLock { $0.now -= 1 }
                    throw error
                }
                // The client may send its next request as soon as it has the last bytes.
                active.withLock { $0.now -= 1 }
                try writer.write(last)
            }
            return response
        }
        if let policy { fixture.service.interceptors = [policy] }
        let file = try await fixture.download(connections: 4).value
        #expect(try fixture.fileHas(Self.large))
        #expect(file.restarts == 0)
        #expect(active.withLock { $0.most } == 2)
        let rejected = active.withLock { $0.rejected }
        #expect(rejected >= 1)
        #expect(rejected <= (policy == nil ? 4 : 12))
        #expect(fixture.requests.count == 6 + rejected)
    }

    @Test("A server that rejects every piece gets few requests, and the error is final")
    func noConnections() async throws {
        let fixture = try DownloadFixture(0) { request, number in
            guard number == 0 else { return MockResponse(statusCode: 503) }
            let part = MockResponse(file: Self.large, eTag: DownloadFixture.tag, for: request)
            return part.cut(part.data, after: 10)
        }
        await #expect(throws: (any Error).self) { try await fixture.download(connections: 4).value }
        #expect(fixture.requests.count <= 5)
        #expect(try fixture.names.contains(".a.iso.webservice-part"))
    }

    @Test(
        "A piece that ends early is not compared with its hash, and is continued or retained",
        arguments: [true, false])
    func shortPiece(isContinued: Bool) async throws {
        let fixture = try DownloadFixture(0) { request, number in
            var response = MockResponse(file: Self.large, eTag: DownloadFixture.tag, for: request)
            guard number == 2 else { return response }
            let body = response.data
            // The hash of the whole piece, of which any other one differs.
            response.headers["Content-Digest"] = "sha-256=:\(Data(repeating: 7, count: 32).base64EncodedString()):"
            // The body has chunks, so its end is not an error of the connection.
            response.writer = { writer in try writer.write(body.prefix(3_000_000)) }
            return response
        }
        if isContinued {
            fixture.service.interceptors = [.continuing()]
            let file = try await fixture.download(connections: 2).value
            #expect(file.restarts == 0)
            #expect(try fixture.fileHas(Self.large))
        } else {
            let error = await #expect(throws: URLError.self) {
                try await fixture.download(connections: 2).value
            }
            #expect(error?.code == .networkConnectionLost)
            #expect(try fixture.names == [".a.iso.webservice-part", ".a.iso.webservice-state"])
        }
    }
}
