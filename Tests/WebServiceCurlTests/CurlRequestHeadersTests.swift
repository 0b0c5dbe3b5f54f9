import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

/// The header fields of a request as they were sent.
@Suite("Curl session: header fields as sent", .permit)
struct CurlRequestHeadersTests {
    private func session(_ change: (inout CurlSession.Configuration) -> Void = { _ in }) throws -> CurlSession {
        try CurlSession {
            $0.proxy = .none
            $0.recordsRequestHeaders = true
            change(&$0)
        }
    }

    @Test("The metrics contain the fields that the server received")
    func received() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let service = WebService(server, try session())
        for body in ["", "kegs"] {
            let task = service.POST("/orders").setHeaderValue("1", forName: "X-Keg").setBody(Data(body.utf8)).data()
            _ = try await task.value
            let received = try #require(server.receivedRequests.last).headers
            #expect(try await task.response.transport?.requestHeaders == received)
            #expect(received["Content-Length"] == "\(body.utf8.count)")
        }
    }

    @Test("Each attempt has the fields of its own request")
    func attempts() async throws {
        let server = try MockServer.forTest { request in
            request.target == "/a" ? .status(302).headers(["Location": "/b"]) : .text("ale")
        }
        let service = WebService(server, try session())
        let task = service.GET("/a").setHeaderValue("1", forName: "X-Keg").string()
        _ = try await task.value
        let sent = task.timeline.events.filter { $0.kind == .attempt }.map { $0.transport?.requestHeaders }
        #expect(sent == server.receivedRequests.map(\.headers))
        #expect(sent.count == 2)
    }

    @Test("A field of a request replaces that of the session, and a request may have an empty field")
    func replaced() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let service = WebService(server, try session { $0.userAgent = "session/1" })
        _ = try await service.GET("/").data().value
        _ = try await service.GET("/").setHeaderValue("request/1", forName: .userAgent).data().value
        _ = try await service.GET("/").setHeaderValue("", forName: "X-Keg").data().value
        let received = server.receivedRequests.map(\.headers)
        #expect(received.map { $0.values(for: .userAgent) } == [["session/1"], ["request/1"], ["session/1"]])
        #expect(received.map { $0.values(for: "X-Keg") } == [[], [], [""]])
        #expect(Set(received.map { $0["Accept-Encoding"] }).count == 1)
    }

    @Test("Without a user agent, requests have no User-Agent field", arguments: [nil, ""])
    func noUserAgent(value: String?) async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let service = WebService(server, try session { $0.userAgent = value })
        _ = try await service.GET("/").data().value
        _ = try await service.GET("/").setHeaderValue("1", forName: "X-Keg").data().value
        #expect(server.receivedRequests.map { $0.headers[.userAgent] } == [nil, nil])
    }

    @Test("Unless they are recorded, the metrics contain no fields")
    func isOff() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let service = WebService(server, try session { $0.recordsRequestHeaders = false })
        #expect(try await service.GET("/").data().response.transport?.requestHeaders.isEmpty == true)
    }

    @Test("The request for a tunnel is not that of the exchange")
    func tunnel() async throws {
        let proxy = try MockServer.forTest { _ in MockResponse(statusCode: 403) }
        let service = WebService(
            "https://brewhapi.invalid",
            session: try session { $0.proxy = .url("http://user:canary-secret@127.0.0.1:\(proxy.port)") })
        let task = service.GET("/").string()
        #expect(await task.result.urlErrorCode == .cannotConnectToHost)
        let attempt = try #require(task.timeline.events.first { $0.kind == .attempt })
        #expect(attempt.transport?.requestHeaders.isEmpty == true)
        #expect(proxy.receivedRequests.count == 1)
    }

    @Test(
        "The fields of a request over HTTP/2 are recorded",
        .enabled(if: SecureServer.nginx != nil, "nginx is needed"))
    func http2() async throws {
        let server = try PlainServer()
        let service = WebService(
            "http://127.0.0.1:\(server.port)", session: try session { $0.httpVersion = .priorKnowledge })
        let response = try await service.GET("/").setHeaderValue("1", forName: "X-Keg").data().response
        #expect(response.transport?.networkProtocol == "HTTP/2")
        #expect(response.transport?.requestHeaders["X-Keg"] == "1")
        #expect(response.transport?.requestHeaders["Host"] == "127.0.0.1:\(server.port)")
    }

    @Test("An HTTP archive contains the fields as sent, without secrets")
    func archive() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let service = WebService(server, try session())
        let task = service.GET("/").setHeaderValue("Bearer canary", forName: "Authorization")
        _ = try await task.data().value
        let text = String(decoding: task.httpArchive(), as: UTF8.self)
        #expect(text.contains(#""name":"Host","value":"127.0.0.1:\#(server.port)""#))
        #expect(!text.contains("canary"))
    }

    @Test("A head that is sent in parts, and sent again, is read", arguments: [1, 7, 1_000])
    func parts(size: Int) {
        var head = SentHead()
        for text in [
            "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nX-A:\r\nX-A: b:c\r\n\r\n",
        ] {
            let bytes = Array(text.utf8)
            for start in stride(from: 0, to: bytes.count, by: size) {
                bytes[start..<min(start + size, bytes.count)].withUnsafeBytes { head.add($0) }
            }
        }
        #expect(head.headers == ["Host": "h", "X-A": "", "X-A": "b:c"])
    }
}
