import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceCore

/// The fields `Deprecation` (RFC 9745) and `Sunset` (RFC 8594). The test clock begins in 2026.
@Suite("Deprecated resources", .permit)
struct DeprecationTests {
    private let clock = TestClock()

    private func mock(_ headers: Headers, status: Int = 200) -> MockService {
        let mock = MockService(clock: clock)
        var response = MockResponse(statusCode: status, data: Data("\"x\"".utf8))
        response.headers = headers
        mock.on(.any, response)
        return mock
    }

    private func notes(_ timeline: Timeline) -> [String] {
        timeline.events.filter { $0.kind == .deprecation }.map(\.detail)
    }

    private func notes(_ headers: Headers) async throws -> [String] {
        let task = mock(headers).service.GET("/a").data()
        _ = try await task.value
        return notes(task.timeline)
    }

    @Test("The examples of RFC 9745 and RFC 8594 are in the timeline")
    func examples() async throws {
        #expect(try await notes(["Deprecation": "@1688169599"]) == ["has been deprecated since 2023-06-30"])
        #expect(
            try await notes(["Deprecation": "@1688169599", "Sunset": "Sun, 30 Jun 2024 23:59:59 UTC"])
                == ["has been deprecated since 2023-06-30"])
        #expect(try await notes(["Sunset": "Sat, 31 Dec 2018 23:59:59 GMT"]) == ["ended on 2018-12-31"])
    }

    @Test(
        "Dates in the past and in the future are distinguished",
        arguments: [
            ("@1767225600", nil, "has been deprecated since 2026-01-01"),
            ("@1767225601", nil, "will be deprecated on 2026-01-01"),
            ("@-1", nil, "has been deprecated since 1969-12-31"),
            (" @1767225600;a=b ", nil, "has been deprecated since 2026-01-01"),
            (nil, "Tue, 30 Jun 2026 00:00:00 GMT", "ends on 2026-06-30"),
            (
                "@1767225600", "Tue, 30 Jun 2026 00:00:00 GMT",
                "has been deprecated since 2026-01-01 and ends on 2026-06-30"
            ),
        ] as [(String?, String?, String)])
    func dates(deprecation: String?, sunset: String?, detail: String) async throws {
        var headers = Headers()
        headers["Deprecation"] = deprecation
        headers["Sunset"] = sunset
        #expect(try await notes(headers) == [detail])
    }

    @Test(
        "Invalid values are ignored",
        arguments: [
            "true", "?1", "1688169599", "@", "@-", "@1.5", "@1688169599x", "@1234567890123456", "@999999999999999",
            "@ 1",
            "Sun, 06 Nov 1994 08:49:37 GMT", "@1688169599, @1", "", ";@1",
        ])
    func invalid(value: String) async throws {
        #expect(try await notes(["Deprecation": value]) == [])
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        if value != date { #expect(try await notes(["Sunset": value]) == []) }
    }

    @Test("The explanation has a sentence after that of the attempt")
    func explanation() async throws {
        let headers: Headers = ["Deprecation": "@1767225600", "Sunset": "Tue, 30 Jun 2026 00:00:00 GMT"]
        let task = mock(headers).service.GET("/a").data()
        _ = try await task.value
        let lines = task.timeline.explain().split(separator: "\n").map(String.init)
        #expect(
            lines[1]
                == "The server reports that this resource has been deprecated since 2026-01-01 and ends on 2026-06-30.")
    }

    @Test("Equal notes of several attempts are added once, and those of failed attempts are included")
    func attempts() async throws {
        let mock = MockService(clock: clock)
        var response = MockResponse(statusCode: 503)
        response.headers = ["Deprecation": "@1", "Retry-After": "0"]
        var last = MockResponse(statusCode: 200)
        last.headers = ["Deprecation": "@1"]
        mock.on(.any, [response, response, last])
        mock.service.interceptors = [.retry()]
        let task = mock.service.GET("/a").data().resume()
        await clock.advance(by: .seconds(10))
        _ = try await task.value
        #expect(notes(task.timeline) == ["has been deprecated since 1970-01-01"])
        #expect(task.timeline.events.map(\.start) == task.timeline.events.map(\.start).sorted())
    }

    @Test("Observers receive an event after the end of the attempt, and the summary has the note")
    func observers() async throws {
        let recorder = EventRecorder()
        let mock = mock(["Deprecation": "@1"])
        mock.service.observers = [recorder]
        _ = try await mock.service.GET("/a").data().value
        await eventually { recorder.events.values.contains { if case .ended = $0.kind { true } else { false } } }
        let kinds = recorder.events.values.map { event in
            switch event.kind {
            case .attemptEnded: "attempt"
            case .recorded(let event): event.kind.description
            case .ended(let summary): "ended " + notes(summary.timeline).joined()
            default: ""
            }
        }
        #expect(
            kinds.filter { !$0.isEmpty }.prefix(3) == [
                "attempt", "notice", "ended has been deprecated since 1970-01-01",
            ])
    }

    @Test("Streams and typed requests have the note")
    func requests() async throws {
        struct Typed: HTTPServiceRequest {
            typealias Output = String
            func request(for service: WebService) -> Request { service.request(.GET, path: "/a") }
        }
        let mock = mock(["Sunset": "Sat, 31 Dec 2018 23:59:59 GMT"])
        let stream = mock.service.GET("/a").stream()
        let body = try await stream.value.body
        for try await _ in body {}
        #expect(notes(stream.timeline) == ["ended on 2018-12-31"])
        let typed = mock.service.perform(Typed())
        _ = try await typed.value
        #expect(notes(typed.timeline) == ["ended on 2018-12-31"])
    }
}
