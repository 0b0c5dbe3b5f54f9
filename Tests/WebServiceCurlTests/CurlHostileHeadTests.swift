import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// Responses that are malformed or exceed a limit, byte for byte over a socket.
@Suite("Curl session: hostile responses", .permit)
struct CurlHostileHeadTests {
    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let chunked = ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nale\r\n"

    /// Sends one request to a server that responds with these bytes, and another one that must
    /// succeed.
    private func result(
        of bytes: String, _ session: CurlSession, change: @Sendable (inout Request) -> Void = { _ in }
    ) async throws -> Result<Response, any Error> {
        let server = try MockServer {
            $0.path == "/next" ? MockResponse("next") : MockResponse("", wire: .raw(Data(bytes.utf8)))
        }
        defer { server.stop() }
        let service = WebService(server, session)
        var request = service.request(.GET, path: "/")
        change(&request)
        let task = service.sessionTask(request: request).data().validateNothing()
        let result = await task.result
        #expect(try await service.GET("/next").string().value == "next")
        switch result {
        case .success: return .success(try await task.response)
        case .failure(let error): return .failure(error)
        }
    }

    @Test(
        "Bytes after the size of a chunk are ignored up to the end of the line",
        arguments: ["5 5", "5junk", "5;a=b", "5 ;a", "5\t", "005"])
    func chunkSizes(line: String) async throws {
        let bytes = Self.ok + "Transfer-Encoding: chunked\r\n\r\n\(line)\r\nearly\r\n0\r\n\r\n"
        #expect(try await result(of: bytes, try CurlSession()).get().data == Data("early".utf8))
    }

    @Test(
        "An ambiguous head is badServerResponse",
        arguments: [
            "\(ok)Content-Length: 2\r\n 00\r\n\r\nale",
            "\(ok)X Bad: 1\r\nContent-Length: 3\r\n\r\nale", "\(ok)\"x\": 1\r\nContent-Length: 3\r\n\r\nale",
            "\(ok)X{}: 1\r\nContent-Length: 3\r\n\r\nale", "\(ok)X\tBad: 1\r\nContent-Length: 3\r\n\r\nale",
            "\(ok)X\u{e9}: 1\r\nContent-Length: 3\r\n\r\nale", "\(ok): 1\r\nContent-Length: 3\r\n\r\nale",
            "\(ok):status: 404\r\nContent-Length: 3\r\n\r\nale", "\(ok)Xyz\r\nContent-Length: 3\r\n\r\nale",
            "\(ok)X-Brew: a\rb\r\nContent-Length: 3\r\n\r\nale", "\(ok)X-Brew: a\r\r\nContent-Length: 3\r\n\r\nale",
            "\(ok)X-Brew: a\rContent-Length: 3\r\n\r\nale", "HTTP/1.1 200 O\rK\r\nContent-Length: 3\r\n\r\nale",
            "\(ok) X-Brew\r\nContent-Length: 3\r\n\r\nale", "\(ok)\rX-Brew: 1\r\nContent-Length: 3\r\n\r\nale",
            "HTTP/2 200\r\nContent-Length: 3\r\n\r\nale", "HTTP/2.0 200 OK\r\nContent-Length: 3\r\n\r\nale",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200\r\nContent-Length: 3\r\n\r\nale",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n0\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nX Bad: 1\r\n\r\n\(ok)Content-Length: 3\r\n\r\nale",
        ])
    func ambiguous(bytes: String) async throws {
        let result = try await result(of: bytes, try CurlSession())
        #expect(result.urlErrorCode == .badServerResponse, "\(result)")
    }

    @Test(
        "A framing field that continues on a folded line is badServerResponse",
        .enabled(if: !LinkedLibrary.joinsFoldedLines, "this libcurl joins the lines before it evaluates the field"),
        arguments: [
            "\(ok)Content-Length:\r\n 3\r\n\r\nale", "\(ok)Transfer-Encoding:\r\n chunked\r\n\r\nale",
            "\(ok)X-Brew: a\r\nContent-Encoding: identity,\r\n\tgzip\r\nContent-Length: 3\r\n\r\nale",
        ])
    func foldedFraming(bytes: String) async throws {
        let result = try await result(of: bytes, try CurlSession())
        #expect(result.urlErrorCode == .badServerResponse, "\(result)")
    }

    @Test(
        "A folded framing field that libcurl joins has the joined value",
        .enabled(if: LinkedLibrary.joinsFoldedLines, "this libcurl does not join folded lines"))
    func joinedFraming() async throws {
        let bytes = "\(Self.ok)Content-Length:\r\n 3\r\n\r\nale"
        #expect(try await result(of: bytes, try CurlSession()).get().data == Data("ale".utf8))
    }

    @Test(
        "A status line with another version or an impossible status is badServerResponse",
        arguments: [
            "HTTP/9.9 200 OK", "HTTP/3 200 OK", "HTTP/1.2 200 OK", "HTTP/1.1 000 OK", "HTTP/1.1 99 OK",
            "HTTP/1.1 99999 OK", "HTTP/1.1 abc OK",
            "HTTP/1.1 -20 OK", "http/1.1 200 OK", "HTTP/1.1", "ale and porter", "<html>ale, porter and stout</html>",
            "ICY 200 OK",
        ])
    func statusLines(line: String) async throws {
        let result = try await result(of: line + "\r\nContent-Length: 3\r\n\r\nale", try CurlSession())
        #expect(result.urlErrorCode == .badServerResponse, "\(result)")
        #expect(try await self.result(of: line, try CurlSession()).error != nil)
    }

    @Test(
        "A status without a defined meaning is delivered unchanged",
        arguments: [299, 418, 599, 600, 999])
    func unknownStatuses(status: Int) async throws {
        let result = try await result(of: "HTTP/1.1 \(status) \r\nContent-Length: 3\r\n\r\nale", try CurlSession())
        #expect(try result.get().status == status)
        #expect(try result.get().data == Data("ale".utf8))
    }

    @Test("A folded line of another field continues its value")
    func folded() async throws {
        let bytes = Self.ok + "X-Brew: pale\r\n ale\r\n\tand porter\r\nContent-Length: 3\r\n\r\nale"
        let response = try await result(of: bytes, try CurlSession()).get()
        #expect(response.header("X-Brew") == "pale ale and porter")
        #expect(response.data == Data("ale".utf8))
    }

    @Test(
        "A malformed chunk is badServerResponse",
        arguments: [
            "zz\r\nale\r\n0\r\n\r\n", "fffffffffffffffff\r\nale\r\n0\r\n\r\n", "8000000000000000\r\nale\r\n0\r\n\r\n",
            "3\r\nporter\r\n0\r\n\r\n",
            "-3\r\nale\r\n0\r\n\r\n", "\r\nale\r\n0\r\n\r\n", "0\r\nX\r\n\r\n", "0\r\nA: b\rC\r\n\r\n",
        ])
    func chunks(bytes: String) async throws {
        let result = try await result(of: Self.chunked + bytes, try CurlSession())
        #expect(result.urlErrorCode == .badServerResponse, "\(result)")
    }

    @Test(
        "A head or trailer that exceeds the limits of libcurl is responseTooLarge",
        arguments: [
            ok + "X-Brew: " + String(repeating: "a", count: 110_000) + "\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 " + String(repeating: "a", count: 110_000) + "\r\nContent-Length: 0\r\n\r\n",
            chunked + "0\r\nX-Brew: " + String(repeating: "a", count: 5_000) + "\r\n\r\n",
        ])
    func beyondLibcurl(bytes: String) async throws {
        let result = try await result(of: bytes, try CurlSession { $0.maximumHeaderBytes = 1 << 20 })
        #expect(result.code == .responseTooLarge, "\(bytes.prefix(20)): \(result)")
    }

    @Test(
        "A head whose total size exceeds the limit of libcurl is responseTooLarge",
        .enabled(if: LinkedLibrary.limitsHead, "libcurl limits the size of a head since 8.3, and 7.88 in Debian"))
    func totalBeyondLibcurl() async throws {
        let fields = (0..<350).map { "X-\($0): " + String(repeating: "a", count: 1000) + "\r\n" }.joined()
        try await beyondLibcurl(bytes: Self.ok + fields + "Content-Length: 0\r\n\r\n")
    }

    @Test("Two Location fields are delivered or, with a newer libcurl, badServerResponse")
    func locations() async throws {
        let bytes = "HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"
        let result = try await result(of: bytes, try CurlSession()) { $0.options.redirectPolicy = .manual }
        if LinkedLibrary.rejectsLocations {
            #expect(result.urlErrorCode == .badServerResponse, "\(result)")
        } else {
            #expect(try result.get().headers.values(for: "Location") == ["/a", "/b"])
        }
    }

    @Test("More than 5,000 fields are delivered or, with a newer libcurl, responseTooLarge")
    func manyFields() async throws {
        let fields = (0..<5_100).map { "X-\($0): a\r\n" }.joined()
        let result = try await result(of: Self.ok + fields + "Content-Length: 0\r\n\r\n", try CurlSession())
        if LinkedLibrary.limitsFields {
            #expect(result.code == .responseTooLarge, "\(result)")
        } else {
            #expect(try result.get().headers.count == 5_101)
        }
    }

    @Test(
        "A head at the maximum is accepted, one byte more is not, with interim responses and trailers"
    )
    func headerLimit() async throws {
        for start in ["", "HTTP/1.1 103 Early Hints\r\nLink: </ale>\r\n\r\n"] {
            for trailer in ["", "X-Sum: 1\r\n"] {
                let head = start + Self.ok + "Transfer-Encoding: chunked\r\n\r\n"
                let count = head.utf8.count + trailer.utf8.count
                let bytes = head + "3\r\nale\r\n0\r\n\(trailer)\r\n"
                for limit in [count - 1, count, count + 1] {
                    let result = try await result(of: bytes, try CurlSession { $0.maximumHeaderBytes = limit })
                    // The line that ends the trailer section counts if libcurl reports it.
                    if limit < count { #expect(result.code == .responseTooLarge, "\(limit) of \(count): \(result)") }
                    if limit > count { #expect(try result.get().data == Data("ale".utf8), "\(limit) of \(count)") }
                    if limit == count, trailer.isEmpty {
                        #expect(try result.get().data == Data("ale".utf8), "\(limit) of \(count)")
                    }
                }
            }
        }
    }

    @Test(
        "An endless head is responseTooLarge, and the next request succeeds",
        arguments: [
            "X-Brew: ale\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </ale>\r\n\r\n",
            " folded\r\n", "a",
        ])
    func endlessHead(piece: String) async throws {
        let start = piece.hasPrefix("HTTP") ? "" : piece.hasPrefix("X") ? Self.ok : Self.ok + "X-Brew: ale\r\n"
        let head = start + String(repeating: piece, count: 2 << 20 / piece.utf8.count)
        let result = try await result(of: head, try CurlSession())
        #expect(result.code == .responseTooLarge, "\(result)")
    }

    @Test("A length in an interim response does not apply to the final response")
    func interim() async throws {
        let early = "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\n\r\n"
        let response = try await result(of: early + early + Self.ok + "Content-Length: 3\r\n\r\nale", try CurlSession())
            .get()
        #expect(response.data == Data("ale".utf8))
        #expect(response.headers.map(\.name) == ["Content-Length"])
    }

    @Test("The length in a 304 or in a response to HEAD is not compared with the maximum body size")
    func lengthWithoutBody() async throws {
        for (status, method) in [(304, Request.Method.GET), (200, .HEAD)] {
            let bytes = "HTTP/1.1 \(status) OK\r\nContent-Length: 100000\r\nETag: \"a\"\r\n\r\n"
            let result = try await result(of: bytes, try CurlSession()) {
                $0.method = method
                $0.options.maximumResponseBytes = 10
            }
            #expect(try result.get().status == status)
            #expect(try result.get().data.isEmpty == true)
        }
    }

    @Test("The length of a gzip body is not compared with the maximum size, which applies to the decoded body")
    func lengthOfEncodedBody() async throws {
        let ale = Data(base64Encoded: "H4sIAAAAAAACA0vMSQUAecnEQgMAAAA=") ?? Data()
        let server = try MockServer.forTest { _ in
            MockResponse(statusCode: 200, headers: ["Content-Encoding": "gzip"], data: ale)
        }
        let service = WebService(server, try CurlSession())
        for (limit, code) in [(3, nil), (2, WebServiceError.Code.responseTooLarge)] {
            let result = await service.GET("/").configure { $0.options.maximumResponseBytes = limit }.data().result
            #expect(result.code == code)
            if code == nil { #expect(try result.get() == Data("ale".utf8)) }
        }
    }

    @Test("A gzip response without a body is accepted for length 0, for HEAD and for status 304")
    func gzipWithoutBody() async throws {
        for (status, length, method) in [(200, 0, Request.Method.GET), (200, 100, .HEAD), (304, 100, .GET)] {
            let bytes = "HTTP/1.1 \(status) OK\r\nContent-Encoding: gzip\r\nContent-Length: \(length)\r\n\r\n"
            let response = try await result(of: bytes, try CurlSession()) { $0.method = method }.get()
            #expect(response.status == status)
            #expect(response.data.isEmpty)
        }
    }

    @Test("A 101 is badServerResponse at once, because no request asks for another protocol")
    func switchingProtocols() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 101)
            response.wire = .stall(after: .max)
            return response
        }
        let result = await WebService(server, try CurlSession()).GET("/").setTimeout(.seconds(10)).data()
            .validateNothing().result
        #expect(result.urlErrorCode == .badServerResponse)
    }

    @Test(
        "Zeros after a gzip body are accepted, and any other byte is cannotDecodeContentData",
        arguments: [0, 1, 512, 70_000])
    func padding(count: Int) async throws {
        let gzip = GzipDecoderTests.gzip
        for (tail, isAccepted) in [(Data(), true), (Data("a".utf8), false), (Data([0x1F]), false)] {
            let body = gzip + Data(count: count) + tail
            let server = try MockServer { _ in
                var response = MockResponse(body)
                response.headers["Content-Encoding"] = "gzip"
                return response
            }
            defer { server.stop() }
            let result = await WebService(server, try CurlSession()).GET("/").string().result
            if isAccepted {
                #expect(try result.get() == GzipDecoderTests.plain)
            } else {
                #expect(result.urlErrorCode == .cannotDecodeContentData)
            }
        }
    }

    // MARK: Progress

    private struct Hostile: CustomStringConvertible, Sendable {
        let bytes: String
        let isWhole: Bool
        var description: String { bytes.prefix(60).debugDescription }
    }

    private static let hostile = [
        Hostile(bytes: ok + "Content-Length: 9223372036854775807\r\n\r\nale", isWhole: false),
        Hostile(bytes: ok + "Content-Length: 9223372036854775808\r\n\r\nale", isWhole: false),
        Hostile(bytes: ok + "Content-Length: -1\r\n\r\nale", isWhole: false),
        Hostile(bytes: ok + "Content-Length: 2\r\n\r\nale, porter, stout", isWhole: true),
        Hostile(bytes: ok + "Content-Length: 0\r\n\r\nale", isWhole: true),
        Hostile(bytes: ok + "Content-Length: 1000000\r\n\r\nale", isWhole: false),
        Hostile(bytes: ok + "\r\nale, porter, stout", isWhole: true),
        Hostile(bytes: chunked + "7fffffffffffffff\r\nale", isWhole: false),
        Hostile(
            bytes: "HTTP/1.1 103 A\r\nContent-Length: 1\r\n\r\n" + ok + "Content-Length: 3\r\n\r\nale", isWhole: true),
    ]

    @Test(
        "With hostile lengths, progress only grows, stays within 0 and 1, and ends before the completion",
        arguments: hostile)
    private func progress(_ hostile: Hostile) async throws {
        let server = try MockServer { _ in MockResponse("", wire: .raw(Data(hostile.bytes.utf8))) }
        defer { server.stop() }
        let session = try CurlSession()
        let all = Box<[TransferProgress?]>([])
        let result: Result<Response, any Error> = await withCheckedContinuation { continuation in
            session.responseTask(
                request: Request(.GET, url: server.baseURLString),
                progress: { progress in all.change { $0.append(progress) } },
                completion: { result, _ in
                    all.change { $0.append(nil) }
                    continuation.resume(returning: result)
                }
            ).resume()
        }
        session.close()
        let told = all.value
        #expect((result.error == nil) == hostile.isWhole, "\(result)")
        #expect(told.last == .some(nil), "progress after the completion")
        #expect(told.count { $0 == nil } == 1, "progress after the completion")
        let steps = told.compactMap { $0 }
        #expect(
            zip(steps, steps.dropFirst()).allSatisfy {
                $0.bytesReceived <= $1.bytesReceived && $0.bytesSent <= $1.bytesSent
            })
        for step in steps {
            #expect(step.bytesReceived >= 0)
            #expect((step.bytesToReceive ?? 0) >= 0)
            #expect(step.bytesSent == 0)
            #expect((0...1).contains(step.fractionReceived ?? 0))
            #expect(step.fractionSent == 1)
        }
        // Errors were compared above.
        if let response = try? result.get() { #expect(Int64(response.data.count) == steps.last?.bytesReceived ?? 0) }
    }

    // MARK: Cuts

    private static let cuts: [(head: String, body: Data)] = [
        (
            "HTTP/1.1 200 OK\r\nX-Brew: ale\r\n\tand porter\r\nSet-Cookie: a=b\r\nContent-Length: 300\r\n\r\n",
            Data(repeating: 0x61, count: 300)
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(GzipDecoderTests.gzip.count)\r\n\r\n",
            GzipDecoderTests.gzip
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n",
            Data("10;a=b\r\n0123456789abcdef\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n".utf8)
        ),
        (
            "HTTP/1.1 103 Early Hints\r\nLink: </ale>\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n",
            Data("ale".utf8)
        ),
        (
            "HTTP/1.0 200 OK\r\nServer: ale\r\nContent-Type: text/plain\r\nContent-Length: 20\r\n\r\n",
            Data("ale, porter and stout".utf8.prefix(20))
        ),
        ("HTTP/1.1 204 No Content\r\nServer: ale\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n", Data()),
    ]

    @Test(
        "A response is delivered only if it is complete, wherever the connection is cut",
        arguments: cuts.indices)
    func cut(_ index: Int) async throws {
        let (head, body) = Self.cuts[index]
        let bytes = Data(head.utf8) + body
        let server = try MockServer.forTest {
            MockResponse("", wire: .raw(bytes.prefix(Int($0.path.dropFirst()) ?? 0)))
        }
        let service = WebService(server, try CurlSession())
        var delivered: [Int] = []
        for count in 0...bytes.count {
            if await service.GET("/\(count)").data().validateNothing().result.error == nil { delivered.append(count) }
        }
        // The line feed after the last chunk carries no information.
        #expect(
            delivered == [bytes.count] || index == 2 && delivered == [bytes.count - 1, bytes.count],
            "\(delivered) of \(bytes.count)")
    }
}
