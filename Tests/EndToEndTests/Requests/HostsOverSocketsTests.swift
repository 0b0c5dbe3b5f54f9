import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// The host that a URL identifies, verified by the connections that two servers receive.
@Suite("Hosts of URLs and redirects, over sockets", .permit)
struct HostsOverSocketsTests {
    /// Returns a server that redirects `/start` and responds to every other request with its
    /// target.
    private func server(redirectingTo location: @escaping @Sendable (ReceivedRequest) -> String) throws -> MockServer {
        try MockServer { request in
            guard request.path == "/start" else {
                return MockResponse(statusCode: 200, data: Data(request.target.utf8))
            }
            var response = MockResponse(statusCode: 302)
            response.headers[.location] = location(request)
            return response
        }
    }

    @Test(
        "A redirect target with backslashes stays on the origin, and no other server gets a connection",
        arguments: RealSession.transports)
    func backslashes(kind: RealSession) async throws {
        let other = try MockServer.forTest()
        let host = "127.0.0.1:\(other.port)"
        for (location, target) in [
            ("/\\\(host)/x", "/%5C\(host)/x"), ("\\\\\(host)/x", "/%5C%5C\(host)/x"),
            ("\\/\(host)/x", "/%5C/\(host)/x"),
            ("/\\/\(host)", "/%5C/\(host)"), ("/\\\\\(host)", "/%5C%5C\(host)"), ("\\\(host)\\x", "/%5C\(host)%5Cx"),
            ("./\\\\\(host)", "/%5C%5C\(host)"),
        ] {
            let home = try server { _ in location }
            defer { home.stop() }
            let text = try await kind.service(home).GET("/start").string().value
            #expect(text == target, "\(location)")
            #expect(home.receivedRequests.map(\.target) == ["/start", target])
        }
        #expect(other.connectionCount == 0)
    }

    @Test(
        "A redirect or a path with an ambiguous IPv4 address fails, and no other server gets a connection",
        arguments: RealSession.transports)
    func numericHosts(kind: RealSession) async throws {
        let other = try MockServer.forTest()
        for host in ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.1", "127.0.0.1.", "１２７.1"] {
            let url = "http://\(host):\(other.port)/x"
            let home = try server { _ in url }
            defer { home.stop() }
            let service = try kind.service(home)
            let redirected = await service.GET("/start").delivered()
            #expect((redirected.error as? WebServiceError)?.code == .redirectRefused, "\(host)")
            let direct = await service.GET(url).delivered()
            #expect((direct.error as? WebServiceError)?.code == .invalidURL, "\(host)")
            #expect(home.receivedRequests.count == 1)
        }
        #expect(other.connectionCount == 0)
    }

    @Test(
        "A redirect to the same host in full-width characters is followed as the same origin",
        arguments: RealSession.transports)
    func internationalHosts(kind: RealSession) async throws {
        let home = try server { request in
            let host = request.headers["Host"] ?? ""
            return "http://\(host.replacing("127.0.0.1", with: "１２７。0。0。1"))/end"
        }
        defer { home.stop() }
        let task = try kind.service(home).GET("/start").setHeaderValue("Bearer x", forName: "Authorization").string()
        #expect(try await task.value == "/end")
        #expect(
            home.receivedRequests.map { $0.headers["Host"] } == Array(repeating: "127.0.0.1:\(home.port)", count: 2))
        #expect(home.receivedRequests.map { $0.headers[.authorization] } == ["Bearer x", "Bearer x"])
        #expect(try await task.response.url?.absoluteString == "http://127.0.0.1:\(home.port)/end")
    }

    #if WEBSERVICE_CURL
    @Test(
        "An IPv6 address connects in every spelling, and the Host field contains its canonical form",
        .enabled(if: LoopbackIPv6.isThere),
        arguments: ["[::1]", "[0:0:0:0:0:0:0:1]", "[0::0.0.0.1]"])
    func addresses(host: String) async throws {
        let listener = try #require(LoopbackIPv6())
        let service = WebService("http://\(host):\(listener.port)", session: try CurlSession())
        async let head = listener.respondOnce()
        #expect(try await service.GET("/x").string().value == "six")
        #expect(try await head.contains("\r\nHost: [::1]:\(listener.port)\r\n"))
    }
    #endif
}

/// A socket on the IPv6 loopback address that responds to one request.
private final class LoopbackIPv6: Sendable {
    static let isThere = LoopbackIPv6() != nil

    let port: Int
    private let descriptor: Int32

    init?() {
        #if canImport(Glibc)
        descriptor = socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
        #else
        descriptor = socket(AF_INET6, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_addr = in6addr_loopback
        var limit = timeval(tv_sec: 30, tv_usec: 0)  // bounds `accept` and `recv`
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let descriptor = descriptor
        let failed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size)) != 0
                    || bind(descriptor, address, length) != 0 || listen(descriptor, 4) != 0
                    || getsockname(descriptor, address, &length) != 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin6_port))
        if failed {
            close(descriptor)
            return nil
        }
    }

    deinit { close(descriptor) }

    /// Accepts one connection, responds to the first bytes received, and returns them.
    func respondOnce() async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                let connection = accept(self.descriptor, nil, nil)
                var bytes = [UInt8](repeating: 0, count: 4096)
                let count = recv(connection, &bytes, bytes.count, 0)
                guard connection >= 0, count > 0 else {
                    return continuation.resume(throwing: SilentListener.Failure(errno: errno))
                }
                let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nsix".utf8)
                _ = send(connection, response, response.count, 0)
                close(connection)
                continuation.resume(returning: String(decoding: bytes.prefix(count), as: UTF8.self))
            }
        }
    }
}
