import Dispatch
import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Request logger and redaction", .timeLimit(.minutes(10)))
struct RequestLoggerTests {
    private func log(
        bodyLimit: Int = 4096, status: Int = 200, headers: [String: String] = [:], answer: String = "",
        _ configure: (SessionTask) -> Void
    ) async -> [String] {
        let lines = Collected<String>()
        let logger = RequestLogger(bodyLimit: bodyLimit) { lines.add($0) }
        let session = HandSession { exchange in
            let url = exchange.request.urlRequestValue.url ?? URL(fileURLWithPath: "/")
            exchange.completion(
                Data(answer.utf8),
                HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: headers), nil)
        }
        let task = WebService.make(session, delegate: logger).POST("/login?page=2&access_token=canary-query")
        configure(task)
        task.resume()
        return await lines.wait(for: 2)
    }

    @Test("A request and its response are logged in a readable format")
    func format() async {
        let lines = await log(status: 201, headers: ["Content-Type": "application/json"], answer: #"{"id":7}"#) {
            $0.setHeaderValue("text/plain", forName: "Accept").setJSON(["name": "Trashboat"])
        }
        #expect(
            lines == [
                """
                --> POST https://h/v1/login?page=2&access_token=[redacted]
                    Accept: text/plain
                    Content-Type: application/json
                    {"name":"Trashboat"}
                """,
                """
                <-- 201 https://h/v1/login?page=2&access_token=[redacted]
                    Content-Type: application/json
                    {"id":7}
                """,
            ])
    }

    @Test("The log contains no secret of header fields, query, JSON body or response", .covers("C-66", "G17"))
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
        #expect(text.contains("ann") && text.contains(#""ok":1"#))
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
            ("{\"token\"\n :\t \"can\\\"ary\" , \"a\":2}", "{\"token\"\n :\"[redacted]\" , \"a\":2}"),
            (#"{"token":12345canary}"#, #"{"token":"[redacted]"}"#),
            (#"{"token":["canary",{"x":"canary]}"}],"b":1}"#, #"{"token":"[redacted]","b":1}"#),
            (#"{"a":"token","token":"canar"#, #"{"a":"token","token":"[redacted]""#),
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

    @Test("JSON with 100,000 nested levels is redacted without recursion", .covers("C-38"))
    func deepJSON() {
        let deep = String(repeating: #"{"a":["#, count: 100_000) + #"{"token":"canary"}"#
        let text = Redaction.standard.body(Data(deep.utf8), contentType: "application/json")
        #expect(text?.hasSuffix(#"{"token":"[redacted]"}"#) == true)
    }

    @Test("Line breaks, terminal escape sequences and bidirectional controls are escaped", .covers("C-67"))
    func controls() async {
        let lines = await log(
            headers: ["X-Evil": "a\u{1B}[31mred\u{202E}"], answer: "[\"one\r\n<-- 200 forged\u{9B}\u{2028}\"]"
        ) { _ in }
        #expect(lines.count == 2)
        #expect(lines.last?.split(separator: "\n").count == 3)
        let text = lines.last ?? ""
        #expect(text.contains(#"a\u{1B}[31mred\u{202E}"#))
        #expect(text.contains(#"one\r\n<-- 200 forged\u{9B}\u{2028}"#))
    }

    @Test(
        "Logged bodies are truncated, binary bodies become a byte count, and sent bodies are unchanged", .covers("H-54")
    )
    func bodies() async {
        let sent = Collected<Data>()
        let body = Data(#"{"text":"äöüäöüäöü"}"#.utf8)
        let lines = await log(bodyLimit: 11, answer: "\u{0}\u{1}binary") { task in
            task.setBody(body, contentType: "application/json")
            sent.add(task.request.body ?? Data())
        }
        #expect(lines.first?.hasSuffix("{\"text\":\"ä… (29 bytes in total)") == true)
        #expect(lines.last?.hasSuffix("(8 bytes)") == true)
        #expect(sent.values == [body])
    }

    @Test("Transport errors and handler failures are logged without their values")
    func errors() async {
        enum Plain: Error { case nope }
        struct Loaded: Error { let secret: String }
        let lines = Collected<String>()
        let logger = RequestLogger { lines.add($0) }
        let failing = HandSession { $0.completion(nil, nil, URLError(.cannotConnectToHost)) }
        WebService.make(failing, delegate: logger).GET("/x?token=canary").resume()
        #expect(await lines.wait(for: 2).last == "<-- failed https://h/v1/x?token=[redacted]: URLError -1004")

        let service = WebService.make(HandSession(text: "{"), delegate: logger)
        service.GET("/y").response { _, _ in throw Plain.nope }.resume()
        #expect(await lines.wait(for: 5).last == "!!! https://h/v1/y: Plain.nope")
        service.GET("/y").response { _, _ in throw Loaded(secret: "canary") }.resume()
        #expect(await lines.wait(for: 8).last == "!!! https://h/v1/y: Loaded 1")
        service.GET("/y").responseJSON { _, _ in }.resume()
        #expect(await lines.wait(for: 11).last == "!!! https://h/v1/y: decoding: the response body is not valid JSON")
        #expect(!lines.values.joined().contains("canary"))
    }

    @Test("A slow output neither delays other tasks nor changes a result", .covers("H-53"), .enabled(if: isAlone))
    func slowOutput() async throws {
        let (entered, gate) = (Collected<String>(), DispatchSemaphore(value: 0))
        let logger = RequestLogger { text in
            guard text.contains("/slow") else { return }
            entered.add(text)
            _ = gate.wait(timeout: .now() + 50)
        }
        let session = HandSession { exchange in DispatchQueue.global().async { exchange.answer("[1]") } }
        let service = WebService.make(session, delegate: logger, timekeeper: nil)
        let slow = service.GET("/slow").string()
        DispatchQueue.global().async { slow.resume() }
        await entered.wait()
        for _ in 0..<20 { #expect(try await service.GET("/fast").string().value == "[1]") }
        #expect(entered.values.count == 1, "the slow output must not have returned")
        for _ in 0..<4 { gate.signal() }
        #expect(try await slow.value == "[1]")
    }
}
