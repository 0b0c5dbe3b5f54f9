import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceDiagnostics
import WebServiceTransfers

@testable import WebServiceMocking
@testable import WebServiceServer

@Suite("Curl session", .permit)
struct CurlSessionTests {
    @Test("Typed tasks and handlers work over the session, and the connection is reused")
    func answer() async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, json: ["name": "ale"]) }
        let service = WebService(server, try CurlSession())
        for _ in 0..<10 { #expect(try await service.GET("/").json().value["name"]?.string == "ale") }
        let task = service.GET("/")
        let fromHandler = await withCheckedContinuation { continuation in
            task.responseJSON { json, response in
                continuation.resume(returning: [(json as? [String: String])?["name"], response?.mimeType])
            }.resume()
        }
        #expect(fromHandler == ["ale", "application/json"])
        #expect(server.connectionCount == 1)
    }

    @Test("Header fields retain their order and are not combined, unlike in Foundation")
    func headers() async throws {
        let head =
            "HTTP/1.1 200 Fine\r\nX-B: 1\r\nSet-Cookie: a=1, b\r\nX-A: \u{e9}\r\nset-cookie: c=2\r\nContent-Length: 0\r\n\r\n"
        let server = try MockServer.forTest { _ in MockResponse("", wire: .raw(head.data(using: .isoLatin1) ?? Data()))
        }
        let response = try await WebService(server, try CurlSession()).GET("/").empty().response
        #expect(response.headers.map(\.name) == ["X-B", "Set-Cookie", "X-A", "set-cookie", "Content-Length"])
        #expect(response.headers.values(for: .setCookie) == ["a=1, b", "c=2"])
        #expect(response.header("x-a") == "é")
        #expect((response.urlResponse as? HTTPURLResponse)?.value(forHTTPHeaderField: "Set-Cookie") == "a=1, b, c=2")
    }

    @Test("The trailer fields of a stream are available after the end of its body")
    func trailers() async throws {
        var response = MockResponse(statusCode: 200) { try $0.write(Data("ale".utf8)) }
        response.trailers["X-Checksum"] = "1234"
        let server = try MockServer.forTest { [response] _ in response }
        let body = try await WebService(server, try CurlSession()).GET("/").stream().value.body
        #expect(body.trailers == nil)
        #expect(try await body.collect(upTo: 3) == Data("ale".utf8))
        #expect(body.trailers == ["X-Checksum": "1234"])
    }

    @Test("A stream whose head was received does not count toward the connection limits")
    func streamBesideLimit() async throws {
        let server = try MockServer.forTest { request in
            guard request.target == "/stream" else { return MockResponse("next") }
            return MockResponse(statusCode: 200) { body in
                try body.write(Data("ale".utf8))
                body.pause(for: .seconds(60))
            }
        }
        let session = try CurlSession {
            $0.maximumConnectionsPerHost = 1
            $0.maximumConnections = 1
        }
        let service = WebService(server, session)
        let log = try await service.GET("/stream").stream().value
        #expect(try await service.GET("/next").setDeadline(.seconds(30)).string().value == "next")
        log.body.cancel()
    }

    @Test("The metrics report phases, bytes and connection reuse")
    func metrics() async throws {
        let server = try MockServer.forTest { _ in MockResponse(Data(count: 1000)) }
        let service = WebService(server, try CurlSession())
        let first = try #require(try await service.GET("/").data().response.transport)
        #expect(first.connect != nil)
        #expect(first.secureConnect == nil)
        #expect(!first.isConnectionReused)
        #expect(first.networkProtocol == "HTTP/1.1")
        #expect(first.remoteAddress == "127.0.0.1")
        #expect(first.bytesReceived > 1000)
        #expect(first.bytesSent > 30)
        #expect(try #require(first.firstByte) <= first.total)
        #expect(first.total < .seconds(10))
        let task = service.POST("/").setBody(Data(count: 5000))
        _ = try await task.data().value
        let second = try #require(task.metrics.transport)
        #expect(second.isConnectionReused)
        #expect(second.connect == nil)
        #expect(second.nameLookup == nil)
        #expect(second.bytesSent > 5000)
        let archive = try JSONSerialization.jsonObject(with: task.httpArchive()) as? [String: Any]
        let entry = ((archive?["log"] as? [String: Any])?["entries"] as? [[String: Any]])?.first
        #expect(((entry?["timings"] as? [String: Any])?["wait"] as? Double ?? 0) > 0)
        #expect(entry?["serverIPAddress"] as? String == "127.0.0.1")
    }

    @Test("Progress of uploads and downloads only grows, ends at the total, and precedes the handlers")
    func progress() async throws {
        let server = try MockServer.forTest { MockResponse($0.body) }
        let service = WebService(server, try CurlSession())
        let body = Data(repeating: 7, count: 3_000_000)
        let news = Box<[TransferProgress]>([])
        let task = service.POST("/").setBody(body).onProgress { progress in news.change { $0.append(progress) } }
        let told = Box(0)
        let received = try await task.data().onSuccess { _ in told.change { $0 = news.value.count } }.value
        #expect(received == body)
        let all = news.value
        #expect(told.value == all.count)
        #expect(zip(all, all.dropFirst()).allSatisfy { $0.bytesSent <= $1.bytesSent })
        #expect(zip(all, all.dropFirst()).allSatisfy { $0.bytesReceived <= $1.bytesReceived })
        var last = try #require(all.last)
        last.bytesPerSecond = nil  // known if the transfer takes long
        #expect(
            last
                == TransferProgress(
                    bytesSent: 3_000_000, bytesToSend: 3_000_000, bytesReceived: 3_000_000, bytesToReceive: 3_000_000))
        #expect(last.fractionSent == 1)
        #expect(last.fractionReceived == 1)
    }

    @Test("A body stream is refused, and a plain URLRequest is sent")
    func plainRequests() async throws {
        let server = try MockServer.forTest {
            MockResponse("\($0.method) \($0.headers["X-Brew"] ?? "") \($0.body.count)")
        }
        let service = WebService(server, try CurlSession())
        var request = URLRequest(url: try #require(URL(string: server.baseURLString + "/x")))
        request.httpMethod = "PATCH"
        request.setValue("ale", forHTTPHeaderField: "X-Brew")
        request.httpBody = Data("12345".utf8)
        #expect(try await service.sessionTask(request: Request(request)).string().value == "PATCH ale 5")
        request.httpBodyStream = InputStream(data: Data("12345".utf8))
        #expect(await service.sessionTask(request: Request(request)).string().result.code == .encoding)
        #expect(server.receivedRequests.count == 1)
    }

    @Test("Credentials are not sent to another origin after a redirect")
    func redirects() async throws {
        let other = try MockServer { MockResponse($0.headers[.authorization] ?? "nobody") }
        let server = try MockServer { _ in
            var response = MockResponse(statusCode: 302)
            response.headers["Location"] = other.baseURLString + "/there"
            return response
        }
        defer { server.stop(); other.stop() }
        let task = WebService(server, try CurlSession()).GET("/").setHeaderValue(
            "Bearer secret", forName: "Authorization")
        let response = try await task.string().response
        #expect(String(decoding: response.data, as: UTF8.self) == "nobody")
        #expect(response.redirects.count == 1)
        #expect(response.attempts == 2)
    }

    @Test("A session with several loops delivers each response to its request")
    func loops() async throws {
        let server = try MockServer.forTest { MockResponse($0.query ?? "") }
        let service = WebService(server, try CurlSession { $0.loops = 3 })
        let wrong = await withTaskGroup(of: Int.self) { group in
            for index in 0..<300 {
                group.addTask {
                    await (try? service.GET("/").setQueryParameters(["n": index]).string().value) == "n=\(index)"
                        ? 0 : 1
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }

    @Test("Requests use the configured proxy, or none")
    func proxy() async throws {
        let proxy = try MockServer { MockResponse("by way of \($0.target)") }
        let server = try MockServer { _ in MockResponse("directly") }
        defer { server.stop(); proxy.stop() }
        let proxied = WebService(server, try CurlSession { $0.proxy = .url(proxy.baseURLString) })
        #expect(try await proxied.GET("/x").string().value == "by way of \(server.baseURLString)/x")
        let direct = WebService(server, try CurlSession { $0.proxy = .none })
        #expect(try await direct.GET("/x").string().value == "directly")
    }

    @Test("Idle connections are closed after their lifetime, and the session stays usable")
    func idleConnections() async throws {
        let server = try MockServer { _ in MockResponse("x") }
        defer { server.stop() }
        let clock = TestClock()
        let service = try WebService(server, clock)
        _ = try await service.GET("/").data().value
        await clock.advance(by: .milliseconds(59_999))
        #expect(server.openConnectionCount == 1)
        await clock.advance(by: .milliseconds(1))
        await eventually("the connection is closed") { server.openConnectionCount == 0 }
        _ = try await service.GET("/").data().value
        #expect(server.connectionCount == 2)
    }

    @Test("A server that closes the connection after every response causes no error")
    func closingServer() async throws {
        let server = try MockServer.forTest { _ in
            MockResponse("", wire: .raw(Data("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale".utf8)))
        }
        let service = WebService(server, try CurlSession())
        for _ in 0..<amount(100, thorough: 400) { #expect(try await service.GET("/").string().value == "ale") }
    }
}
