import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceTransfers
@testable import WebServiceCassettes
@testable import WebServiceMocking
@testable import WebServiceServer

/// Responses that break off, and files that others have changed.
@Suite(.permit) struct CassetteFailureTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url.appendingPathComponent("cassettes") }
    private var file: URL { folder.appendingPathComponent("failures.json") }
    private let mock = MockSession()

    private func service(_ session: any Session) -> WebService {
        WebService("https://h/v1", session: session)
    }

    /// What a receiver of a response was notified of.
    private final class Receiver: BodyReceiver {
        struct State: Equatable {
            var status = 0
            var length: Int64?
            var body = Data()
            var trailers: [String: String] = [:]
            var error: Int?
            var isComplete = false
        }

        let state = Mutex(State())

        func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) throws {
            state.withLock { ($0.status, $0.length) = (head.status, length) }
        }

        func didReceive(_ bytes: UnsafeRawBufferPointer) throws -> Demand {
            state.withLock { $0.body.append(contentsOf: bytes) }
            return .more
        }

        func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
            state.withLock { state in
                state.isComplete = true
                switch result {
                case .success(let trailers): state.trailers = trailers.combined()
                case .failure(let error): state.error = (error as? URLError)?.errorCode
                }
            }
        }
    }

    private func receive(_ session: CassetteSession, _ path: String) async throws -> Receiver.State {
        let receiver = Receiver()
        let task = session.streamTask(request: Request(.GET, url: "https://h/v1\(path)"), receiver: receiver)
        task.resume()
        await eventually("the task completes") { receiver.state.withLock { $0.isComplete } }
        return receiver.state.withLock { $0 }
    }

    @Test("A response that breaks off is replayed with its head, its bytes and its error")
    func brokenOff() async throws {
        var response = MockResponse.text(String(repeating: "ale ", count: 100))
        response.wire = .cut(after: 300)
        mock.on(.any, response)
        var results: [Receiver.State] = []
        for mode in [CassetteSession.Mode.record, .replay] {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock)
            results.append(try await receive(cassette, "/a"))
            try cassette.finish()
        }
        #expect(results.first == results.last)
        #expect(results.last?.error == URLError.networkConnectionLost.rawValue)
        #expect(results.last?.status == 200)
        #expect(results.last?.body.isEmpty == false)
    }

    @Test("A download that was interrupted and continued is replayed with both requests")
    func continuedDownload() async throws {
        let content = Data((0..<400).map { "ale \($0)\n" }.joined().utf8)
        mock.on(.any) { request in
            var response = MockResponse(file: content, eTag: "\"1\"", for: request)
            response.headers[.contentType] = "text/plain"
            if request.headers["Range"] == nil {
                response.headers[.contentLength] = "\(content.count)"
                response.wire = .cut(after: 1_000)
            }
            return response
        }
        for (number, mode) in [CassetteSession.Mode.record, .replay].enumerated() {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock)
            let target = temporary.url.appendingPathComponent("\(number)")
            let policy = RetryPolicy(maximumAttempts: 3, baseDelay: .milliseconds(1))
            _ = try await service(cassette).GET("/a").intercepted(by: policy).download(to: target).value
            try cassette.finish()
            #expect(try Data(contentsOf: target) == content)
        }
        #expect(mock.receivedRequests.map { $0.headers["Range"] != nil } == [false, true])
    }

    @Test("Trailer fields and an unknown length are replayed, without secrets")
    func trailers() async throws {
        var response = MockResponse(statusCode: 200) { body in try body.write(Data("ale".utf8)) }
        response.headers[.contentType] = "text/plain"
        response.trailers = ["X-Sum": "7", "X-Api-Key": "canary-trailer"]
        mock.on(.any, response)
        var results: [Receiver.State] = []
        for mode in [CassetteSession.Mode.record, .replay] {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock)
            results.append(try await receive(cassette, "/a"))
            try cassette.finish()
        }
        #expect(results.last?.length == nil)
        #expect(results.last?.body == results.first?.body)
        #expect(results.last?.trailers["X-Sum"] == "7")
        #expect(results.last?.trailers["X-Api-Key"]?.hasPrefix("redacted-") == true)
        #expect(try !String(contentsOf: file, encoding: .utf8).contains("canary"))
    }

    @Test("A file of a newer version is an error that names both versions")
    func newerVersion() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(#"{"version":7,"shape":"other"}"#.utf8).write(to: file)
        let error = #expect(throws: WebServiceError.self) { try CassetteSession(file: file) }
        #expect(error?.code == .cassette)
        #expect(
            error?.message.contains("failures.json has version 7, but this library reads versions 1 to 3") == true)
    }

    @Test("A file that another recording has written meanwhile is not replaced")
    func otherRecording() async throws {
        mock.on(.any) { .text($0.target) }
        let first = try CassetteSession(file: file, mode: .record, session: mock)
        let second = try CassetteSession(file: file, session: mock)
        _ = try await service(first).GET("/first").string().value
        _ = try await service(second).GET("/second").string().value
        try first.finish()
        let written = try Data(contentsOf: file)
        let error = #expect(throws: WebServiceError.self) { try second.finish() }
        #expect(error?.code == .cassette)
        #expect(error?.message.contains("failures.json was not written") == true)
        #expect(try Data(contentsOf: file) == written)
        try first.finish()
        #expect(try Data(contentsOf: file) == written)
    }

    @Test("A folder that cannot be created is an error that names it")
    func folders() async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data().write(to: folder.appendingPathComponent("file"))
        let place = folder.appendingPathComponent("file/below/a.json")
        let cassette = try CassetteSession(file: place, mode: .record, session: mock)
        let error = #expect(throws: WebServiceError.self) { try cassette.finish() }
        #expect(error?.code == .cassette)
        #expect(error?.message.contains("file/below of the cassette a.json could not be created") == true)
    }
}
