import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

/// Faults of connections and responses, byte by byte.
@Suite(.permit) struct ConnectionFaultTests {
    private let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    private let whole = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale"

    private func server(_ wire: MockResponse.Wire = .fixedLength) throws -> MockServer {
        try MockServer { _ in
            var response = MockResponse(statusCode: 200, data: Data("ale".utf8))
            response.wire = wire
            return response
        }
    }

    @Test("Faults apply to successive connections, and later connections have none")
    func successive() throws {
        let server = try server()
        server.onConnect([.disconnect, nil])
        server.onConnect([.reset])
        for expected in ["", whole, "", whole, whole] { #expect(try server.reply(to: get) == expected) }
        #expect(server.connectionCount == 5)
        #expect(server.receivedRequests.count == 3)
    }

    @Test(
        "A connection is closed or reset at its start",
        arguments: [MockServer.ConnectionFault.disconnect, .reset])
    func start(fault: MockServer.ConnectionFault) throws {
        let server = try server()
        server.onConnect([fault])
        let client = try RawClient(server)
        #expect(client.readToEnd().isEmpty)
        #expect(client.wasReset == (fault == .reset))
    }

    @Test("A server that does not read lets the client block, and ends with the server")
    func noRead() throws {
        let server = try server()
        server.onConnect([.noRead])
        let client = try RawClient(server)
        #expect(client.send(get))
        #expect(!client.hasNews(within: 50))
        #expect(server.receivedRequests.isEmpty)
        server.stop()
        #expect(client.readToEnd().isEmpty)
    }

    @Test(
        "A connection ends in the body of a request, after a number of its bytes",
        arguments: [
            (MockServer.ConnectionFault.disconnectInBody(after: 3), "", "abc"),
            (.disconnectInBody(after: 3), "abc", ""),
            (.disconnectInBody(after: 0), "", ""), (.resetInBody(after: 5), "ab", "cdef"),
            (.disconnectInBody(after: 10), "abcdefghij", ""),
        ])
    func body(fault: MockServer.ConnectionFault, first: String, second: String) async throws {
        let server = try server()
        server.onConnect([fault])
        let client = try RawClient(server)
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n" + first)
        if !second.isEmpty {
            #expect(!client.hasNews(within: 50))
            client.send(second)
        }
        #expect(client.readToEnd().isEmpty)
        #expect(server.receivedRequests.isEmpty)
    }

    @Test("A request whose body is shorter than the fault is handled as usual")
    func shortBody() throws {
        let server = try server()
        server.onConnect([.disconnectInBody(after: 4)])
        let reply = try server.reply(to: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
        #expect(reply == whole)
    }

    @Test("Surplus bytes follow the response on a connection that stays open")
    func surplus() throws {
        let server = try server(.surplus(Data("HTTP/1.1 200 OK\r\n".utf8)))
        let client = try RawClient(server)
        for _ in 0..<2 {
            client.send(get)
            let expected = whole + "HTTP/1.1 200 OK\r\n"
            #expect(client.read(count: expected.utf8.count) == expected)
        }
        #expect(server.connectionCount == 1)
    }

    @Test("Surplus bytes follow a body that a closure writes")
    func surplusAfterWriter() throws {
        let server = try MockServer { _ in
            var response = MockResponse(statusCode: 200) { body in try body.write(Data("ale".utf8)) }
            response.wire = .surplus(Data("more".utf8))
            return response
        }
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(try server.reply(to: get) == "\(head)3\r\nale\r\n0\r\n\r\nmore")
    }

    @Test("An invalid chunk follows a valid one, and the connection closes")
    func invalidChunk() async throws {
        let server = try server(.invalidChunk)
        let expected = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\nale\r\n"
        #expect(try server.reply(to: get) == expected)
        let session = MockSession()
        var response = MockResponse.text("ale")
        response.wire = .invalidChunk
        session.on(.any, response)
        let error = await session.response(to: Request(.GET, url: "https://h/")).error as? URLError
        #expect(error?.code == .badServerResponse)
    }

    @Test("After a half-close the server still reads, and ends when the client does")
    func halfClose() async throws {
        let server = try server(.halfClose)
        let client = try RawClient(server)
        client.send(get)
        #expect(client.readToEnd() == whole)
        #expect(client.send("more"))
        #expect(server.openConnectionCount == 1)
        client.finishSending()
        await eventually("the connection has ended") { server.openConnectionCount == 0 }
    }

    @Test("1,000 connections are open at the same time, and each receives its response")
    func manyConnections() throws {
        let server = try MockServer { MockResponse(statusCode: 200, data: Data($0.path.utf8)) }
        let clients = try (0..<1_000).map { _ in try RawClient(server) }
        for round in 0..<2 {
            for (number, client) in clients.enumerated() {
                client.send("GET /\(round)/\(number) HTTP/1.1\r\nHost: a\r\n\r\n")
            }
            for (number, client) in clients.enumerated() {
                #expect(client.readResponse().body == "/\(round)/\(number)")
            }
        }
        #expect(server.connectionCount == 1_000)
        #expect(server.openConnectionCount == 1_000)
        #expect(server.receivedRequests.count == 2_000)
    }

    @Test("Without the command or the library of OpenSSL, a server with TLS is a typed error")
    func missingOpenSSL() throws {
        let command = #expect(throws: WebServiceError.self) {
            try ServerCertificate(commands: ["/nonexistent/openssl"])
        }
        #expect(command?.code == .tlsUnavailable)
        let failing = #expect(throws: WebServiceError.self) { try ServerCertificate(commands: ["/bin/false"]) }
        #expect(failing?.code == .tlsUnavailable)
        let library = #expect(throws: WebServiceError.self) {
            try TLSContext(certificate: "", key: "", library: TLSLibrary("libnonexistent.so"))
        }
        #expect(library?.code == .tlsUnavailable)
        if TLSLibrary.system != nil {
            let invalid = #expect(throws: WebServiceError.self) { try TLSContext(certificate: "/bin/false", key: "") }
            #expect(
                invalid?.message
                    == "OpenSSL rejected the certificate or the key; pass PEM files that belong together")
        }
    }
}
