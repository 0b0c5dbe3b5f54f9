// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

@Suite("Byte connections: proxies and addresses", .permit)
struct ByteConnectionRouteTests {
    @Test("An http proxy opens a tunnel, with credentials")
    func proxy() async throws {
        let peer = try BytePeer.echo()
        let proxy = try TunnelProxy()
        let session = try CurlSession {
            $0.proxy = .authenticated(url: "http://127.0.0.1:\(proxy.port)", user: "u", password: "p")
        }
        let connection = try await session.connect(port: peer.port, host: "brewery.example")
        let bytes = ByteConnectionTests.bytes(200_000)
        #expect(try await connection.exchange(bytes) == bytes)
        let head = try #require(proxy.heads.first)
        #expect(head.hasPrefix("CONNECT brewery.example:\(peer.port) HTTP/1.1\r\n"))
        #expect(head.contains("Proxy-Authorization: Basic dTpw\r\n"))
        #expect(proxy.heads.count == 1)
        connection.close()
        await eventually("the tunnel is closed") { peer.openCount == 0 }
    }

    @Test("A proxy that is selected for each request opens the tunnel")
    func perRequest() async throws {
        let peer = try BytePeer.echo()
        let proxy = try TunnelProxy()
        let address = "http://127.0.0.1:\(proxy.port)"
        let session = try CurlSession { $0.proxy = .perRequest { _ in .url(address) } }
        let connection = try await session.connect(port: peer.port, host: "brewery.example")
        #expect(try await connection.exchange(Data("a".utf8)) == Data("a".utf8))
        #expect(proxy.heads.count == 1)
    }

    @Test("A refused tunnel is an error")
    func refusedTunnel() async throws {
        let proxy = try TunnelProxy { _ in "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n" }
        let session = try CurlSession { $0.proxy = .url("http://127.0.0.1:\(proxy.port)") }
        let result = await outcome { try await session.connect(port: 9, host: "brewery.example") }
        #expect(result.urlErrorCode == .cannotConnectToHost)
        #expect(result.error?.localizedDescription.contains("403") == true)
        let asking = try TunnelProxy { _ in
            "HTTP/1.1 407 Authenticate\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"
        }
        let other = try CurlSession { $0.proxy = .url("http://127.0.0.1:\(asking.port)") }
        let unknown = await outcome { try await other.connect(port: 9, host: "brewery.example") }
        #expect(unknown.urlErrorCode == .userAuthenticationRequired)
    }

    @Test("Configured addresses and those of a resolver replace the lookup")
    func addresses() async throws {
        let peer = try BytePeer.echo()
        let port = peer.port
        let configured = try CurlSession {
            $0.proxy = .none
            $0.addresses = ["brewery.example:\(port)": ["127.0.0.1"]]
        }
        let connection = try await configured.connect(port: port, host: "brewery.example")
        #expect(try await connection.exchange(Data("a".utf8)) == Data("a".utf8))
        let asked = Box<[String]>([])
        let resolved = try CurlSession {
            $0.proxy = .none
            $0.resolver = { host, port in
                asked.change { $0.append("\(host):\(port)") }
                return ["127.0.0.1"]
            }
        }
        let other = try await resolved.connect(port: port, host: "brewery.example")
        #expect(try await other.exchange(Data("a".utf8)) == Data("a".utf8))
        #expect(asked.value == ["brewery.example:\(port)"])
        let failing = try CurlSession {
            $0.proxy = .none
            $0.resolver = { _, _ in throw URLError(.dnsLookupFailed) }
        }
        let result = await outcome { try await failing.connect(port: port, host: "brewery.example") }
        #expect(result.urlErrorCode == .dnsLookupFailed)
    }

    @Test(
        "Names are looked up over HTTPS",
        .enabled(if: SecureServer.isAvailable, "nginx or openssl is not installed"))
    func dnsOverHTTPS() async throws {
        let dns = try MockServer.namesOnLoopback()
        let front = try SecureServer(backend: dns.baseURLString)
        let session = try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = front.path("ca.pem")
            $0.dnsURL = "https://localhost:\(front.port)/dns-query"
        }
        let peer = try BytePeer.echo()
        for _ in 0..<3 {
            let connection = try await session.connect(port: peer.port, host: "brewery.example")
            #expect(try await connection.exchange(Data("a".utf8)) == Data("a".utf8))
        }
        #expect(dns.receivedRequests.contains { $0.path == "/dns-query" })
    }

    @Test("An unknown host and a closed port are errors")
    func unreachable() async throws {
        let session = try CurlSession { $0.proxy = .none }
        let unused = try LoopbackListener().port
        #expect(await outcome { try await session.connect(port: unused) }.urlErrorCode == .cannotConnectToHost)
        let unknown = await outcome { try await session.connect(port: 9, host: "unknown.invalid") }
        #expect(unknown.urlErrorCode == .cannotFindHost)
    }

    @Test("Connections to a Unix domain socket", .enabled(if: SecureServer.nginx != nil, "nginx is needed"))
    func unixSocket() async throws {
        let server = try PlainServer()
        let session = try CurlSession { $0.unixSocketPath = server.socket }
        var numbers: Set<Substring> = []
        for _ in 0..<10 {
            let connection = try await session.connect(port: 80, host: "brewery.example")
            for _ in 0..<2 {
                try await connection.send(Data("GET / HTTP/1.1\r\nHost: brewery.example\r\n\r\n".utf8))
                let text = String(decoding: try await connection.receive(), as: UTF8.self)
                #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
                numbers.insert(text.split(separator: " ").last ?? "")
            }
            #expect(connection.metrics.remoteAddress == nil)
        }
        #expect(numbers.count == 10)
    }
}
