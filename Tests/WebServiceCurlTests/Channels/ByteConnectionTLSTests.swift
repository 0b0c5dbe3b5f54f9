import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// Over real TLS. `./scripts/test` installs nginx and openssl if they are missing.
@Suite(
    "Byte connections: TLS", .serialized, .enabled(if: SecureServer.isAvailable, "nginx and openssl are needed"),
    .permit
)
struct ByteConnectionTLSTests {
    private let server: SecureServer

    init() throws {
        server = try SecureServer()
    }

    private func session(_ change: (inout CurlSession.Configuration) -> Void = { _ in }) throws -> CurlSession {
        try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
            change(&$0)
        }
    }

    /// Connects as soon as the server is up.
    private func connect(_ session: CurlSession, _ port: Int, host: String = "localhost") async throws
        -> any ByteConnection
    {
        func attempt() async -> Result<any ByteConnection, any Error> {
            await outcome { try await session.connect(port: port, host: host, scheme: "https") }
        }
        var result = await attempt()
        await eventually("the server is up") {
            if result.urlErrorCode == .cannotConnectToHost { result = await attempt() }
            return result.urlErrorCode != .cannotConnectToHost
        }
        return try result.get()
    }

    /// Sends a request of HTTP/1.1, and returns the response.
    private func response(_ connection: any ByteConnection) async throws -> String {
        try await connection.send(Data("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
        return String(decoding: try await connection.receiveAll(), as: UTF8.self)
    }

    @Test("The server selects HTTP/1.1, and the metrics include the handshake")
    func http1() async throws {
        let connection = try await connect(try session(), server.port)
        let response = try await response(connection)
        #expect(response.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(response.hasSuffix("HTTP/1.1 TLSv1.3 "))
        #expect(try #require(connection.metrics.secureConnect) > .zero)
        if LinkedLibrary.exportsOpenSSL {
            #expect(connection.metrics.tlsVersion == "TLSv1.3")
            #expect(connection.metrics.tlsCipher?.isEmpty == false)
        }
    }

    @Test("An untrusted certificate, another name and a key that is not pinned are refused")
    func verification() async throws {
        _ = try await connect(try session { $0.tls.pinnedPublicKeys = [server.pin] }, server.port)
        let distrusting = try session { $0.tls.trustedCertificatesFile = server.path("client.pem") }
        let untrusted = await outcome { try await connect(distrusting, server.port) }
        #expect(untrusted.urlErrorCode == .serverCertificateUntrusted)
        let misnamed = await outcome { try await connect(try session(), server.port, host: "127.0.0.1") }
        #expect(misnamed.urlErrorCode == .serverCertificateUntrusted)
        let other = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        let unpinned = await outcome {
            try await connect(try session { $0.tls.pinnedPublicKeys = [other] }, server.port)
        }
        let mismatch = try #require((unpinned.error as? URLError)?.pinnedKeyMismatch)
        #expect(mismatch.expected == [other])
        #expect(mismatch.presented == server.pin)
    }

    @Test("A client certificate is presented to its host")
    func clientCertificate() async throws {
        let session = try session {
            var own = $0.tls
            own.clientCertificate = .init(
                certificateFile: server.path("client.pem"), keyFile: server.path("client.key"))
            $0.hostTLS = ["localhost": own]
        }
        let response = try await response(try await connect(session, server.askingPort))
        #expect(response.hasSuffix("CN=client"))
    }

    @Test(
        "An end without close_notify is a loss",
        .enabled(if: LinkedLibrary.exportsOpenSSL, "it is detected with OpenSSL"))
    func truncation() async throws {
        _ = try await connect(try session(), server.port)
        let relay = try TLSRelay(to: server.port, dropsAlerts: true)
        let cut = try await connect(try session(), relay.port)
        #expect(await outcome { try await response(cut) }.urlErrorCode == .networkConnectionLost)
        let complete = try TLSRelay(to: server.port, dropsAlerts: false)
        let whole = try await connect(try session(), complete.port)
        #expect(try await response(whole).hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test("Bytes arrive unchanged in both directions, through a proxy as well")
    func echo() async throws {
        let bytes = ByteConnectionTests.bytes(3 << 20)
        let backend = try MockServer.forTest { MockResponse($0.body) }
        let server = try SecureServer(backend: backend.baseURLString)
        let proxy = try TunnelProxy()
        for address in [nil, "http://127.0.0.1:\(proxy.port)"] {
            let session = try CurlSession {
                $0.proxy = address.map { .url($0) } ?? .none
                $0.tls.trustedCertificatesFile = server.path("ca.pem")
            }
            let connection = try await connect(session, server.port)
            let fields = "Host: localhost\r\nConnection: close\r\nContent-Length: \(bytes.count)\r\n\r\n"
            async let received = connection.receiveAll()
            try await connection.send(Data(("POST / HTTP/1.1\r\n" + fields).utf8))
            try await connection.send(bytes)
            #expect(try await received.suffix(bytes.count) == bytes)
        }
        #expect(proxy.heads.count == 1)
    }

    // MARK: Handshakes on an open connection

    private func openSSL(_ options: [String]) async throws -> (OpenSSLServer, any ByteConnection) {
        let peer = try OpenSSLServer(server.folder, options)
        return (peer, try await connect(try session(), peer.port))
    }

    @Test("Keys are updated on request, and bytes in both directions continue")
    func keyUpdate() async throws {
        let (peer, connection) = try await openSSL(["-tls1_3"])
        try await connection.send(Data("one\n".utf8))
        await eventually("the server receives") { peer.received.contains("one\n") }
        for command in ["K", "k", "K"] {
            try peer.write(command)
            await eventually("the server updates the keys") { peer.hasReadInput }
            try peer.write("line \(command)")
            #expect(String(decoding: try await connection.receive(count: 7), as: UTF8.self) == "line \(command)\n")
            try await connection.send(Data("after \(command)\n".utf8))
            await eventually("the server receives") { peer.received.contains("after \(command)\n") }
        }
    }

    @Test("A key update arrives while a peer that does not receive blocks the bytes that are sent")
    func keyUpdateWhileBlocked() async throws {
        let (peer, connection) = try await openSSL(["-tls1_3"])
        try await connection.send(Data("start\n".utf8))
        await eventually("the server receives") { peer.received.contains("start\n") }
        peer.send(SIGSTOP)
        let line = Data((String(repeating: "x", count: 127) + "\n").utf8)
        let bytes = Data((0..<65_536).map { _ in line }.joined())
        async let sent = outcome {
            try await connection.send(bytes)
            try await connection.send(Data("end\n".utf8))
        }
        await eventually("the bytes are blocked") { connection.metrics.bytesSent == 6 }
        // Once it continues, the server reads the command before the bytes.
        try peer.write("K")
        async let received = outcome { try await connection.receive(count: 6) }
        peer.send(SIGCONT)
        await eventually("the server updates the keys") { peer.hasReadInput }
        try peer.write("first")
        #expect(try await received.get() == Data("first\n".utf8))
        #expect(await sent.error == nil)
        await eventually("the server receives the rest") { peer.received.hasSuffix("end\n") }
        #expect(peer.received.utf8.count { $0 == UInt8(ascii: "x") } >= 65_536 * 127)
    }

    @Test("A renegotiation of TLS 1.2 continues or ends the connection, and does not hang")
    func renegotiation() async throws {
        let (peer, connection) = try await openSSL(["-tls1_2"])
        try await connection.send(Data("one\n".utf8))
        await eventually("the server receives") { peer.received.contains("one\n") }
        async let line = outcome { try await connection.receive(count: 5) }
        try peer.write("r")
        await eventually("the server renegotiates") { peer.hasReadInput }
        try peer.write("line")
        let result = await line
        if case .success(let bytes) = result {
            #expect(String(decoding: bytes, as: UTF8.self) == "line\n")
            try await connection.send(Data("two\n".utf8))
            await eventually("the server receives") { peer.received.contains("two\n") }
        } else {
            #expect(result.urlErrorCode == .networkConnectionLost)
        }
    }
}
