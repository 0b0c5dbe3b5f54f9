import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceServer
import WebServiceSockets
import WebServiceTransfers

/// Explorations of streams, files and connections.
@Suite(.permit) struct TransferTests {
    @Test("a reconnecting event stream receives each event once, whatever is cut")
    func events() async throws {
        let explorer = FaultExplorer { mock in
            mock.on(.GET, "/events") { request in
                let last = request.headers["Last-Event-ID"].flatMap { Int($0) } ?? 0
                return .events((last + 1..<max(6, last + 2)).map { ServerSentEvent(data: "\($0)", id: "\($0)") })
            }
        }
        let report = await explorer.explore { mock in
            var seen: [Int] = []
            for try await event in mock.service.GET("/events").events(.reconnecting(baseDelay: .milliseconds(10))) {
                seen.append(Int(event.data) ?? 0)
                if seen.count == 5 { break }
            }
            return seen
        } check: { run in
            if let seen = run.output { try run.require(seen == [1, 2, 3, 4, 5], "events are lost or repeated") }
        }
        #expect(report.failures.isEmpty)
        #expect(report.problems == [])
        #expect(report.runs > 40)
    }

    @Test("an event stream without reconnection loses the events after a cut")
    func lostEvents() async throws {
        let explorer = FaultExplorer { mock in
            mock.on(.GET, "/events", .events((1...3).map { ServerSentEvent(data: "\($0)") }))
        }
        let report = await explorer.explore { mock in
            var seen = 0
            do {
                for try await _ in mock.service.GET("/events").events() { seen += 1 }
            } catch {}
            return seen
        } check: { run in
            if let seen = run.output { try run.require(seen == 0 || seen == 3, "some events are lost") }
        }
        #expect(report.failures.map(\.plan) == ["GET /events#1=cut@9"])
    }

    @Test("a download has the whole file, or none, whatever is cut")
    func download() async throws {
        let content = Data((0..<1_000).map { UInt8(truncatingIfNeeded: $0 * 7) })
        let folder = TemporaryFolder()
        let number = Mutex(0)
        let explorer = FaultExplorer { mock in
            mock.on(.GET, "/file") { request in MockResponse(file: content, eTag: "\"1\"", for: request) }
        }
        let report = await explorer.explore { mock -> Data in
            let name = number.withLock { number in
                number += 1
                return "file\(number)"
            }
            mock.service.interceptors = [RetryPolicy(maximumAttempts: 3)]
            let file = folder.url.appendingPathComponent(name)
            _ = try await mock.service.GET("/file").download(to: file).value
            return try Data(contentsOf: file)
        } check: { run in
            if let data = run.output { try run.require(data == content, "a wrong file of \(data.count) bytes") }
            try run.require(run.end == .returned || run.end == .threw, "the download does not end")
        }
        #expect(report.failures.isEmpty)
        #expect(report.problems == [])
    }

    @Test("an upload is stored as a whole, or not at all, whatever is lost")
    func upload() async throws {
        let content = Data((0..<1_000).map { UInt8(truncatingIfNeeded: $0 * 7) })
        let folder = TemporaryFolder()
        let number = Mutex(0)
        var budget = FaultExplorer<TusModel>.Budget()
        budget.runs = amount(30, thorough: 10_000)
        budget.depth = amount(1, thorough: 2)
        let explorer = FaultExplorer(budget: budget) { mock in
            let store = TusModel()
            mock.on(.where("tus") { _ in true }) { request in store.respond(to: request) }
            return store
        }
        let report = await explorer.explore { mock -> Int64 in
            let name = number.withLock { number in
                number += 1
                return "file\(number)"
            }
            let file = try folder.file(name, content)
            mock.service.interceptors = [RetryPolicy(maximumAttempts: 3)]
            return try await mock.service.PUT("/files/1").setBody(file: file)
                .upload(resuming: .tus, pieceSize: 400).value.byteCount
        } check: { run in
            if run.output != nil { try run.require(run.model.data == content, "success without the whole file") }
            try run.require(run.model.data.count <= content.count, "bytes are stored twice")
        }
        #expect(report.failures.isEmpty)
        #expect(report.problems == [])
    }

    @Test("a message of a socket that is lost without an error is found")
    func socket() async throws {
        let explorer = FaultExplorer { mock in
            let model = Received()
            mock.on(
                .GET, "/socket",
                .webSocket { socket in
                    while case .text(let text)? = try await socket.next() {
                        model.texts.withLock { $0.append(text) }
                        try await socket.send("ok \(text)")
                    }
                })
            return model
        }
        let report = await explorer.explore { mock in
            let socket = try await mock.service.webSocket("/socket")
            var acknowledged = 0
            var messages = socket.messages.makeAsyncIterator()
            for text in ["a", "b"] {
                try await socket.send(text)
                if try await messages.next() != nil { acknowledged += 1 }
            }
            try? await socket.close()
            return acknowledged
        } check: { run in
            if let count = run.output {
                try run.require(run.model.texts.withLock { $0.count } >= count, "acknowledged without a message")
                try run.require(count == 2, "success without an acknowledgement")
            }
        }
        #expect(report.problems == [])
    }
}

final class Received: Sendable {
    let texts = Mutex<[String]>([])
}

/// A server of tus 1.0.
final class TusModel: Sendable {
    private struct State {
        var uploads: [String: Data] = [:]
        var lengths: [String: Int] = [:]
    }

    private let state = Mutex(State())

    /// The bytes of the largest upload.
    var data: Data { state.withLock { $0.uploads.values.max { $0.count < $1.count } } ?? Data() }

    func respond(to request: ReceivedRequest) -> MockResponse {
        let fields: Headers = ["Tus-Resumable": "1.0.0"]
        return state.withLock { state in
            switch request.method {
            case .OPTIONS:
                return .status(204).headers(fields.adding(["Tus-Version": "1.0.0", "Tus-Extension": "creation"]))
            case .HEAD:
                guard let data = state.uploads[request.path] else { return .status(404).headers(fields) }
                return .status(200).headers(
                    fields.adding([
                        "Upload-Offset": "\(data.count)", "Upload-Length": "\(state.lengths[request.path] ?? 0)",
                        "Cache-Control": "no-store",
                    ]))
            case .PATCH:
                guard let data = state.uploads[request.path] else { return .status(404).headers(fields) }
                guard request.headers["Upload-Offset"] == "\(data.count)" else { return .status(409).headers(fields) }
                state.uploads[request.path] = data + request.body
                return .status(204).headers(fields.adding(["Upload-Offset": "\(data.count + request.body.count)"]))
            case .PUT:
                state.uploads[request.path] = request.body
                return .status(201)
            default:
                let path = "/uploads/\(state.uploads.count + 1)"
                state.uploads[path] = Data()
                state.lengths[path] = Int(request.headers["Upload-Length"] ?? "") ?? 0
                return .status(201).headers(fields.adding(["Location": path]))
            }
        }
    }
}
