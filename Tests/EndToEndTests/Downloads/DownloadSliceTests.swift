import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Responses whose status, range, length and entity tag disagree, over real sessions.
///
/// The table of all combinations is in `RangeCombinationTests`.
@Suite("Downloads of contradictory responses", .permit)
struct DownloadSliceTests {
    /// Returns the requested part with status 200.
    @Sendable
    private static func slice(_ content: Data, _ request: ReceivedRequest) -> MockResponse {
        var response = MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
        response.statusCode = 200
        return response
    }

    @Test(
        "A part with status 200 is written where it belongs", arguments: RealSession.streaming,
        [1, 4])
    func continued(session: RealSession, connections: Int) async throws {
        let fixture = try DownloadFixture(300_000, over: session)
        try await fixture.interrupt(after: 100_000)
        fixture.serve { [content = fixture.content] request, _ in Self.slice(content, request) }
        let file = try await fixture.download(connections: connections).value
        #expect(try fixture.fileHas(fixture.content))
        #expect(file.byteCount == 300_000)
        #expect(file.resumedFrom == 100_000)
        #expect(fixture.ranges == ["bytes=100000-"])
    }

    @Test(
        "A download by several connections from a server that sends parts with status 200 is whole",
        arguments: RealSession.streaming)
    func pieces(session: RealSession) async throws {
        let content = DownloadFixture.content(44 << 20)
        let fixture = try DownloadFixture(0, over: session) { request, _ in Self.slice(content, request) }
        let file = try await fixture.download(connections: 4).value
        #expect(try fixture.fileHas(content))
        #expect(file.byteCount == 44 << 20)
        #expect(fixture.requests.count == 6)
        let other = try await fixture.service.GET("/b").download(into: fixture.folder, connections: 3).value
        #expect(try Data(contentsOf: other.url).count == content.count)
    }

    @Test(
        "A part with status 200 and without its range is never the whole file",
        arguments: RealSession.streaming, [true, false])
    func withoutRange(session: RealSession, hasTag: Bool) async throws {
        let fixture = try DownloadFixture(300_000, over: session)
        try await fixture.interrupt(after: 100_000)
        fixture.serve { [content = fixture.content] request, _ in
            var response = Self.slice(content, request)
            response.headers["Content-Range"] = nil
            if !hasTag { response.headers["ETag"] = nil }
            return response
        }
        let file = try await fixture.download().value
        #expect(try fixture.fileHas(fixture.content))
        #expect(file.restarts == 1)
        #expect(fixture.ranges == ["bytes=100000-", ""])
    }

    @Test(
        "A server that sends a part for each request is an error", arguments: RealSession.allCases,
        [1, 4])
    func alwaysParts(session: RealSession, connections: Int) async throws {
        let fixture = try DownloadFixture(300_000, over: session) { _, _ in
            var response = MockResponse(statusCode: 200, data: Data(count: 1_000))
            response.headers["Content-Range"] = "bytes 0-999/300000"
            return response
        }
        await fails(.download) { try await fixture.download(connections: connections).value }
        await fails(.download) { try await fixture.service.GET("/b").download(into: fixture.folder).value }
        #expect(try fixture.names == [])
    }

    @Test(
        "One strong entity tag with two lengths is an error, and the next download starts over",
        arguments: RealSession.streaming)
    func twoLengths(session: RealSession) async throws {
        let fixture = try DownloadFixture(300_000, over: session)
        try await fixture.interrupt(after: 100_000)
        let short = fixture.content.prefix(250_000)
        fixture.serve { _, _ in
            var response = MockResponse(statusCode: 200, data: short)
            response.headers["ETag"] = DownloadFixture.tag
            return response
        }
        await fails(.download) { try await fixture.download().value }
        #expect(try fixture.names == [])
        #expect(try await fixture.download().value.byteCount == 250_000)
        #expect(fixture.ranges == ["bytes=100000-", ""])
    }

    @Test(
        "Bytes of a response that is too long are not continued", arguments: RealSession.streaming)
    func surplus(session: RealSession) async throws {
        let fixture = try DownloadFixture(300_000, over: session)
        try await fixture.interrupt(after: 100_000)
        fixture.serve { request, _ in
            // The length of a chunked body is unknown.
            var response = MockResponse(statusCode: 206) { try $0.write(Data(repeating: 7, count: 200_001)) }
            response.headers["Content-Range"] = "bytes 100000-299999/300000"
            response.headers["ETag"] = DownloadFixture.tag
            return response
        }
        await fails(.download) { try await fixture.download().value }
        #expect(try fixture.partHas(fixture.content.prefix(100_000)))
        fixture.serve(nil)
        #expect(try await fixture.download().value.resumedFrom == 100_000)
        #expect(try fixture.fileHas(fixture.content))
    }

    @Test("A rate limit below 1 byte per second is an error before a request is sent")
    func rateLimit() async throws {
        let fixture = try DownloadFixture(1_000)
        for rate in [0, -1, Int.min] {
            await fails(.download) {
                try await fixture.service.GET("/a").download(to: fixture.destination, bytesPerSecond: rate).value
            }
        }
        #expect(fixture.requests.isEmpty)
        #expect(try fixture.names == [])
    }
}
