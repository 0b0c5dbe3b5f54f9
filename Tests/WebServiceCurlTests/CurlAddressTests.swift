import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// Unix domain sockets and configured addresses.
@Suite(
    "Curl session: Unix domain sockets", .permit,
    .enabled(if: SecureServer.nginx != nil, "nginx is needed"))
struct CurlUnixSocketTests {
    private func service(_ path: String, _ change: (inout CurlSession.Configuration) -> Void = { _ in }) throws
        -> WebService
    {
        let service = WebService(baseURLString: "http://brewery.example/v1")
        service.session = try CurlSession {
            $0.unixSocketPath = path
            change(&$0)
        }
        return service
    }

    @Test("Requests are sent to the socket, with the host of the URL and a connection of their own")
    func requests() async throws {
        let server = try PlainServer()
        // The proxy has no effect.
        let service = try service(server.socket) { $0.proxy = .url("http://127.0.0.1:1") }
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<20 { group.addTask { try await service.GET("/a").string().value } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(texts.allSatisfy { $0.hasPrefix("HTTP/1.1 brewery.example ") })
        #expect(Set(texts).count == 20)
        let task = service.GET("/a").string()
        _ = try await task.value
        #expect(try await task.response.transport?.isConnectionReused == false)
        #expect(try await task.response.transport?.networkProtocol == "HTTP/1.1")
    }

    @Test("Bodies and streams pass through the socket unchanged")
    func bodies() async throws {
        let backend = try MockServer.forTest { request in MockResponse(request.body) }
        let server = try PlainServer(backend: backend.baseURLString)
        let service = try service(server.socket)
        for count in [0, 1, 40_000, 2_000_000] {
            let body = Data((0..<count).map { UInt8($0 % 251) })
            let task = service.POST("http://h/backend").setBody(body)
            #expect(try await task.data().value == body)
            var received = Data()
            let stream = try await service.POST("http://h/backend").setBody(body).stream().value
            for try await chunk in stream.body { received.append(chunk) }
            #expect(received == body)
        }
    }

    @Test("A streamed request body ends with an error if the server closes the connection")
    func uploads() async throws {
        let server = try PlainServer()
        let service = try service(server.socket)
        let (pieces, continuation) = AsyncStream.makeStream(of: Data.self)
        continuation.yield(Data("ale".utf8))
        let result = await service.POST("http://h/gone").setBody(.stream(pieces)).string().result
        #expect(result.urlErrorCode == .networkConnectionLost, "\(result)")
        continuation.finish()
    }

    @Test("A path without a server, and a refused connection, are cannotConnectToHost")
    func missing() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString)").path
        #expect(await (try service(path)).GET("/").string().result.urlErrorCode == .cannotConnectToHost)
    }

    @Test("A path that is empty, too long or contains NUL is an error")
    func invalid() {
        for path in ["", "/a\0b", "/" + String(repeating: "a", count: 107)] {
            #expect(Result { try CurlSession { $0.unixSocketPath = path } }.code == .curl)
        }
        #expect(
            Result { try CurlSession { $0.unixSocketPath = "/" + String(repeating: "a", count: 102) } }.error == nil)
    }
}

@Suite("Curl session: configured addresses", .permit)
struct CurlAddressTests {
    @Test("A host with configured addresses is not looked up, also after all connections were closed")
    func addresses() async throws {
        let server = try MockServer.forTest { request in MockResponse(request.headers["Host"] ?? "") }
        let service = WebService(baseURLString: "http://Brewery.EXAMPLE:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.idleConnectionLifetime = .zero
            $0.addresses = [
                "brewery.Example:\(server.port)": ["127.0.0.1"], "brewery.example:1": ["127.0.0.3"],
                "localhost:\(server.port)": ["127.0.0.1"],
            ]
        }
        for _ in 0..<5 {
            #expect(try await service.GET("/").string().value.lowercased() == "brewery.example:\(server.port)")
        }
        #expect(
            try await service.GET("http://localhost:\(server.port)/").string().value == "localhost:\(server.port)")
        #expect(try await service.GET(server.baseURLString + "/").string().value == "127.0.0.1:\(server.port)")
    }

    @Test("The next address is used if nothing listens on the first one")
    func severalAddresses() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let service = WebService(baseURLString: "http://brewery.example:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.addresses = ["brewery.example:\(server.port)": ["127.0.0.2", "::1", "127.0.0.1"]]
        }
        #expect(try await service.GET("/").string().value == "ale")
    }

    @Test(
        "A key that is not a host name and a port, and an address that is not an IP address, are errors",
        arguments: [
            ("", ["127.0.0.1"]), ("h", ["127.0.0.1"]), (":80", ["127.0.0.1"]), ("h:", ["127.0.0.1"]),
            ("h:0", ["127.0.0.1"]), ("h:65536", ["127.0.0.1"]), ("h:080", ["127.0.0.1"]), ("h:80/x", ["127.0.0.1"]),
            ("u@h:80", ["127.0.0.1"]), ("http://h:80", ["127.0.0.1"]), ("h :80", ["127.0.0.1"]),
            ("h:80\n", ["127.0.0.1"]), ("*:80", ["127.0.0.1"]), ("[::1]:80", ["127.0.0.1"]), ("h:80", []),
            ("h:80", ["localhost"]), ("h:80", [""]), ("h:80", ["127.1"]), ("h:80", ["127.0.0.1", "x"]),
            ("h:80", ["[::1]"]), ("h:80", ["127.0.0.1,127.0.0.2"]), ("h:80", ["127.0.0.1\0"]),
        ] as [(String, [String])])
    func invalid(key: String, addresses: [String]) {
        #expect(Result { try CurlSession { $0.addresses = [key: addresses] } }.code == .curl)
    }
}
