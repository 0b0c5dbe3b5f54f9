import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// A server of one file, and a folder for the downloads of it.
final class DownloadFixture: Sendable {
    typealias Handler = @Sendable (_ request: ReceivedRequest, _ number: Int) -> MockResponse

    static let tag = "\"v1\""

    private struct State {
        var handler: Handler?
        var requests: [ReceivedRequest] = []
    }

    /// A structure, because each access to a closure in a `Mutex` wraps it once more.
    private struct Responder {
        var respond: (@Sendable (ReceivedRequest) -> MockResponse)?
    }

    let content: Data
    let folder: URL
    let server: MockServer
    let service: WebService
    private let session: RealSession
    private let state: Mutex<State>

    /// - Parameters:
    ///   - count: The length of the file, in bytes.
    ///   - handler: Returns the response to a request, counted from 0. Defaults to `nil`, the
    ///     requested part of the file.
    init(_ count: Int = 1_000_000, over session: RealSession = .best, _ handler: Handler? = nil) throws {
        content = Self.content(count)
        self.session = session
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("webservice-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        state = Mutex(State(handler: handler))
        let responder = Mutex(Responder())
        server = try MockServer { request in
            responder.withLock { $0 }.respond?(request) ?? MockResponse(statusCode: 500)
        }
        service = try session.service(server)
        responder.withLock { responder in
            responder.respond = { [weak self] request in self?.respond(to: request) ?? MockResponse(statusCode: 500) }
        }
    }

    private func respond(to request: ReceivedRequest) -> MockResponse {
        let (handler, number) = state.withLock { state in
            state.requests.append(request)
            return (state.handler, state.requests.count - 1)
        }
        return handler?(request, number) ?? part(for: request)
    }

    /// Returns the requested part of the file.
    func part(for request: ReceivedRequest) -> MockResponse {
        MockResponse(file: content, eTag: Self.tag, for: request)
    }

    /// The requests since the last call of ``serve(_:)``.
    var requests: [ReceivedRequest] { state.withLock { $0.requests } }

    /// Sets the handler, and forgets the requests before.
    func serve(_ handler: Handler?) {
        state.withLock { $0 = State(handler: handler) }
    }

    deinit {
        server.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Returns pseudorandom bytes that repeat after at most 65,528. No length of a part is a multiple of this.
    static func content(_ count: Int, seed: Int = 0) -> Data {
        var state = UInt64(bitPattern: Int64(seed)) &+ 1
        let period = (0..<min(8_191, count / 8 + 1)).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state
        }
        let piece = period.withUnsafeBytes { Data($0) }
        var data = Data(capacity: count + piece.count)
        while data.count < count { data += piece }
        return data.prefix(count)
    }

    var destination: URL { folder.appendingPathComponent("a.iso") }

    /// The names in the folder.
    var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() } }

    /// Returns whether the destination has these bytes. (A failed comparison of long values in an
    /// expectation takes minutes.)
    func fileHas(_ bytes: Data) throws -> Bool { try Data(contentsOf: destination) == bytes }

    /// Returns whether the partial file has these bytes.
    func partHas(_ bytes: Data) throws -> Bool { try part == bytes }

    /// The bytes of the partial file.
    var part: Data { get throws { try Data(contentsOf: folder.appendingPathComponent(".a.iso.webservice-part")) } }

    /// The `Range` fields of the requests; empty for a request without one.
    var ranges: [String] { requests.map { $0.headers["Range"] ?? "" } }

    func download(existing: DownloadedFile.Existing = .resume, connections: Int = 1) -> TypedTask<DownloadedFile> {
        service.GET("/a.iso").download(to: destination, existing: existing, connections: connections)
    }

    /// Leaves the first bytes of the file as an interrupted download does.
    ///
    /// - Parameter change: Changes the response that is interrupted.
    func interrupt(
        after count: Int, _ change: @escaping @Sendable (inout MockResponse) -> Void = { _ in }
    ) async throws {
        let content = content
        serve { _, _ in
            var response = MockResponse(statusCode: 200)
            response.headers["ETag"] = Self.tag
            response.headers["Content-Length"] = "\(content.count)"
            change(&response)
            return response.cut(content, after: count)
        }
        let error = await #expect(throws: URLError.self) { try await self.download().value }
        #expect(error?.code == .networkConnectionLost)
        try #require(try partHas(content.prefix(count)))
        serve(nil)
    }
}

extension MockResponse {
    /// Returns a response that ends within its body.
    func cut(_ body: Data, after count: Int) -> MockResponse {
        var response = self
        response.writer = { writer in
            try writer.write(body.prefix(count))
            throw CancellationError()
        }
        if response.headers[.contentLength] == nil { response.headers[.contentLength] = "\(body.count)" }
        return response
    }
}

extension RealSession {
    #if WEBSERVICE_CURL
    static let best = RealSession.curlSession
    #else
    static let best = RealSession.foundationSession
    #endif

    /// Whether the session is a `CurlSession`, which reports lost connections and trailer fields.
    var isCurl: Bool { rawValue == "curlSession" }
}

extension Interceptor where Self == RetryPolicy {
    /// Returns a policy that continues after a lost connection, without jitter.
    static func continuing(maximumAttempts: Int = 3, baseDelay: Duration = .zero) -> RetryPolicy {
        // Foundation on Linux reports a lost connection as an unknown error.
        RetryPolicy(
            maximumAttempts: maximumAttempts, baseDelay: baseDelay,
            errorCodes: RetryPolicy.defaultErrorCodes.union([.unknown]), random: { 1 })
    }
}
