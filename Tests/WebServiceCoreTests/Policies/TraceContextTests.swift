import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

@Suite("Trace context", .permit)
struct TraceContextTests {
    private let session = HandSession(text: "x")

    /// Sends each request twice.
    private static let twice: any Interceptor = .closure { request, next in
        _ = try await next(request)
        return try await next(request)
    }

    private static let given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"

    private func parts(_ session: HandSession) -> [[String]] {
        session.exchanges.values.map { exchange in
            let field = exchange.request.urlRequestValue.value(forHTTPHeaderField: "traceparent") ?? ""
            return field.split(separator: "-").map(String.init)
        }
    }

    @Test("The attempts of an exchange share a trace and have different spans", arguments: [true, false])
    func attempts(tracesFirst: Bool) async throws {
        let service = WebService.make(session)
        service.interceptors = tracesFirst ? [.traceContext(), Self.twice] : [Self.twice, .traceContext()]
        for _ in 1...2 { _ = try await service.GET("/x").data().value }
        let sent = parts(session)
        #expect(sent.map(\.count) == [4, 4, 4, 4])
        #expect(Set(sent.map { $0[1] }).count == 2)
        #expect(sent[0][1] == sent[1][1])
        #expect(sent[2][1] == sent[3][1])
        #expect(Set(sent.map { $0[2] }).count == 4)
        for parts in sent {
            let isWhole = try /00-[0-9a-f]{32}-[0-9a-f]{16}-01/.wholeMatch(in: parts.joined(separator: "-")) != nil
            #expect(isWhole, "\(parts)")
        }
    }

    @Test(
        "A redirect is another span of the trace, and one to another origin ends it",
        arguments: ["/v1/b", "https://other/b", "https://other/c"])
    func redirects(location: String) async throws {
        let session = MockSession()
        session.addStub(requestMatcher: { _ in true }) { request in
            switch request.urlRequestValue.url?.lastPathComponent {
            case "a": MockResponse(statusCode: 302, headers: ["Location": location])
            case "c": MockResponse(statusCode: 302, headers: ["Location": "https://h/d"])
            default: MockResponse(statusCode: 200)
            }
        }
        let service = WebService.make(session)
        service.interceptors = [.traceContext()]
        _ = try await service.GET("/a").data().value
        let sent = session.recordedRequests.map { request in
            (request.value(forHTTPHeaderField: "traceparent") ?? "").split(separator: "-").map(String.init)
        }
        guard location == "/v1/b" else {
            #expect(sent.map(\.count) == (location == "https://other/b" ? [4, 0] : [4, 0, 0]))
            return
        }
        #expect(sent.map(\.count) == [4, 4])
        #expect(sent.first?[1] == sent.last?[1])
        #expect(sent.first?[2] != sent.last?[2])
    }

    @Test("A valid `traceparent` of the request keeps its trace identifier, flags and `tracestate`")
    func given() async throws {
        let service = WebService.make(session)
        service.interceptors = [Self.twice, .traceContext()]
        _ = try await service.GET("/x").setHeaderValue(Self.given, forName: "Traceparent")
            .setHeaderValue("a=1", forName: "tracestate").data().value
        let sent = parts(session)
        #expect(sent.map(\.count) == [4, 4])
        #expect(sent.map { $0[1] } == Array(repeating: "4bf92f3577b34da6a3ce929d0e0e4736", count: 2))
        #expect(sent.map { $0[3] } == ["00", "00"])
        #expect(Set(sent.map { $0[2] } + ["00f067aa0ba902b7"]).count == 3)
        let request = try #require(session.exchanges.values.last).request.urlRequestValue
        #expect(request.value(forHTTPHeaderField: "tracestate") == "a=1")
    }

    @Test("An invalid `traceparent` is replaced, and its `tracestate` is removed")
    func invalid() async throws {
        let service = WebService.make(session)
        service.interceptors = [.traceContext()]
        _ = try await service.GET("/x").setHeaderValue("00-1-2-3", forName: "traceparent")
            .setHeaderValue("a=1", forName: "tracestate").data().value
        let request = try #require(session.exchanges.values.last).request.urlRequestValue
        #expect(parts(session).first?.map(\.utf8.count) == [2, 32, 16, 2])
        #expect(request.value(forHTTPHeaderField: "tracestate") == nil)
    }

    @Test("A field value is parsed by the rules of each version")
    func parsing() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
        let zeros = String(repeating: "0", count: 32)
        #expect(TraceParent("00-\(trace)-\(span)-01")?.traceID == trace)
        #expect(TraceParent("00-\(trace)-\(span)-ff")?.flags == "03")
        #expect(TraceParent("cc-\(trace)-\(span)-00-what-is-this")?.flags == "00")
        for value in [
            "", "00", "ff-\(trace)-\(span)-01", "00-\(trace)-\(span)-01-x", "00-\(zeros)-\(span)-01",
            "00-\(trace)-\(zeros.prefix(16))-01", "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span)-1",
            "00-+\(trace.dropFirst())-\(span)-01", "00-\(trace)-\(span)-+1", "cc-\(trace)-\(span)-01x",
        ] {
            #expect(TraceParent(value) == nil, "\(value)")
        }
    }
}
