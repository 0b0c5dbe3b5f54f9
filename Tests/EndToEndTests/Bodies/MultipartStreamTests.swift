import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer

/// Forms with parts that sequences produce while they are sent.
@Suite("Multipart bodies with sequences", .permit)
struct MultipartStreamTests {
    private struct Failure: Error, Equatable {}

    private static let ok = MockResponse(statusCode: 200)

    private static func form(_ body: Request.Body) -> MultipartFormData {
        var form = MultipartFormData()
        form.append("Long Trail", name: "name")
        form.append(body, name: "log", fileName: "log.csv")
        form.append("end", name: "last")
        return form
    }

    private static let last = ("Content-Disposition: form-data; name=\"last\"", Data("end".utf8))

    @Test(
        "Sequences, files and values arrive in order, with a length if all lengths are known",
        arguments: RealSession.allCases, [true, false])
    func arrives(session: RealSession, isLengthKnown: Bool) async throws {
        let server = try MockServer.forTest { _ in Self.ok }
        let (large, small, file) = (Chunks([1, 9 << 20, 100_000]), Chunks([10]), try UploadFile(size: 200_000))
        var form = MultipartFormData()
        form.append(.stream(length: isLengthKnown ? 9_537_185 : nil, contentType: "text/csv") { large }, name: "log")
        form.append(.file(file.url), name: "file")
        form.append(.stream(small, length: 10), name: "small", fileName: "small.bin", headers: ["X-Kind": "once"])
        form.append(.stream(length: 0) { () async throws -> Chunks in throw Failure() }, name: "empty")
        form.append(.json(["kegs": 2]), name: "order")
        form.append(.none, name: "none")
        form.append("end", name: "last")
        #expect(large.content.count == 9_537_185)
        #expect(Request.Body.multipart(form).isReplayable == false)
        _ = try await session.service(server).POST("/").setMultipart(form).data().value
        let arrived = try #require(server.receivedRequests.first)
        let disposition = "Content-Disposition: form-data; name="
        let octets = "\r\nContent-Type: application/octet-stream"
        let expected = try MultipartTests.expected(
            [
                (disposition + "\"log\"\r\nContent-Type: text/csv", large.content),
                (disposition + "\"file\"" + octets, file.content),
                (disposition + "\"small\"; filename=\"small.bin\"" + octets + "\r\nX-Kind: once", small.content),
                (disposition + "\"empty\"" + octets, Data()),
                (disposition + "\"order\"\r\nContent-Type: application/json", Data(#"{"kegs":2}"#.utf8)),
                (disposition + "\"none\"", Data()), Self.last,
            ], in: arrived)
        #expect(arrived.body == expected)
        let isChunked = session.isCurl && !isLengthKnown
        #expect(arrived.headers[.contentLength] == (isChunked ? nil : "\(expected.count)"))
        #expect(arrived.headers["Transfer-Encoding"] == (isChunked ? "chunked" : nil))
    }

    @Test(
        "A part that is longer or shorter than its length fails with its name, and no complete request arrives",
        arguments: RealSession.allCases, [-1, 1])
    func wrongLength(session: RealSession, difference: Int64) async throws {
        let server = try MockServer.forTest { _ in Self.ok }
        for sizes in [[5], [100_000, 100_000]] {
            let chunks = Chunks(sizes)
            let form = Self.form(.stream(length: Int64(chunks.content.count) + difference) { chunks })
            let task = try session.service(server).POST("/").setMultipart(form).data()
            let error = await #expect(throws: WebServiceError.self) { _ = try await task.value }
            #expect(error?.code == .encoding)
            let comparison = difference < 0 ? "more" : "fewer"
            let message =
                "the sequence of the multipart part 'log' produced \(comparison) bytes than the given length; "
                + "pass the exact length or nil"
            #expect(error?.message == message)
        }
        #expect(server.receivedRequests.isEmpty)
    }

    @Test(
        "An error of the sequence of a part is the result, and no complete request arrives",
        arguments: RealSession.allCases, [nil, 1_000_000] as [Int64?])
    func producerError(session: RealSession, length: Int64?) async throws {
        let server = try MockServer.forTest { _ in Self.ok }
        for sizes in [[], [200_000, 100]] {
            let form = Self.form(.stream(Chunks(sizes, failure: Failure()), length: length))
            let task = try session.service(server).POST("/").setMultipart(form).data()
            await #expect(throws: Failure()) { _ = try await task.value }
        }
        #expect(server.receivedRequests.isEmpty)
    }

    @Test(
        "A retry and a redirect send the form again, unless a sequence can be read only once",
        arguments: RealSession.allCases, [307, 503])
    func again(session: RealSession, status: Int) async throws {
        let server = try MockServer.forTest { _ in Self.ok }
        let service = try session.service(server)
        service.interceptors = [.retry(baseDelay: .milliseconds(1))]
        let chunks = Chunks([10, 100_000])
        let first = MockResponse(statusCode: status, headers: ["Location": "/new"], data: Data("later".utf8))
        server.on(.PUT, "/old", [first, Self.ok])
        let form = Self.form(.stream(length: nil) { chunks })
        #expect(Request.Body.multipart(form).isReplayable)
        _ = try await service.PUT("/old").setMultipart(form).data().value
        let bodies = server.receivedRequests.map(\.body)
        #expect(bodies.count == 2)
        #expect(bodies.first == bodies.last)
        #expect(bodies.first.map { $0.count > 100_010 } == true)
        let once = service.PUT("/once").setMultipart(Self.form(.stream(chunks))).data()
        server.on(.PUT, "/once", first)
        let error = await #expect(throws: WebServiceError.self) { _ = try await once.value }
        #expect(error?.code == .bodyNotReplayable)
        #expect(error?.status == status)
        #expect(server.receivedRequests.count == 3)
    }

    @Test("A body that cannot be a part fails with the name of the part")
    func invalid() async throws {
        let service = WebService("https://h", session: MockSession())
        let bodies: [Request.Body] = [
            .form(["a": "b"]), .multipart(MultipartFormData()), .stream(Chunks([1]), length: -1),
            .json([Double.nan]),
        ]
        for body in bodies {
            let task = service.POST("/").setMultipart(Self.form(body)).data()
            let error = await #expect(throws: WebServiceError.self) { _ = try await task.value }
            #expect(error?.code == .encoding)
            #expect(error?.message.hasPrefix("the multipart part 'log': ") == true)
        }
        let long = Self.form(.stream(length: .max) { Chunks([1]) })
        let error = await #expect(throws: WebServiceError.self) {
            _ = try await service.POST("/").setMultipart(long).data().value
        }
        #expect(error?.message.contains("exceeds") == true)
    }

    @Test(
        "The length is known if that of each part is, and a form is described without reading a sequence")
    func lengths() throws {
        @Sendable func opened() -> Chunks {
            Issue.record("the sequence was opened")
            return Chunks([5])
        }
        let known = Request.Body.multipart(Self.form(.stream(length: 5) { opened() }))
        let bytes = Request.Body.multipart(Self.form(.data(Data(count: 5))))
        #expect(known.length == bytes.length)
        #expect(known.length != nil)
        #expect(Request.Body.multipart(Self.form(.stream(length: nil) { opened() })).length == nil)
        var request = Request(.POST, url: "https://h")
        request.content = known
        #expect(request.curlDescription(redaction: nil).contains("POST"))
    }

    #if WEBSERVICE_CURL
    @Test("A server that does not read stops the sequence of a part")
    func backPressure() async throws {
        let server = try MockServer.forTest()
        server.onHead(.POST, "/", MockResponse(statusCode: 200) { $0.pause(for: .seconds(60)) })
        let produced = StreamTests.Count()
        let form = Self.form(
            .stream(length: nil) {
                AsyncStream {
                    produced.add()
                    return Data(count: 64 << 10)
                }
            })
        let task = try RealSession.curlSession.service(server).POST("/").setMultipart(form).setTimeout(.seconds(2))
        let error = await #expect(throws: URLError.self) { _ = try await task.data().value }
        #expect(error?.code == .timedOut)
        #expect(produced.value < 200)  // the buffers of the system hold the others
    }
    #endif
}
