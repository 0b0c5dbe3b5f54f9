import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Responses that are not the requested part of the file.
@Suite("Downloads that start over", .permit)
struct DownloadRestartTests {
    private static let changed = DownloadFixture.content(900_000, seed: 1)

    @Test("A whole file in place of the part replaces all bytes, once")
    func wholeFile() async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        fixture.serve { request, _ in
            MockResponse(file: Self.changed, eTag: "\"v2\"", for: request)
        }
        let file = try await fixture.download().value
        #expect(try fixture.fileHas(Self.changed))
        #expect(file.restarts == 1)
        #expect(file.resumedFrom == 0)
        #expect(fixture.ranges == ["bytes=400000-"])
    }

    @Test(
        "A part of another version or with another range is not written, and the whole file is requested",
        arguments: [
            ("bytes 400000-899999/900000", "\"v2\"", nil), ("bytes 400000-999999/1000000", "\"v2\"", nil),
            ("bytes 400000-899999/900000", DownloadFixture.tag, nil), ("bytes 400001-999999/1000000", nil, nil),
            (nil, nil, nil), ("bytes */1000000", nil, nil), ("lines 400000-999999/1000000", nil, nil),
            ("bytes 999999-400000/1000000", nil, nil), ("bytes 400000-1000000/1000000", nil, nil),
            ("bytes 400000-9223372036854775808/*", nil, nil), ("bytes 400000-999999/1000000", nil, "gzip"),
            ("bytes 400001-999999/1000000", DownloadFixture.tag, nil), (nil, DownloadFixture.tag, nil),
            ("bytes 999999-400000/1000000", DownloadFixture.tag, nil),
            ("bytes 400000-9223372036854775808/*", DownloadFixture.tag, nil),
            ("bytes 400000-999999/1000000", DownloadFixture.tag, "gzip"),
        ] as [(String?, String?, String?)])
    func refused(range: String?, tag: String?, coding: String?) async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        fixture.serve { request, number in
            guard number == 0 else { return MockResponse(file: Self.changed, eTag: "\"v2\"", for: request) }
            var response = MockResponse(statusCode: 206, data: Data(repeating: 7, count: 600_000))
            response.headers["Content-Range"] = range
            response.headers["ETag"] = tag
            response.headers["Content-Encoding"] = coding
            return response
        }
        let file = try await fixture.download().value
        #expect(try fixture.fileHas(Self.changed))
        #expect(file.restarts == 1)
        #expect(fixture.ranges == ["bytes=400000-", ""])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A part that begins earlier is appended if the common bytes are equal")
    func overlap() async throws {
        let fixture = try DownloadFixture()
        for differs in [false, true] {
            try await fixture.interrupt(after: 400_000)
            fixture.serve { [content = fixture.content] request, number in
                guard number == 0 else { return MockResponse(file: content, eTag: DownloadFixture.tag, for: request) }
                var body = content[395_904...]
                if differs { body[399_999] ^= 1 }
                var response = MockResponse(statusCode: 206, data: Data(body))
                response.headers["Content-Range"] = "bytes 395904-999999/1000000"
                response.headers["ETag"] = DownloadFixture.tag
                return response
            }
            let file = try await fixture.download().value
            #expect(try fixture.fileHas(fixture.content))
            #expect(file.restarts == (differs ? 1 : 0))
            #expect(fixture.ranges == (differs ? ["bytes=400000-", ""] : ["bytes=400000-"]))
        }
    }

    @Test("A part that was not requested is an error")
    func unrequested() async throws {
        let fixture = try DownloadFixture { _, _ in
            var response = MockResponse(statusCode: 206, data: Data(count: 10))
            response.headers["Content-Range"] = "bytes 0-9/10"
            return response
        }
        await fails(.download) { try await fixture.download().value }
        #expect(try fixture.names == [])
        #expect(fixture.ranges == [""])
    }

    @Test("A file that is complete is not requested again")
    func complete() async throws {
        let fixture = try DownloadFixture()
        // An interruption after the last byte, before the file was renamed.
        try await fixture.interrupt(after: 999_999)
        let part = fixture.folder.appendingPathComponent(".a.iso.webservice-part")
        try fixture.content.write(to: part)
        let file = try await fixture.download().value
        #expect(try fixture.fileHas(fixture.content))
        #expect(fixture.ranges == ["bytes=1000000-"])
        #expect(file.resumedFrom == 1_000_000)
        #expect(file.response.status == 416)
    }

    @Test("A range that cannot be satisfied otherwise is followed by one request for the whole file")
    func unsatisfied() async throws {
        for range in [nil, "bytes */900000", "bytes */1000001"] as [String?] {
            let fixture = try DownloadFixture()
            try await fixture.interrupt(after: 400_000)
            fixture.serve { request, number in
                guard number == 0 else { return MockResponse(file: Self.changed, eTag: "\"v2\"", for: request) }
                var response = MockResponse(statusCode: 416, data: Data("an error page".utf8))
                response.headers["Content-Range"] = range
                return response
            }
            #expect(try await fixture.download().value.restarts == 1)
            #expect(try fixture.fileHas(Self.changed))
            #expect(fixture.ranges == ["bytes=400000-", ""])
        }
    }

    @Test("A part that does not fit its state, and a damaged state, are not continued")
    func damaged() async throws {
        let changes: [@Sendable (URL, URL) throws -> Void] = [
            { part, _ in try Data(count: 1_000_001).write(to: part) },
            { part, _ in try Data().write(to: part) },
            { _, state in try FileManager.default.removeItem(at: state) },
            { _, state in try Data().write(to: state) },
            { _, state in try Data(contentsOf: state).dropLast().write(to: state) },
            { _, state in
                var bytes = try Data(contentsOf: state)
                bytes[bytes.count / 2] ^= 1
                try bytes.write(to: state)
            },
        ]
        for change in changes {
            let fixture = try DownloadFixture()
            try await fixture.interrupt(after: 400_000)
            try change(
                fixture.folder.appendingPathComponent(".a.iso.webservice-part"),
                fixture.folder.appendingPathComponent(".a.iso.webservice-state"))
            let file = try await fixture.download().value
            #expect(try fixture.fileHas(fixture.content))
            #expect(file.resumedFrom == 0)
            #expect(fixture.ranges == [""])
            #expect(try fixture.names == ["a.iso"])
        }
    }

    @Test(
        "Another path or query with the same entity tag is another file",
        arguments: ["/b.iso", "/a.iso?id=2", "/a.iso?"], [1, 4])
    func otherFile(path: String, connections: Int) async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        let other = DownloadFixture.content(1_000_000, seed: 2)
        fixture.serve { request, _ in MockResponse(file: other, eTag: DownloadFixture.tag, for: request) }
        let file = try await fixture.service.GET(path).download(to: fixture.destination, connections: connections).value
        #expect(file.resumedFrom == 0)
        #expect(fixture.ranges == [connections == 1 ? "" : "bytes=0-8388607"])
        #expect(try fixture.fileHas(other))
    }

    @Test(
        "A part of a server that ignores `If-Range` is not joined with another version, whatever it omits",
        arguments: RealSession.streaming, [nil, "\"v2\"", "W/\"v1\""])
    func ignoredCondition(session: RealSession, tag: String?) async throws {
        let other = DownloadFixture.content(1_000_000, seed: 2)
        for hasTag in [true, false] {
            let fixture = try DownloadFixture(over: session)
            try await fixture.interrupt(after: 400_000) { response in
                guard !hasTag else { return }
                response.headers["ETag"] = nil
                response.headers["Last-Modified"] = "Sun, 06 Nov 1994 08:49:37 GMT"
                response.headers["Date"] = "Sun, 06 Nov 1994 08:49:38 GMT"
            }
            fixture.serve { request, _ in
                guard request.headers["Range"] != nil else {
                    var response = MockResponse(statusCode: 200, data: other)
                    response.headers["ETag"] = tag
                    return response
                }
                var response = MockResponse(statusCode: 206, data: other[400_000...])
                response.headers["Content-Range"] = "bytes 400000-999999/1000000"
                response.headers["ETag"] = tag
                return response
            }
            let file = try await fixture.download().value
            #expect(try fixture.fileHas(other))
            #expect(file.resumedFrom == 0)
            #expect(fixture.ranges == ["bytes=400000-", ""])
        }
    }

    @Test("A compressed body is decompressed, and not continued")
    func compressed() async throws {
        let text = Data(repeating: UInt8(ascii: "a"), count: 1_000)
        // The text in the format of gzip (RFC 1952).
        let gzip = try #require(
            Data(base64Encoded: "H4sIAAAAAAACA0tMHAWjYBQMdwAAA9o4mugDAAA="))
        for number in 0...1 {
            let fixture = try DownloadFixture { _, _ in
                var response = MockResponse(statusCode: 200, data: gzip)
                response.headers["Content-Encoding"] = "gzip"
                response.headers["ETag"] = DownloadFixture.tag
                response.headers["Repr-Digest"] = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
                return number == 0 ? response : response.cut(gzip, after: 20)
            }
            if number == 0 {
                let file = try await fixture.download().value
                #expect(try fixture.fileHas(text))
                #expect(file.byteCount == 1_000)
                #expect(file.response.header("Content-Encoding") == "gzip")
            } else {
                await #expect(throws: URLError.self) { try await fixture.download().value }
                fixture.serve(nil)
                #expect(try await fixture.download().value.resumedFrom == 0)
                #expect(fixture.ranges == [""])
            }
        }
    }

    @Test("`existing: .replace` discards the bytes of an interrupted download")
    func replaced() async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        let file = try await fixture.download(existing: .replace).value
        #expect(file.resumedFrom == 0)
        #expect(file.restarts == 0)
        #expect(fixture.ranges == [""])
        #expect(try fixture.fileHas(fixture.content))
    }
}
