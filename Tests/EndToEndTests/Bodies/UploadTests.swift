import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Bodies of requests over every session that uses the network.
@Suite("Uploads", .permit)
struct UploadTests {
    private struct Failure: Error, Equatable { var number = 7 }

    @Test(
        "A file is sent with its length and its bytes", arguments: RealSession.allCases,
        [0, 1, 300_000])
    func file(session: RealSession, size: Int) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let file = try UploadFile(size: size)
        _ = try await session.service(server).PUT("/").setBody(file: file.url, contentType: "video/mp4").data().value
        let request = try #require(server.receivedRequests.first)
        #expect(request.body == file.content)
        #expect(request.headers[.contentLength] == "\(size)")
        #expect(request.headers[.contentType] == "video/mp4")
        #expect(request.headers["Transfer-Encoding"] == nil)
        #expect(Request.Body.file(file.url).length == Int64(size))
        #expect(Request.Body.file(file.url).isReplayable)
    }

    @Test(
        "A file that is missing, or not a regular file, fails before anything is sent",
        arguments: RealSession.allCases)
    func invalidFiles(session: RealSession) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let file = try UploadFile(size: 1)
        let folder = file.url.deletingLastPathComponent()
        let urls = [folder, folder.appendingPathComponent("missing"), URL(fileURLWithPath: "/dev/null")]
        for url in urls + [URL(string: "https://h/file")].compactMap({ $0 }) {
            let task = try session.service(server).PUT("/").setBody(file: url).data()
            let error = await #expect(throws: WebServiceError.self) { _ = try await task.value }
            #expect(error?.code == .encoding)
            #expect(error?.message.contains("the body") == true)
            #expect(Request.Body.file(url).length == nil)
        }
        #expect(server.connectionCount == 0)
    }

    @Test(
        "A sequence is sent completely, chunked without a length and framed by its length otherwise",
        arguments: RealSession.allCases, [true, false])
    func sequence(session: RealSession, hasLength: Bool) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let chunks = Chunks([10, 0, 70_000, 200_000, 1_500_000])
        let body = Request.Body.stream(chunks, length: hasLength ? Int64(chunks.content.count) : nil)
        #expect(!body.isReplayable)
        #expect(body.length == (hasLength ? 1_770_010 : nil))
        _ = try await session.service(server).POST("/").setBody(body).data().value
        let request = try #require(server.receivedRequests.first)
        #expect(request.body == chunks.content)
        #expect(request.headers[.contentType] == "application/octet-stream")
        let isChunked = !hasLength && session == .curlIfBuilt
        #expect(request.headers["Transfer-Encoding"] == (isChunked ? "chunked" : nil))
        #expect(request.headers[.contentLength] == (isChunked ? nil : "1770010"))
    }

    @Test("A sequence of length 0 is not opened", arguments: RealSession.allCases)
    func empty(session: RealSession) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let body = Request.Body.stream(length: 0) { () async throws -> Chunks in throw Failure() }
        _ = try await session.service(server).POST("/").setBody(body).data().value
        #expect(server.receivedRequests.first?.headers[.contentLength] == "0")
        let negative = try session.service(server).POST("/").setBody(.stream(Chunks([1]), length: -1)).data()
        let error = await #expect(throws: WebServiceError.self) { _ = try await negative.value }
        #expect(error?.code == .encoding)
    }

    @Test(
        "A sequence that is longer or shorter than its length fails, and no complete request arrives",
        arguments: RealSession.allCases, [-1, 1])
    func wrongLength(session: RealSession, difference: Int64) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        for sizes in [[5], [100_000, 100_000], [1, 2, 3]] {
            let chunks = Chunks(sizes)
            let length = Int64(chunks.content.count) + difference
            let task = try session.service(server).POST("/").setBody(.stream(chunks, length: length)).data()
            let error = await #expect(throws: WebServiceError.self) { _ = try await task.value }
            #expect(error?.code == .encoding)
            #expect(error?.message.contains(difference < 0 ? "more" : "fewer") == true)
        }
        #expect(server.receivedRequests.isEmpty)
    }

    @Test(
        "An error of the sequence is the result, and no complete request arrives",
        arguments: RealSession.allCases, [nil, 1_000_000] as [Int64?])
    func producerError(session: RealSession, length: Int64?) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let service = try session.service(server)
        for sizes in [[], [100], [200_000, 100]] {
            let body = Request.Body.stream(Chunks(sizes, failure: Failure()), length: length)
            await #expect(throws: Failure()) { _ = try await service.POST("/").setBody(body).data().value }
        }
        await #expect(throws: Failure()) {
            _ = try await service.POST("/")
                .setBody(.stream(length: nil) { () async throws -> Chunks in throw Failure() }).data().value
        }
        #expect(server.receivedRequests.isEmpty)
    }

    @Test("A retry sends a file and a new sequence again", arguments: RealSession.allCases)
    func retry(session: RealSession) async throws {
        let server = try MockServer.forTest()
        let file = try UploadFile(size: 100_000)
        let chunks = Chunks([10, 100_000])
        let bodies = [file.content: Request.Body.file(file.url), chunks.content: .stream(length: nil) { chunks }]
        for (content, body) in bodies {
            server.on(.PUT, "/", [MockResponse(statusCode: 503), MockResponse(statusCode: 200)])
            let service = try session.service(server)
            service.interceptors = [.retry(baseDelay: .milliseconds(1))]
            _ = try await service.PUT("/").setBody(body).data().value
            #expect(server.receivedRequests.suffix(2).map(\.body) == [content, content])
        }
    }

    @Test(
        "A retry of a sequence that was read fails with bodyNotReplayable and the response",
        arguments: RealSession.allCases)
    func noRetry(session: RealSession) async throws {
        let server = try MockServer.forTest()
        server.on(.PUT, "/", MockResponse(statusCode: 503, data: Data("later".utf8)))
        let service = try session.service(server)
        service.interceptors = [.retry(baseDelay: .milliseconds(1))]
        let task = service.PUT("/").setBody(.stream(Chunks([10]))).data()
        let error = await #expect(throws: WebServiceError.self) { _ = try await task.value }
        #expect(error?.code == .bodyNotReplayable)
        #expect(error?.status == 503)
        #expect(error?.body == Data("later".utf8))
        #expect(server.receivedRequests.count == 1)
        #expect(task.task.timeline.events.last?.detail == "status 503, the body can be read only once")
    }

    @Test("A retry sends a sequence that was not read", arguments: RealSession.allCases)
    func unread(session: RealSession) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let service = try session.service(server)
        let attempts = StreamTests.Count()
        service.interceptors = [
            .retry(baseDelay: .milliseconds(1)),
            .closure { request, next in
                attempts.add()
                if attempts.value == 1 { throw URLError(.timedOut) }
                return try await next(request)
            },
        ]
        _ = try await service.PUT("/").setBody(.stream(Chunks([10]))).data().value
        #expect(server.receivedRequests.map(\.body) == [Chunks([10]).content])
    }

    @Test(
        "A redirect sends a file and a new sequence again; a sequence that was read fails, unless it becomes GET",
        arguments: RealSession.allCases, [303, 307, 308])
    func redirect(session: RealSession, status: Int) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let moved = MockResponse(statusCode: status, headers: ["Location": "/new"], data: Data("moved".utf8))
        server.on(.POST, "/old", moved)
        let service = try session.service(server)
        let file = try UploadFile(size: 70_000)
        let chunks = Chunks([10, 100_000])
        let bodies = [file.content: Request.Body.file(file.url), chunks.content: .stream(length: nil) { chunks }]
        for (content, body) in bodies {
            _ = try await service.POST("/old").setBody(body).data().value
            #expect(server.receivedRequests.last?.body == (status == 303 ? Data() : content))
        }
        let count = server.receivedRequests.count
        let once = service.POST("/old").setBody(.stream(chunks)).data()
        guard status != 303 else {
            _ = try await once.value
            return
        }
        let error = await #expect(throws: WebServiceError.self) { _ = try await once.value }
        #expect(error?.code == .bodyNotReplayable)
        #expect(error?.status == status)
        // On Linux, a URLSession does not deliver the body of a redirect.
        if session != .urlSession { #expect(error?.body == Data("moved".utf8)) }
        #expect(server.receivedRequests.count == count + 1)
    }

    @Test(
        "After the refresh of a credential, a new sequence is sent again; one that was read fails with the response",
        arguments: RealSession.allCases)
    func refresh(session: RealSession) async throws {
        let server = try MockServer.forTest {
            MockResponse(statusCode: $0.headers[.authorization] == "Bearer new" ? 200 : 401)
        }
        let service = try session.service(server)
        let chunks = Chunks([10, 100_000])
        for isReplayable in [true, false] {
            service.interceptors = [Authentication(TokenSource({ .bearer("old") }) { _ in .bearer("new") })]
            let body = isReplayable ? Request.Body.stream(length: nil) { chunks } : .stream(chunks)
            let task = service.POST("/").setBody(body).data()
            if isReplayable {
                _ = try await task.value
            } else {
                let error = await #expect(throws: WebServiceError.self) { _ = try await task.value }
                #expect(error?.code == .bodyNotReplayable)
                #expect(error?.status == 401)
            }
        }
        #expect(server.receivedRequests.map(\.body) == Array(repeating: chunks.content, count: 3))
    }

    @Test("Cancelling the task cancels a sequence that is awaited", arguments: RealSession.allCases)
    func cancelling(session: RealSession) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let chunks = Fed()
        let task = try session.service(server).POST("/").setBody(.stream(chunks)).data()
        let result = Task { await task.result }
        chunks.send("first")
        await eventually("the sequence is iterated") { chunks.readCount == 2 }
        task.cancel()
        await #expect(throws: URLError(.cancelled)) { _ = try await result.value.get() }
        await eventually("the sequence is cancelled") { chunks.isCancelled }
        #expect(server.receivedRequests.isEmpty)
    }

    @Test("A mock session receives the bytes of a file and a sequence")
    func mock() async throws {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200))
        let service = WebService("https://h", session: session)
        let chunks = Chunks([10, 2_000_000])
        _ = try await service.POST("/").setBody(.stream(chunks, length: 2_000_010)).data().value
        #expect(session.recordedRequests.first?.httpBody == chunks.content)
    }
}

/// A file with bytes that depend on their offset. It is deleted with the object.
final class UploadFile {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("upload-\(UUID().uuidString)/file")
    let content: Data

    init(size: Int) throws {
        content = Chunks([size]).content
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try content.write(to: url)
    }

    deinit {
        try? FileManager.default.removeItem(at: url.deletingLastPathComponent())
    }
}

/// A sequence of chunks of given sizes, which ends with an optional error.
struct Chunks: AsyncSequence, Sendable {
    let chunks: [Data]
    let failure: (any Error)?

    init(_ sizes: [Int], failure: (any Error)? = nil) {
        chunks = sizes.map { DownloadFixture.content($0, seed: $0) }
        self.failure = failure
    }

    var content: Data { chunks.reduce(Data(), +) }

    struct AsyncIterator: AsyncIteratorProtocol {
        var rest: ArraySlice<Data>
        let failure: (any Error)?

        mutating func next() async throws -> Data? {
            await Task.yield()
            if let chunk = rest.popFirst() { return chunk }
            if let failure { throw failure }
            return nil
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: chunks[...], failure: failure) }
}

/// A sequence whose elements a test provides, and that reports its reads and its cancellation.
final class Fed: AsyncSequence, Sendable {
    private let stream: AsyncStream<Data>
    private let continuation: AsyncStream<Data>.Continuation
    private let cancellations = StreamTests.Count()
    private let reads = StreamTests.Count()
    private let results = StreamTests.Count()

    init() {
        (stream, continuation) = AsyncStream.makeStream()
        continuation.onTermination = { [cancellations] in if case .cancelled = $0 { cancellations.add() } }
    }

    var isCancelled: Bool { cancellations.value > 0 }
    /// Whether an element is awaited.
    var isAwaited: Bool { reads.value > results.value }
    /// The number of elements that were requested.
    var readCount: Int { reads.value }

    func send(_ text: String) { continuation.yield(Data(text.utf8)) }
    func finish() { continuation.finish() }

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: AsyncStream<Data>.AsyncIterator
        let reads: StreamTests.Count
        let results: StreamTests.Count

        mutating func next() async -> Data? {
            reads.add()
            defer { results.add() }
            return await base.next()
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: stream.makeAsyncIterator(), reads: reads, results: results)
    }
}
