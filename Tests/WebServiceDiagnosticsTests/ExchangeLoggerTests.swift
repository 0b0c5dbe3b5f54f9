import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceDiagnostics

@Suite("Logger and redaction", .permit)
struct ExchangeLoggerTests {
    private let entries = Collected<LogEntry>()

    /// Returns the entries of one exchange; its identifier is replaced with `#N`.
    private func log(
        _ level: LogEntry.Level = .trace, bodyLimit: Int = 4096, status: Int = 200, headers: [String: String] = [:],
        answer: String = "", _ configure: (SessionTask) -> Void = { _ in }
    ) async -> [String] {
        let lines = Collected<String>()
        let session = HandSession { exchange in
            let url = exchange.request.urlRequestValue.url ?? URL(fileURLWithPath: "/")
            exchange.completion(
                Data(answer.utf8),
                HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: headers), nil)
        }
        let service = WebService.make(session)
        service.observers = [
            .log(level, bodyLimit: bodyLimit) { lines.add(Self.withoutID($0)) }
        ]
        let task = service.POST("/login?page=2&access_token=canary-query")
        configure(task)
        _ = await task.data().validateNothing().result
        return lines.values
    }

    private static func withoutID(_ entry: LogEntry) -> String {
        entry.text.replacingOccurrences(of: "#\(entry.exchange.id)", with: "#N")
    }

    @Test("The level info logs one line for each exchange")
    func lines() async {
        #expect(await log(.info, answer: "abc") == ["#N POST https://h/v1/login: 200 in 0.0 ms, 3 bytes"])
        #expect(await log(.info, status: 404) == ["#N POST https://h/v1/login: 404 in 0.0 ms, 0 bytes"])
        #expect(await log(.error, status: 404) == [])
    }

    @Test("The level debug logs one line for each event")
    func debug() async {
        #expect(
            await log(.debug, status: 201, answer: "abc") == [
                "#N --> POST https://h/v1/login?page=2&access_token=[redacted]",
                "#N <-- 201 https://h/v1/login?page=2&access_token=[redacted], at 0.0 ms",
                "#N POST https://h/v1/login: 201 in 0.0 ms, 3 bytes",
            ])
    }

    @Test("Entries have the status, the attempt, the duration and the template of the path as values")
    func values() async throws {
        let clock = TestClock()
        let mock = MockService(baseURLString: "https://h/v1", clock: clock)
        let service = mock.service
        service.interceptors = [.retry()]
        service.observers = [.log(.debug) { entries.add($0) }]
        mock.on(.GET, "/v1/brewers/7", [.error(URLError(.cannotConnectToHost)), .status(503), .status(204)])
        let task = Task(executorPreference: clock.executor) {
            try await service.GET("brewers/{id}?a=b", pathParameters: ["id": 7]).empty().value
        }
        await clock.advance(by: .seconds(60))
        try await task.value

        let all = entries.values
        #expect(Set(all.map(\.exchange.pathTemplate)) == ["/brewers/{id}"])
        let attempts = all.filter { $0.attempt != nil }
        #expect(attempts.map(\.attempt) == [1, 1, 2, 2, 3, 3, 3])
        #expect(attempts.map(\.status) == [nil, nil, nil, 503, nil, 204, 204])
        #expect(attempts.map(\.failure) == [nil, "URLError -1004", nil, nil, nil, nil, nil])
        let last = try #require(all.last)
        #expect(last.duration > .zero)
        #expect(last.duration == all.map(\.duration).max())
    }

    @Test("An entry of an exchange without a response has its error as a value")
    func failure() async throws {
        let mock = MockService()
        mock.on(.GET, "/a", .error(URLError(.notConnectedToInternet)))
        mock.service.observers = [.log { entries.add($0) }]
        _ = await mock.service.GET("/a").empty().result
        let entry = try #require(entries.values.first)
        #expect(entry.failure == "URLError -1009")
        #expect(entry.status == nil)
        #expect(entry.attempt == 1)
    }

    @Test("The level trace logs requests and their responses with header fields and bodies")
    func format() async {
        let lines = await log(status: 201, headers: ["Content-Type": "application/json"], answer: #"{"id":7}"#) {
            $0.setHeaderValue("text/plain", forName: "Accept").setJSON(["name": "Trashboat"])
        }
        #expect(
            lines == [
                """
                #N --> POST https://h/v1/login?page=2&access_token=[redacted]
                    Accept: text/plain
                    Content-Type: application/json
                    {"name":"Trashboat"}
                """,
                "#N <-- head 201",
                """
                #N <-- 201 https://h/v1/login?page=2&access_token=[redacted], at 0.0 ms
                    Content-Type: application/json
                    {"id":7}
                """,
                "#N POST https://h/v1/login: 201 in 0.0 ms, 8 bytes",
            ])
    }

    @Test("Retries, sources and errors are logged with their levels")
    func levels() async throws {
        let service = WebService.make(ScriptedSession([.error(.networkConnectionLost), .status(200)]))
        service.observers = [.log(.debug) { entries.add($0) }]
        service.interceptors = [RetryPolicy(random: { 1 }, pause: { _ in })]
        _ = try await service.GET("/x").data().value
        #expect(
            entries.values.map { "\($0.level) \(Self.withoutID($0))" } == [
                "debug #N --> GET https://h/v1/x", "warning #N <-- failed, at 0.0 ms: URLError -1005",
                "debug #N retry: URLError -1005, pause of 0.5 seconds, at 0.0 ms", "debug #N wait, at 0.0 ms",
                "debug #N --> GET https://h/v1/x", "debug #N <-- 200 https://h/v1/x, at 0.0 ms",
                "info #N GET https://h/v1/x: 200 in 0.0 ms, 0 bytes, 2 attempts",
            ])
        #expect(LogEntry.Level.allCases.sorted() == [.trace, .debug, .info, .warning, .error])
    }

    @Test("An exchange of a typed request is logged with the identifiers of both")
    func parents() async throws {
        struct Get: HTTPServiceRequest {
            typealias Output = Data
            func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
        }
        let service = WebService.make(HandSession(text: "abc"))
        service.observers = [.log { entries.add($0) }]
        _ = try await service.perform(Get()).value
        let entry = try #require(entries.values.first)
        let parent = try #require(entry.exchange.parent)
        #expect(entry.text == "#\(parent)/#\(entry.exchange.id) GET https://h/v1/x: 200 in 0.0 ms, 3 bytes")
        #expect(entries.values.count == 1)
        #expect("\(entry)" == entry.text)
    }

    @Test("The log contains no secret of header fields, query, JSON body or response")
    func secrets() async {
        let lines = await log(
            headers: [
                "Set-Cookie": "sid=canary-setcookie", "Content-Type": "application/json",
                "Location": "https://u:canary-user@h/?token=canary-loc#canary-f",
            ],
            answer: #"{"access_token" : "canary-answer","deep":[{"refreshToken":{"a":["canary-deep"]}}],"ok":1}"#
        ) {
            $0.setHeaders([
                "Authorization": "Bearer canary-auth", "Cookie": "canary-cookie", "X-API-Key": "canary-key",
                "X-Amz-Security-Token": "canary-amz",
            ])
            .setJSON(["password": "canary-password", "user": "ann", "client_secret": "canary-secret"])
        }
        let text = lines.joined(separator: "\n")
        #expect(!text.contains("canary"))
        #expect(text.contains("ann"))
        #expect(text.contains(#""ok":1"#))
        #expect(text.contains("Location: https://h/?token=[redacted]"))
    }

    @Test("Secret form parameters are redacted, regardless of the notation of their names")
    func formSecrets() {
        let form = Data("user=ann&pass%77ord=canary&grant_type=x&refresh-token=canary&empty=&flag".utf8)
        #expect(
            Redaction.standard.body(form, contentType: "application/x-www-form-urlencoded")
                == "user=ann&pass%77ord=[redacted]&grant_type=x&refresh-token=[redacted]&empty=&flag")
    }

    @Test(
        "Secret JSON keys are found despite escapes, spaces, truncation and invalid JSON",
        arguments: [
            (#"{"pass\u0077ord":"canary","a":1}"#, #"{"pass\u0077ord":"[redacted]","a":1}"#),
            ("{\"token\"\n :\t \"can\\\"ary\" , \"a\":2}", "{\"token\"\n :\t \"[redacted]\" , \"a\":2}"),
            (#"{"token":12345canary}"#, #"{"token":[redacted]"#),
            (#"{"token":["canary",{"x":"canary]}"}],"b":1}"#, #"{"token":["[redacted]",{"x":"[redacted]"}],"b":1}"#),
            (#"{"a":"token","token":"canar"#, #"{"a":"token","token":"[redacted]"#),
            (#"{"token""#, #"{"token""#),
            (#"["token","password"]"#, #"["token","password"]"#),
            (#"{"shipping":1,"author":"x","PIN":"canary"}"#, #"{"shipping":1,"author":"x","PIN":"[redacted]"}"#),
        ])
    func jsonSecrets(given: String, expected: String) {
        #expect(Redaction.standard.body(Data(given.utf8), contentType: "application/json") == expected)
    }

    @Test(
        "JSON is redacted regardless of its media type and of leading characters",
        arguments: [
            ("application/json", "\u{FEFF}{\"token\":\"canary\"}"),
            ("application/json-seq", "\u{1E}{\"token\":\"canary\"}\n"),
            ("application/x-ndjson", "1\n{\"token\":\"canary\"}"),
            ("application/x-www-form-urlencoded", "{\"token\":\"canary\"}"),
            ("image/png", "{\"token\":\"canary\"}"), (nil, " [{\"token\":\"canary\"}]"),
        ])
    func disguisedJSON(type: String?, body: String) {
        let text = Redaction.standard.body(Data(body.utf8), contentType: type)
        #expect(text == body.replacingOccurrences(of: "canary", with: "[redacted]"))
    }

    @Test("Line breaks, terminal escape sequences and bidirectional controls are escaped")
    func controls() async {
        let lines = await log(
            headers: ["X-Evil": "a\u{1B}[31mred\u{202E}"], answer: "[\"one\r\n<-- 200 forged\u{9B}\u{2028}\"]"
        ) { _ in }
        #expect(lines.count == 4)
        #expect(lines[2].split(separator: "\n").count == 3)
        #expect(lines[2].contains(#"a\u{1B}[31mred\u{202E}"#))
        #expect(lines[2].contains(#"one\r\n<-- 200 forged\u{9B}\u{2028}"#))
    }

    @Test(
        "Logged bodies are truncated, binary bodies become a byte count, and sent bodies are unchanged"
    )
    func bodies() async {
        let sent = Collected<Data>()
        let body = Data(#"{"text":"äöüäöüäöü"}"#.utf8)
        let lines = await log(bodyLimit: 11, answer: "\u{0}\u{1}binary") { task in
            task.setBody(body, contentType: "application/json")
            sent.add(task.request.body ?? Data())
        }
        #expect(lines.first?.hasSuffix("{\"text\":\"ä… (29 bytes in total)") == true)
        #expect(lines[2].hasSuffix("(8 bytes)"))
        #expect(sent.values == [body])
    }

    @Test("Transport errors and handler failures are logged without their values")
    func errors() async throws {
        enum Plain: Error { case nope }
        struct Loaded: Error { let secret: String }
        let failing = WebService.make(HandSession { $0.completion(nil, nil, URLError(.cannotConnectToHost)) })
        failing.observers = [.log(.error) { entries.add($0) }]
        failing.GET("/x?token=canary").resume()
        let failure = "#N GET https://h/v1/x: failed in 0.0 ms, URLError -1004"
        #expect(await entries.wait().map(Self.withoutID) == [failure])

        let service = WebService.make(HandSession(text: "{"))
        service.observers = failing.observers
        service.GET("/y").response { _, _ in throw Plain.nope }.resume()
        #expect(await entries.wait(for: 2).last.map(Self.withoutID) == "#N failure: Plain, at 0.0 ms")
        service.GET("/y").response { _, _ in throw Loaded(secret: "canary") }.resume()
        #expect(await entries.wait(for: 3).last.map(Self.withoutID) == "#N failure: Loaded, at 0.0 ms")
        service.GET("/y").responseJSON { _, _ in }.resume()
        #expect(await entries.wait(for: 4).last.map(Self.withoutID) == "#N failure: decoding, at 0.0 ms")
        _ = await service.GET("/{id}").data().result
        try #require(entries.values.count == 5)
        #expect(entries.values[4].text.contains("failed in 0.0 ms, invalidURL: "))
        #expect(!entries.values.map(\.text).joined().contains("canary"))
    }

    @Test("Secrets in notes and messages of errors, also in encoded URLs, are redacted")
    func notes() async {
        let lines = Collected<String>()
        let service = WebService.make(HandSession(text: "{}"))
        service.observers = [.log(.debug) { lines.add(Self.withoutID($0)) }]
        service.interceptors = [
            .closure { request, next in
                next.record(.cache, "instead of https://h/?u=%2Fa%3Ftoken%3Dcanary")
                throw WebServiceError(.decoding, "https://h/?u=%2Fa%3Ftoken%3Dcanary is damaged")
            }
        ]
        let task = service.GET("/to/https%3A%2F%2Fg%3Ftoken%3Dcanary")
        _ = await task.data().result
        #expect(
            lines.values == [
                "#N cache: instead of https://h/?u=%2Fa%3Ftoken%3D%5Bredacted%5D, at 0.0 ms",
                "#N GET https://h/v1/to/https%3A%2F%2Fg%3Ftoken%3D%5Bredacted%5D: failed in 0.0 ms, "
                    + "decoding: https://h/?u=%2Fa%3Ftoken%3D%5Bredacted%5D is damaged",
            ])
        #expect(!task.timeline.explain().contains("canary"))
    }

    @Test("A slow output neither delays other tasks nor changes a result", .exclusive)
    func slowOutput() async throws {
        let (entered, gate) = (Collected<String>(), DispatchSemaphore(value: 0))
        let logger = ExchangeLogger { entry in
            guard entry.text.contains("/slow") else { return }
            entered.add(entry.text)
            _ = gate.wait(timeout: .now() + 50)
        }
        let session = HandSession { exchange in DispatchQueue.global().async { exchange.respond("[1]") } }
        let service = WebService.make(session, timekeeper: nil)
        service.observers = [logger]
        let slow = service.GET("/slow").string()
        DispatchQueue.global().async { slow.resume() }
        await entered.wait()
        for _ in 0..<20 { #expect(try await service.GET("/fast").string().value == "[1]") }
        #expect(entered.values.count == 1, "the slow output must not have returned")
        for _ in 0..<4 { gate.signal() }
        #expect(try await slow.value == "[1]")
    }
}
