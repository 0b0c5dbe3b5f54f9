import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking

/// The mode that adds missing exchanges, the criteria of matching, and the change of exchanges.
@Suite(.permit) struct CassetteModeTests {
    private let temporary = TemporaryFolder()
    private var file: URL { temporary.url.appendingPathComponent("brewers.json") }
    private let mock = MockSession()

    private func service(_ session: any Session) -> WebService { WebService("https://h/v1", session: session) }

    private func text() throws -> String { try String(contentsOf: file, encoding: .utf8) }

    private func record(_ paths: [String], _ mode: CassetteSession.Mode = .record) async throws -> [String] {
        mock.on(.any) { .text($0.target) }
        let cassette = try CassetteSession(file: file, mode: mode, session: mock)
        var texts: [String] = []
        for path in paths { texts.append(try await service(cassette).GET(path).string().value) }
        try cassette.finish()
        return texts
    }

    private var sent: [String] { mock.receivedRequests.map(\.path) }

    @Test("Missing exchanges are sent and added to the file, and the others are replayed")
    func recordMissing() async throws {
        #expect(try await record(["/a"], .recordMissing) == ["/v1/a"])
        #expect(try await record(["/b", "/a", "/c"], .recordMissing) == ["/v1/b", "/v1/a", "/v1/c"])
        #expect(sent == ["/v1/a", "/v1/b", "/v1/c"])
        #expect(try await record(["/c", "/b", "/a"], .replay) == ["/v1/c", "/v1/b", "/v1/a"])
        #expect(sent.count == 3)
    }

    @Test("Without a missing exchange, the file is not written")
    func nothingMissing() async throws {
        _ = try await record(["/a", "/b"])
        let old = try text() + "\n"
        try Data(old.utf8).write(to: file)
        _ = try await record(["/a"], .recordMissing)
        #expect(try text() == old)
        #expect(sent == ["/v1/a", "/v1/b"])
    }

    @Test("In order, a request is new only after all recorded exchanges")
    func recordMissingInOrder() async throws {
        _ = try await record(["/a", "/b"])
        let cassette = try CassetteSession(file: file, mode: .recordMissing, session: mock, order: .inOrder)
        let service = service(cassette)
        #expect(try await service.GET("/a").string().value == "/v1/a")
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/c").string().value }
        #expect(error?.code == .cassetteMismatch)
        #expect(try await service.GET("/b").string().value == "/v1/b")
        #expect(try await service.GET("/c").string().value == "/v1/c")
        try cassette.finish()
        #expect(sent == ["/v1/a", "/v1/b", "/v1/c"])
    }

    @Test("A new secret has a placeholder that the file does not contain yet")
    func placeholders() async throws {
        mock.on(.any, .text("ale"))
        for (mode, key) in [(CassetteSession.Mode.record, "canary-one"), (.recordMissing, "canary-two")] {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock)
            _ = try await service(cassette).GET("/\(mode)?api_key=\(key)").string().value
            try cassette.finish()
        }
        #expect(try text().contains("/v1/record?api_key=redacted-1"))
        #expect(try text().contains("/v1/recordMissing?api_key=redacted-2"))
    }

    @Test("A request is cancelled before and while its exchange is selected")
    func cancellation() async throws {
        _ = try await record(["/a"])
        let cassette = try CassetteSession(file: file, mode: .recordMissing, session: mock, repeats: true)
        for _ in 0..<50 {
            let task = service(cassette).GET("/a").string().resume()
            task.cancel()
            _ = await task.result
        }
        let completed = Collected<URLError.Code?>()
        let task = cassette.dataTask(request: Request(.GET, url: "https://h/v1/a")) { _, _, error in
            completed.add((error as? URLError)?.code)
        }
        #expect(task.state == .suspended)
        task.cancel()
        await eventually("the task completes") { completed.values.count == 1 }
        #expect(completed.values == [.cancelled])
        task.resume()
        #expect(task.state == .completed)
        #expect(sent == ["/v1/a"])
    }

    // MARK: Criteria

    /// Records one POST request, and returns whether another one matches it.
    private func matches(
        _ criteria: [CassetteSession.Criterion], url: String = "https://h/v1/orders?page=1",
        body: String = #"{"id":1,"nonce":"a"}"#, language: String = "en"
    ) async throws -> Result<Data, any Error> {
        func send(_ session: CassetteSession, _ url: String, _ body: String, _ language: String) async throws -> Data {
            let task = WebService("", session: session).POST(url).setBody(Data(body.utf8))
            task.setHeaderValue("application/json", forName: "Content-Type")
            task.setHeaderValue(language, forName: "Accept-Language")
            task.setHeaderValue("Bearer canary-\(UUID())", forName: "Authorization")
            return try await task.data().value
        }
        mock.on(.any, .status(204))
        let recording = try CassetteSession(file: file, mode: .record, session: mock)
        _ = try await send(recording, "https://h/v1/orders?page=1", #"{"id":1,"nonce":"a"}"#, "en")
        try recording.finish()
        let cassette = try CassetteSession(file: file, mode: .replay, matching: criteria)
        do { return .success(try await send(cassette, url, body, language)) } catch { return .failure(error) }
    }

    @Test("Only the criteria are compared")
    func criteria() async throws {
        #expect(try await matches([.method, .url], url: "https://h/v1/orders?page=2", body: "{}").isSuccess)
        #expect(try await matches([.method, .path, .query, .body], url: "https://other:81/v1/orders?page=1").isSuccess)
        #expect(try await !matches([.path], url: "https://h/v1/other").isSuccess)
        #expect(try await !matches([.query], url: "https://h/v1/orders?page=2").isSuccess)
        #expect(try await matches([.query], url: "https://h/v1/other?page=1", body: "{}").isSuccess)
        #expect(try await !matches([.body], body: "{}").isSuccess)
        #expect(try await matches([], url: "https://other/", body: "{}").isSuccess)
    }

    @Test("A header field is compared if a criterion names it, and secrets are equal")
    func headerCriterion() async throws {
        #expect(try await matches([.method, .header("Authorization")]).isSuccess)
        #expect(try await matches([.method, .header("accept-language")]).isSuccess)
        let result = try await matches([.method, .header("Accept-Language")], language: "de")
        #expect(
            (result.thrown as? WebServiceError)?.message
                == "no exchange of brewers.json matches POST https://h/v1/orders; the nearest of 1 is exchange 1, "
                + "POST https://h/v1/orders: header fields: expected Accept-Language: en, "
                + "received Accept-Language: de; correct the program or record the cassette again")
    }

    @Test("A closure compares a recorded and a received request without their secrets")
    func customCriterion() async throws {
        let id = CassetteSession.Criterion.custom { recorded, received in
            guard recorded.headers["Authorization"] == received.headers["Authorization"] else { return false }
            return (try? recorded.json()["id"]) == (try? received.json()["id"])
        }
        #expect(try await matches([.method, .url, id], body: #"{"nonce":"b","id":1}"#).isSuccess)
        let result = try await matches([.method, .url, id], body: #"{"nonce":"b","id":2}"#)
        #expect((result.thrown as? WebServiceError)?.message.contains(": a custom criterion is not met;") == true)
    }

    // MARK: Changes of exchanges

    @Test("An exchange is changed or left out before it is recorded")
    func change() async throws {
        mock.on(.any) { .text("\($0.target) at 12:30").header("X-Trace", "7") }
        let cassette = try CassetteSession(
            file: file, mode: .record, session: mock,
            willRecord: { exchange in
                if exchange.url.hasSuffix("/metrics") { return nil }
                var exchange = exchange
                exchange.responseHeaders.remove("X-Trace")
                exchange.responseBody = Data("12:00".utf8)
                exchange.url += "?fixed=1"
                return exchange
            })
        for path in ["/a", "/metrics"] { _ = try await service(cassette).GET(path).string().value }
        try cassette.finish()
        let replay = try CassetteSession(file: file, mode: .replay)
        let response = try await service(replay).GET("/a?fixed=1").data().response
        #expect(response.data == Data("12:00".utf8))
        #expect(response.header("X-Trace") == nil)
        try replay.finish()
        #expect(try !text().contains("metrics"))
    }

    @Test("The closure receives no secret, and cannot add one")
    func secretInChange() async throws {
        mock.on(.any, .json(["access_token": "canary-token", "kind": "ale"]))
        let bodies = Collected<String>()
        let cassette = try CassetteSession(
            file: file, mode: .record, session: mock,
            willRecord: { exchange in
                bodies.add(String(decoding: exchange.responseBody, as: UTF8.self) + exchange.url)
                var exchange = exchange
                exchange.responseBody = Data(#"{"kind":"canary-token"}"#.utf8)
                return exchange
            })
        _ = try await service(cassette).GET("/login?api_key=canary-key").json().value
        let error = #expect(throws: WebServiceError.self) { try cassette.finish() }
        #expect(error?.code == .cassetteSecret)
        #expect(bodies.values.count == 1)
        #expect(bodies.values.filter { $0.contains("canary") } == [])
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }

    @Test("A change that is no exchange, and an error of the closure, write no file")
    func invalidChange() async throws {
        struct Refusal: Error {}
        mock.on(.any, .text("ale"))
        for status in [7, nil] as [Int?] {
            let cassette = try CassetteSession(
                file: file, mode: .record, session: mock,
                willRecord: { exchange in
                    guard let status else { throw Refusal() }
                    var exchange = exchange
                    exchange.status = status
                    return exchange
                })
            _ = try await service(cassette).GET("/a").string().value
            let error = #expect(throws: (any Error).self) { try cassette.finish() }
            #expect(error is Refusal == (status == nil))
            #expect((error as? WebServiceError)?.code == (status == nil ? nil : .cassette))
        }
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }
}

extension Result {
    fileprivate var isSuccess: Bool { thrown == nil }
    fileprivate var thrown: Failure? { if case .failure(let error) = self { error } else { nil } }
}
