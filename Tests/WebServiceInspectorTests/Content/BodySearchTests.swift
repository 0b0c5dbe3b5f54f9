import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking

@testable import WebServiceInspector

@Suite("The search in bodies and the further contents of an inspector", .permit)
struct BodySearchTests {
    private let inspected = InspectedService()

    private func found(_ text: String) -> [Int] {
        BodySearch(text, in: inspected.store.exchanges(), .standard).numbers
    }

    @Test("A text is found in the bodies of requests and responses, without regard to case")
    func texts() async throws {
        try await inspected.send("/a", .text("Long Trail"))
        try await inspected.send("/b", .json(["name": "Trashboat"]))
        var request = Request(.POST, url: "https://h.example.com/b")
        request.content = .json(["name": "LONG way"])
        inspected.session.on(.POST, "/b", .text("done"))
        try await inspected.send(request)
        #expect(found("long") == [1, 3])
        #expect(found("TRASH") == [2])
        #expect(found("nothing") == [])
        #expect(found("") == [])
    }

    @Test("A secret and a body that is not shown are not found")
    func secrets() async throws {
        try await inspected.send("/a", .json(["password": "canary"]))
        try await inspected.send(
            "/b",
            MockResponse(
                statusCode: 200, headers: ["Content-Type": "application/octet-stream"], data: Data("canary".utf8)))
        #expect(found("canary") == [])
        #expect(found("password") == [1])
    }

    @Test("The bytes of a body that cannot be redacted are shown only with the option")
    func binaryBodies() async throws {
        let exchange = try await inspected.send(
            "/a",
            MockResponse(
                statusCode: 200, headers: ["Content-Type": "application/octet-stream"], data: Data([1, 2, 255])))
        let hidden = ShownExchange(exchange, .standard)
        #expect(hidden.attempts.last?.response?.body.bytes == nil)
        #expect(hidden.attempts.last?.response?.body.note?.contains("showsBinaryBodies") == true)
        let shown = ShownExchange(exchange, .standard, showsBinary: true)
        #expect(shown.attempts.last?.response?.body.bytes == Data([1, 2, 255]).base64EncodedString())
        #expect(shown.attempts.last?.response?.body.note == nil)
    }

    @Test("The row of an exchange lists its requests without secrets")
    func requests() async throws {
        inspected.session.on(
            .GET, "/a", MockResponse(statusCode: 302, headers: ["Location": "/b?token=canary"]))
        inspected.session.on(.GET, "/b", .text("body"))
        let exchange = try await inspected.send(Request(url: "https://h.example.com/a"))
        let row = ListedExchange(exchange, .standard)
        #expect(row.tries?.map(\.status) == [302, 200])
        #expect(
            row.tries?.map(\.url) == ["https://h.example.com/a", "https://h.example.com/b?token=[redacted]"])
        let single = try await inspected.send(Request(url: "https://h.example.com/b"))
        #expect(ListedExchange(single, .standard).tries == nil)
    }

    @Test("A failure has the descriptions of its causes, without secrets and within a limit")
    func causes() {
        let posix = NSError(domain: NSPOSIXErrorDomain, code: 111)
        let error = NSError(domain: "canary", code: 7, userInfo: [NSUnderlyingErrorKey: posix])
        let failure = RecordedFailure(WebServiceError(.decoding, "text", underlying: error))
        #expect(failure.text == "decoding: text")
        #expect(failure.causes == ["canary 7", "NSPOSIXErrorDomain 111"])
        var chain: any Error = posix
        for number in 0..<20 { chain = WebServiceError(.decoding, "\(number)", underlying: chain) }
        #expect(RecordedFailure(chain).causes.count == 8)
    }

    @Test("An inspector uses the port that it is given, also when it is started again")
    func port() async throws {
        let free = try Inspector()
        let port = try #require(free.url.port.flatMap { UInt16(exactly: $0) })
        free.stop()
        let first = try Inspector(port: port)
        _ = try await WebService(baseURL: first.url).GET("").string().value
        first.stop()
        let second = try Inspector(port: port)
        #expect(second.url.port == Int(port))
        #expect(second.url != first.url)
        #expect(throws: WebServiceError.self) { try Inspector(port: port) }
    }
}
