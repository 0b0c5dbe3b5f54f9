import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceCassettes
@testable import WebServiceMocking

/// Recording and replaying over a mock session.
@Suite(.permit) final class CassetteTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url.appendingPathComponent("cassettes") }
    private var file: URL { folder.appendingPathComponent("brewers.json") }
    private let mock = MockSession()

    private func service(_ session: any Session) -> WebService {
        WebService("https://h/v1", session: session)
    }

    private func recorder() throws -> CassetteSession {
        try CassetteSession(file: file, mode: .record, session: mock)
    }

    private func text() throws -> String { try String(contentsOf: file, encoding: .utf8) }

    /// Records GET requests for some paths, each with its path as the response.
    private func record(_ paths: [String]) async throws {
        mock.on(.any) { .text($0.target) }
        let cassette = try recorder()
        for path in paths { _ = try await service(cassette).GET(path).string().value }
        try cassette.finish()
    }

    private func write(_ text: String) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }

    @Test("The file is sorted, readable JSON, and the same exchanges result in the same file")
    func format() async throws {
        mock.on(.POST, "/v1/brewers", .json(["id": 7], status: 201).header("X-Order", "1"))
        for _ in 0..<2 {
            let cassette = try recorder()
            #expect(cassette.isRecording)
            #expect(cassette.responseSource == .mock)
            let task = service(cassette).POST("/brewers?state=ny").setJSON(["name": "Trillium"])
            task.setHeaderValue("en", forName: "Accept-Language")
            _ = try await task.data().value
            try cassette.finish()
            #expect(
                try text() == """
                    {
                      "exchanges" : [
                        {
                          "request" : {
                            "headers" : [
                              "Accept-Language: en",
                              "Content-Type: application/json"
                            ],
                            "method" : "POST",
                            "text" : "{\\"name\\":\\"Trillium\\"}",
                            "url" : "https://h/v1/brewers?state=ny"
                          },
                          "response" : {
                            "headers" : [
                              "Content-Type: application/json",
                              "X-Order: 1"
                            ],
                            "status" : 201,
                            "text" : "{\\"id\\":7}"
                          }
                        }
                      ],
                      "version" : 2
                    }

                    """)
        }
    }

    @Test("Once records a file that does not exist and replays it afterwards, without a request")
    func once() async throws {
        mock.on(.any, .text("ale"))
        for isRecording in [true, false, false] {
            let cassette = try CassetteSession(file: file, session: mock)
            #expect(cassette.isRecording == isRecording)
            let response = try await service(cassette).GET("/a").data().response
            #expect(response.data == Data("ale".utf8))
            #expect(response.source == .mock)
            try cassette.finish()
        }
        #expect(mock.receivedRequests.count == 1)
    }

    @Test("Passthrough sends each request and neither reads nor writes a file")
    func passthrough() async throws {
        mock.on(.any, .text("ale"))
        try write("damaged")
        let cassette = try CassetteSession(file: file, mode: .passthrough, session: mock)
        for _ in 0..<2 { #expect(try await service(cassette).GET("/a").string().value == "ale") }
        try cassette.finish()
        #expect(mock.receivedRequests.count == 2)
        #expect(try text() == "damaged")
    }

    @Test("A replay needs a file, and a damaged file is a typed error that names it")
    func damage() async throws {
        let missing = #expect(throws: WebServiceError.self) { try CassetteSession(file: file, mode: .replay) }
        #expect(missing?.code == .cassette)
        try await record(["/a"])
        let whole = try text()
        let damaged = [
            "", "[]", String(whole.dropLast(40)),
            whole.replacingOccurrences(of: "\"version\" : 2", with: "\"version\" : 0"),
            whole.replacingOccurrences(of: "\"status\" : 200", with: "\"status\" : 7"),
            whole.replacingOccurrences(of: "text/plain", with: "text\\r\\nSet-Cookie: a=b"),
            whole.replacingOccurrences(of: "\"method\" : \"GET\",", with: ""),
        ]
        for text in damaged {
            try write(text)
            let error = #expect(throws: WebServiceError.self) { try CassetteSession(file: file) }
            #expect(error?.code == .cassette)
            #expect(error?.message.contains("brewers.json") == true)
        }
        try write(whole)
        #expect(try await service(CassetteSession(file: file)).GET("/a").string().value == "/v1/a")
    }

    @Test("Equal requests replay their exchanges in the recorded order, each once, in any order of requests")
    func byMatch() async throws {
        let stub = mock.on(.GET, "/v1/b", [.text("b1"), .text("b2")])
        mock.on(.GET, "/v1/a", .text("a"))
        let recording = try recorder()
        for path in ["/a", "/b", "/b"] { _ = try await service(recording).GET(path).string().value }
        try recording.finish()
        #expect(stub.callCount == 2)

        let cassette = try CassetteSession(file: file)
        var texts: [String] = []
        for path in ["/b", "/a", "/b"] { texts.append(try await service(cassette).GET(path).string().value) }
        #expect(texts == ["b1", "a", "b2"])
        try cassette.finish()
        let error = await #expect(throws: WebServiceError.self) {
            try await service(cassette).GET("/b").string().value
        }
        #expect(error?.code == .cassetteMismatch)
        #expect(
            error?.message == "all 2 exchanges of brewers.json for GET https://h/v1/b were already replayed; "
                + "record the cassette again or pass repeats: true")
    }

    @Test("In order, each request has to match the next exchange")
    func inOrder() async throws {
        try await record(["/a", "/b"])
        let cassette = try CassetteSession(file: file, order: .inOrder)
        let service = service(cassette)
        let early = await #expect(throws: WebServiceError.self) { try await service.GET("/b").string().value }
        #expect(
            early?.message == "no exchange of brewers.json matches GET https://h/v1/b; the next of 2 is exchange 1, "
                + "GET https://h/v1/a: URL: expected https://h/v1/a, received https://h/v1/b; correct the program "
                + "or record the cassette again")
        #expect(try await service.GET("/a").string().value == "/v1/a")
        #expect(try await service.GET("/b").string().value == "/v1/b")
        let late = await #expect(throws: WebServiceError.self) { try await service.GET("/b").string().value }
        #expect(
            late?.message == "no exchange of brewers.json is left for GET https://h/v1/b (2 were recorded); "
                + "correct the program or record the cassette again")
    }

    @Test("A mismatch names the nearest exchange and the differences of each part")
    func mismatch() async throws {
        mock.on(.any, .status(204))
        let recording = try recorder()
        _ = try await service(recording).GET("/other").empty().value
        let request = service(recording).POST("/orders?rush=1&page=2").setJSON(["kegs": 2, "password": "canary-one"])
        _ = try await request.empty().value
        try recording.finish()
        let cassette = try CassetteSession(file: file)
        let task = service(cassette).POST("/orders?rush=1&page=3").setJSON(["kegs": 5, "password": "canary-two"])
        let error = await #expect(throws: WebServiceError.self) { try await task.empty().value }
        #expect(
            error?.message == "no exchange of brewers.json matches POST https://h/v1/orders; the nearest of 2 is "
                + "exchange 2, POST https://h/v1/orders: query: expected page=2, received page=3; "
                + "JSON body at kegs: expected 2, received 5; correct the program or record the cassette again")
        let unused = #expect(throws: WebServiceError.self) { try cassette.finish() }
        #expect(
            unused?.message == "exchanges of brewers.json were not replayed: exchange 1, GET https://h/v1/other; "
                + "exchange 2, POST https://h/v1/orders; record the cassette again or call finish(allowsUnused: true)")
        try cassette.finish(allowsUnused: true)
    }

    @Test("JSON matches regardless of its spacing and order, and not with further names")
    func jsonBodies() async throws {
        mock.on(.any, .status(204))
        let recording = try recorder()
        _ = try await service(recording).POST("/").setBody(Data(#"{"a":1,"b":[2]}"#.utf8)).empty().value
        try recording.finish()
        let cassette = try CassetteSession(file: file)
        for (body, matches) in [(#"{"a":1,"b":[2],"c":3}"#, false), (#"{ "b": [2], "a": 1.0 }"#, true)] {
            let task = service(cassette).POST("/").setBody(Data(body.utf8)).empty()
            let result = await task.result
            #expect((result.isSuccess) == matches)
        }
    }

    @Test(
        "Identifiers of 64 bits that differ by one are different requests, and are replayed exactly")
    func longIdentifiers() async throws {
        let ids = ["9007199254740992", "9007199254740993", "18446744073709551615"]
        mock.on(.any) { .text(String(decoding: $0.body, as: UTF8.self)) }
        let recording = try recorder()
        for id in ids { _ = try await service(recording).POST("/").setBody(Data("{\"id\":\(id)}".utf8)).empty().value }
        try recording.finish()
        let cassette = try CassetteSession(file: file)
        let other = await service(cassette).POST("/").setBody(Data(#"{"id":18446744073709551614}"#.utf8)).empty().result
        #expect(!other.isSuccess)
        for id in ids.reversed() {
            let json = try await service(cassette).POST("/").setBody(Data("{\"id\":\(id)}".utf8)).json().value
            #expect(json["id"]?.uint64 == UInt64(id))
        }
    }

    @Test("With repeats, the last matching exchange is replayed again")
    func repeats() async throws {
        try await record(["/a", "/b"])
        let cassette = try CassetteSession(file: file, mode: .replay, repeats: true)
        for path in ["/a", "/a", "/b", "/a"] {
            #expect(try await service(cassette).GET(path).string().value == "/v1\(path)")
        }
        try cassette.finish()
        let error = await #expect(throws: WebServiceError.self) { try await service(cassette).GET("/c").data().value }
        #expect(error?.code == .cassetteMismatch)
    }

    @Test("Binary bodies, empty bodies, repeated header fields and multipart bodies are replayed exactly")
    func bodies() async throws {
        let bytes = Data((0...255).map { UInt8($0) })
        mock.on(.path("/v1/binary"), MockResponse(statusCode: 200, data: bytes))
        mock.on(.path("/v1/none"), .status(204))
        var cookies = MockResponse.status(200)
        cookies.headers.add("yes", for: "X-Flag")
        cookies.headers.add("", for: "X-Empty")
        mock.on(.path("/v1/fields"), cookies)
        for mode in [CassetteSession.Mode.record, .replay] {
            let cassette = try CassetteSession(
                file: file, mode: mode, session: mock, recordsUnsearchedBodies: true)
            let service = service(cassette)
            var form = MultipartFormData()
            form.append(bytes, name: "label", fileName: "label.png", contentType: "image/png")
            #expect(try await service.POST("/binary").setMultipart(form).data().value == bytes)
            #expect(try await service.PUT("/none").setBody(bytes).data().value.isEmpty)
            let response = try await service.GET("/fields").data().response
            #expect(response.header("X-Flag") == "yes")
            #expect(response.header("X-Empty") == "")
            try cassette.finish()
        }
    }

    @Test("A stream is recorded and replayed, also if its reader ends it early")
    func streams() async throws {
        let text = (1...3).map { "data: brew \($0)\n\n" }.joined()
        mock.on(.any, .text(text).header(.contentType, "text/event-stream"))
        for mode in [CassetteSession.Mode.record, .replay] {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock)
            var events: [String] = []
            for try await event in service(cassette).GET("/events").events(until: { $0.data == "brew 2" }) {
                events.append(event.data)
            }
            #expect(events == ["brew 1", "brew 2"])
            var lines = 0
            for try await _ in service(cassette).GET("/events").lines() { lines += 1 }
            #expect(lines == 6)
            try cassette.finish()
        }
        #expect(mock.receivedRequests.count == 2)
    }

    @Test("A stream that its reader ends early is recorded, even if the session never completes it")
    func endedStream() async throws {
        let cassette = try CassetteSession(file: file, mode: .record, session: EndlessSession(text: "data: brew\n\n"))
        for try await _ in service(cassette).GET("/events").events(until: { _ in true }) {}
        try cassette.finish()
        let replay = try CassetteSession(file: file)
        #expect(try await service(replay).GET("/events").string().value == "data: brew\n\n")
    }

    /// Calls a closure when it receives bytes, as a reader that takes them immediately.
    private final class ImmediateReader: BodyReceiver {
        let demand: Demand
        let read: @Sendable () -> Void

        init(_ demand: Demand, _ read: @escaping @Sendable () -> Void) { (self.demand, self.read) = (demand, read) }

        func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) {}
        func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand {
            read()
            return demand
        }
        func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {}
    }

    @Test("A stream that its reader ends as soon as it has the last bytes is recorded with them")
    func endedWithTheLastBytes() throws {
        let recorded = Collected<CassetteRecorder.Result>()
        let receiver = Mutex<RecordingReceiver?>(nil)
        let recording = RecordingReceiver(ImmediateReader(.more) { receiver.withLock { $0 }?.didCancel() }) {
            recorded.add($0)
        }
        receiver.withLock { $0 = recording }
        defer { receiver.withLock { $0 = nil } }
        let head = try #require(ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\n\r\n".utf8), url: "https://h/"))
        try recording.didReceive(head, length: nil, decoder: nil)
        _ = try Data("ale".utf8).withUnsafeBytes { try recording.didReceive($0) }
        guard case .response(let response) = recorded.values.first else {
            Issue.record("nothing was recorded")
            return
        }
        #expect(response.body == Data("ale".utf8))
    }

    @Test("Bytes that a paused reader does not take are recorded once, when they are delivered again")
    func pausedBytes() throws {
        let recorded = Collected<CassetteRecorder.Result>()
        let recording = RecordingReceiver(ImmediateReader(.pause) {}) { recorded.add($0) }
        let head = try #require(ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\n\r\n".utf8), url: "https://h/"))
        try recording.didReceive(head, length: nil, decoder: nil)
        for _ in 0..<2 { _ = try Data("ale".utf8).withUnsafeBytes { try recording.didReceive($0) } }
        recording.didCancel()
        guard case .response(let response) = recorded.values.first else {
            Issue.record("nothing was recorded")
            return
        }
        #expect(response.body.isEmpty == true)
    }

    @Test("A failure of the transport is replayed, and a cancelled request is not recorded")
    func failures() async throws {
        mock.on(.GET, "/v1/offline", .error(URLError(.notConnectedToInternet)))
        var silence = MockResponse(statusCode: 200)
        silence.wire = .noResponse
        mock.on(.GET, "/v1/silence", silence)
        for mode in [CassetteSession.Mode.record, .replay] {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock)
            let error = await #expect(throws: URLError.self) {
                try await service(cassette).GET("/offline").data().value
            }
            #expect(error?.code == .notConnectedToInternet)
            if mode == .record {
                let task = service(cassette).GET("/silence").data().resume()
                task.cancel()
                await #expect(throws: URLError(.cancelled)) { try await task.value }
            }
            try cassette.finish()
        }
    }

    @Test("500 requests at the same time are recorded and replayed, each with its own response")
    func concurrency() async throws {
        mock.on(.any) { .text($0.target) }
        for mode in [CassetteSession.Mode.record, .replay] {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock)
            let service = service(cassette)
            await withTaskGroup(of: Bool.self) { group in
                for number in 0..<500 {
                    group.addTask { (try? await service.GET("/\(number)").string().value) == "/v1/\(number)" }
                }
                for await isRight in group { #expect(isRight) }
            }
            try cassette.finish()
        }
        #expect(mock.receivedRequests.count == 500)
    }

    @Test("A replayed task can be cancelled, and sends nothing before it is resumed")
    func lifecycle() async throws {
        try await record(["/a"])
        let cassette = try CassetteSession(file: file)
        let task = service(cassette).GET("/a").string().resume()
        task.cancel()
        _ = await task.result
        let unused = cassette.streamTask(
            request: Request(.GET, url: "https://h/v1/a"),
            receiver: ResponseReceiver(Request(url: ""), source: .mock) { _, _ in })
        #expect(unused.state == .suspended)
    }

    @Test("Limits of the client apply to a replay")
    func limits() async throws {
        try await record(["/large"])
        let service = service(try CassetteSession(file: file))
        var request = service.request(.GET, path: "/large")
        request.options.maximumResponseBytes = 3
        let task = service.sessionTask(request: request).data()
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .responseTooLarge)
    }
}

/// A session that sends the beginning of a body and never completes, not even after a cancel.
private struct EndlessSession: StreamingSession {
    let text: String

    func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        Beginning(receiver, text)
    }

    private final class Beginning: StreamTask {
        private let receiver: any BodyReceiver
        private let text: String

        init(_ receiver: any BodyReceiver, _ text: String) {
            (self.receiver, self.text) = (receiver, text)
        }

        var state: DataTaskState { .running }

        func resume() {
            DispatchQueue.global().async { [receiver, text] in
                let head = Array("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".utf8)
                guard let head = ResponseHead(bytes: head, url: "https://h/v1/events") else { return }
                try? receiver.didReceive(head, length: nil, decoder: nil)
                _ = Array(text.utf8).withUnsafeBytes { try? receiver.didReceive($0) }
            }
        }

        func suspend() {}
        func cancel() {}
        func receiveMore() {}
    }
}

extension Result {
    fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}
