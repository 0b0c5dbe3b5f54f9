import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl

@testable import WebServiceMocking
@testable import WebServiceServer

@Suite("Curl session: connections", .serialized, .permit)
struct CurlConnectionTests {
    /// The position of a line that starts with white space, the response, and its body. The body is
    /// `nil` if the response is an error.
    private static let folds: [(place: String, response: String, body: String?)] = [
        ("after the status line", "HTTP/1.1 200 OK\r\n X-Fold: a\r\nContent-Length: 3\r\n\r\nale", nil),
        ("after the status line, with a tab", "HTTP/1.1 200 OK\r\n\tX-Fold: a\r\nContent-Length: 3\r\n\r\nale", nil),
        ("after the status line, and nothing else", "HTTP/1.1 200 OK\r\n :\r\n\r\nale", nil),
        (
            "after the status line, of 20,000 bytes",
            "HTTP/1.1 200 OK\r\n X: \(String(repeating: "a ", count: 10_000))\r\n\r\nale", nil
        ),
        ("after a field", "HTTP/1.1 200 OK\r\nX-A: a\r\n b: c\r\n\td\r\nContent-Length: 3\r\n\r\nale", "ale"),
        (
            "after a field of 20,000 bytes",
            "HTTP/1.1 200 OK\r\nX: \(String(repeating: "a ", count: 10_000))\r\n b\r\nContent-Length: 3\r\n\r\nale",
            "ale"
        ),
        (
            "first in an interim response",
            "HTTP/1.1 103 Early\r\n X: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale", nil
        ),
        (
            "later in an interim response",
            "HTTP/1.1 103 Early\r\nX: a\r\n b: c\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale", "ale"
        ),
        (
            "after an interim response",
            "HTTP/1.1 103 Early\r\nX: a\r\n\r\nHTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 3\r\n\r\nale", nil
        ),
        (
            "after an empty interim response",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 3\r\n\r\nale", nil
        ),
        ("first in a redirect", "HTTP/1.1 302 Found\r\n X: a\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n", nil),
        (
            "later in a redirect",
            "HTTP/1.1 302 Found\r\nX: a\r\n b: c\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n", "next"
        ),
        (
            "first after a redirect",
            "HTTP/1.1 302 Found\r\nLocation: /folded\r\nContent-Length: 0\r\n\r\n", nil
        ),
        (
            "later in a trailer",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n0\r\nX: a\r\n b: c\r\n\r\n", "ale"
        ),
    ]

    @Test(
        "A line with leading white space is badServerResponse in place of the first field, and allowed elsewhere",
        arguments: [true, false])
    func folds(isReused: Bool) async throws {
        let server = try MockServer.forTest { request in
            var response = MockResponse("next")
            if request.path == "/folded" { response.wire = .raw(Data(Self.folds[0].response.utf8)) }
            if let number = Int(request.path.dropFirst()) {
                response.wire = .raw(Data(Self.folds[number].response.utf8))
            }
            return response
        }
        let session = try CurlSession()
        for _ in 0..<(isReused ? 4 : 1) {
            for (number, fold) in Self.folds.enumerated() {
                // A session that has sent nothing has only new handles.
                let service = WebService(server, isReused ? session : try CurlSession())
                let result = await service.GET("/\(number)").string().result
                if let body = fold.body {
                    #expect((try? result.get()) == body, "\(fold.place): \(result)")
                } else {
                    #expect(result.urlErrorCode == .badServerResponse, "\(fold.place): \(result)")
                }
                if isReused { #expect(try await service.GET("/x").string().value == "next") }
            }
        }
    }

    @Test(
        "A trailer that starts with a folded line does not cause a read of freed memory",
        arguments: [" X: a", "\tX: a", " "])
    func foldedTrailer(line: String) async throws {
        let server = try MockServer.forTest { _ in
            MockResponse(
                "",
                wire: .raw(
                    Data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n0\r\n\(line)\r\n\r\n".utf8)))
        }
        let service = WebService(server, try CurlSession())
        for _ in 0..<10 {
            let result = await service.GET("/").string().result
            #expect((try? result.get()) == "ale" || result.urlErrorCode != nil)
        }
    }

    @Test(
        "Unsolicited bytes over TLS are never the response to a later request, and connections are reused",
        .enabled(if: SecureServer.isAvailable && StrayServer.python != nil, "nginx, openssl and Python are needed"),
        arguments: ["/late", "/record"])
    func strayBytes(path: String) async throws {
        let certificates = try SecureServer()
        let server = try StrayServer(certificates)
        let service = WebService(baseURLString: "https://localhost:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = certificates.path("ca.pem")
        }
        var connections = 1
        for _ in 1...amount(2, thorough: 5) {
            #expect(try await service.GET(path).string().value == "ale")
            if path == "/late" { server.sendLate() }
            // TLS 1.3 session tickets do not end a connection.
            for request in 0..<20 {
                if request == 0 || !LinkedLibrary.exportsOpenSSL { connections += 1 }
                #expect(try await service.GET("/x").string().value == "\(connections)")
            }
            if !LinkedLibrary.exportsOpenSSL { connections += 1 }
        }
    }

    @Test("A POST on an idle connection that the server has closed is sent on another connection")
    func closedWhileIdle() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse("ale")
            response.wire = .cut(after: .max)
            return response
        }
        let service = WebService(server, try CurlSession())
        for number in 1...20 {
            #expect(try await service.POST("/").setBody(Data("\(number)".utf8)).string().value == "ale")
            await eventually("the server has closed the connection") { server.openConnectionCount == 0 }
        }
    }

    @Test(
        "Only an idempotent request is sent again if the server closes a reused connection without a response",
        arguments: [Request.Method.POST, .PATCH, .GET, .PUT, .DELETE])
    func closedInsteadOfResponse(method: Request.Method) async throws {
        let arrivals = Box(0)
        let server = try MockServer.forTest { request in
            guard request.path == "/closed" else { return MockResponse("first") }
            let count = arrivals.withValue { count in
                count += 1
                return count
            }
            return MockResponse("ale", wire: count == 1 ? .disconnect : .fixedLength)
        }
        let service = WebService(server, try CurlSession())
        #expect(try await service.GET("/").string().value == "first")
        let task = service.sessionTask(request: service.request(method, path: "/closed"))
        let result = await task.string().result
        if [.POST, .PATCH].contains(method) {
            #expect(result.urlErrorCode == .networkConnectionLost)
            #expect((result.error as? URLError)?.requestWasNotSent == false)
            #expect(arrivals.value == 1)
        } else {
            #expect(try result.get() == "ale")
            #expect(arrivals.value == 2)
        }
    }

    @Test(
        "A header field without a value is sent, and a large body is sent without waiting for a 100 response",
        arguments: [Request.Method.POST, .PUT])
    func fields(method: Request.Method) async throws {
        let server = try MockServer.forTest { MockResponse("\($0.body.count)") }
        let service = WebService(server, try CurlSession())
        for count in [10, 2 << 20] {
            let task = service.sessionTask(request: service.request(method, path: "/"))
            let text = try await task.setBody(Data(count: count)).setHeaderValue("", forName: "X-Empty").string().value
            #expect(text == "\(count)")
            let received = try #require(server.receivedRequests.last)
            #expect(received.headers.values(for: "X-Empty") == [""])
            #expect(received.headers["Expect"] == nil)
        }
    }

    @Test("A connection is not reused after an idle timeout")
    func silentConnection() async throws {
        let server = try MockServer { MockResponse("ale", wire: $0.path == "/silent" ? .noResponse : .fixedLength) }
        defer { server.stop() }
        let clock = TestClock()
        let service = try WebService(server, clock)
        #expect(try await service.GET("/").string().value == "ale")
        let silent = service.GET("/silent").setTimeout(.seconds(10)).string().resume()
        await eventually("the request arrives") { server.receivedRequests.count == 2 }
        await clock.advance(by: .seconds(10))
        #expect(await silent.result.urlErrorCode == .timedOut)
        let next = try await service.GET("/").string().response
        #expect(next.transport?.isConnectionReused == false)
        #expect(server.connectionCount == 2)
    }

    @Test(
        "An HTTP/2 connection is not reused after an idle timeout, unless other requests transfer bytes on it",
        .enabled(if: SecureServer.isAvailable, "nginx and openssl are needed"))
    func silentHTTP2() async throws {
        let backend = try MockServer.forTest { request in
            var response = MockResponse("ale", wire: request.path == "/silent" ? .noResponse : .fixedLength)
            if request.path == "/drip" {
                response = MockResponse(Data(count: 6_000), wire: .drip(size: 100, pause: .milliseconds(40)))
            }
            response.headers["X-Accel-Buffering"] = "no"  // otherwise nginx buffers small responses
            return response
        }
        let server = try SecureServer(backend: backend.baseURLString)
        let service = WebService(baseURLString: "https://localhost:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
        }
        #expect(try await service.GET("/").string().value == "ale")
        let isReused = LinkedLibrary.exportsOpenSSL
        #expect(try await service.GET("/").string().response.transport?.isConnectionReused == isReused)
        #expect(await service.GET("/silent").setTimeout(.seconds(1)).string().result.urlErrorCode == .timedOut)
        let next = try await service.GET("/").string().response
        #expect(next.transport?.isConnectionReused == false)
        let drip = service.GET("/drip").data().resume()
        await eventually("the slow one arrives") { backend.receivedRequests.last?.path == "/drip" }
        #expect(await service.GET("/silent").setTimeout(.seconds(1)).string().result.urlErrorCode == .timedOut)
        let slow = try await drip.response
        #expect(slow.data.count == 6_000)
        #expect(slow.transport?.isConnectionReused == isReused)
    }

    @Test("Several Cookie fields are combined into one, with GET and with a body")
    func cookies() async throws {
        let server = try MockServer.forTest { MockResponse($0.headers.values(for: "Cookie").joined(separator: "|")) }
        let session = try CurlSession()
        for method in [Request.Method.GET, .POST] {
            var request = Request(method, url: server.baseURLString)
            request.headers.add("a=1", for: "Cookie")
            request.headers.add("b=2", for: "cookie")
            let text = await withCheckedContinuation { continuation in
                session.dataTask(request: request) { data, _, _ in
                    continuation.resume(returning: String(decoding: data ?? Data(), as: UTF8.self))
                }.resume()
            }
            #expect(text == "a=1; b=2")
        }
    }
}
