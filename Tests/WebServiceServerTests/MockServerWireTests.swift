import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

@Suite(.permit) struct MockServerWireTests {
    private func reply(_ response: MockResponse, to request: String = "GET / HTTP/1.1\r\nHost: a\r\n\r\n") throws
        -> String
    {
        try MockServer { _ in response }.reply(to: request)
    }

    private func response(
        _ status: Int, _ text: String = "", _ wire: MockResponse.Wire = .fixedLength, headers: Headers = [:]
    ) -> MockResponse {
        var response = MockResponse(statusCode: status, data: Data(text.utf8))
        response.wire = wire
        response.headers = headers
        return response
    }

    @Test("A body is sent in each framing, with a space after every colon")
    func framing() throws {
        #expect(
            try reply(response(200, "ale", headers: ["A": "b", "E": ""]))
                == "HTTP/1.1 200 OK\r\nA: b\r\nE: \r\nContent-Length: 3\r\n\r\nale")
        let chunked = response(200, "ale", .chunked(size: 2))
        #expect(
            try reply(chunked) == "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nal\r\n1\r\ne\r\n0\r\n\r\n")
        #expect(try reply(response(200, "ale", .untilClose)) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nale")
        #expect(try reply(chunked, to: "GET / HTTP/1.0\r\n\r\n") == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nale")
        #expect(try reply(response(299)).hasPrefix("HTTP/1.1 299 Status 299\r\n"))
        var old = response(200)
        old.version = "HTTP/1.0"
        #expect(try reply(old) == "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }

    @Test(
        "No body is sent with HEAD, 204, 205 and 304, and the connection stays open",
        arguments: [
            ("HEAD", 200, MockResponse.Wire.fixedLength, "Content-Length: 3\r\n"),
            ("HEAD", 200, .chunked(size: 1), "Transfer-Encoding: chunked\r\n"),
            ("HEAD", 200, .untilClose, ""), ("GET", 204, .fixedLength, ""), ("GET", 204, .chunked(size: 1), ""),
            ("GET", 304, .fixedLength, ""),
            ("GET", 205, .fixedLength, "Content-Length: 0\r\n"),
            ("GET", 205, .chunked(size: 1), "Content-Length: 0\r\n"),
            ("GET", 204, .untilClose, ""),
        ])
    func bodiless(method: String, status: Int, wire: MockResponse.Wire, field: String) throws {
        let server = try MockServer { [response] _ in response(status, "ale", wire, [:]) }
        let client = try RawClient(server)
        for _ in 0..<2 {
            client.send("\(method) / HTTP/1.1\r\nHost: a\r\n\r\n")
            let head = client.read(through: "\r\n\r\n")
            #expect(head.hasPrefix("HTTP/1.1 \(status) "))
            #expect(head.hasSuffix("\r\n\(field)\r\n"))
            #expect(head.split(separator: "\r\n").count == (field.isEmpty ? 1 : 2))
        }
        #expect(server.connectionCount == 1)
    }

    @Test(
        "A custom length is sent, and the connection closes if the length is wrong")
    func ownLength() async throws {
        let right = try reply(response(200, "ale", headers: ["Content-Length": "3"]))
        #expect(right == "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale")
        let wrong = try reply(response(200, "ale", headers: ["Content-Length": "9"]))
        #expect(wrong == "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nale")
        let both = try reply(response(200, "ale", headers: ["Content-Length": "3", "Transfer-Encoding": "chunked"]))
        #expect(
            both == "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nale"
        )
        let server = try MockServer { [response] _ in response(200, "ale", .fixedLength, ["Content-Length": "12345"]) }
        let answer = await plainSession.response(to: try get(server.baseURLString))
        #expect(answer.error is URLError)
    }

    @Test("Raw bytes are sent unchanged, and the connection closes")
    func raw() throws {
        #expect(try reply(response(200, "", .raw(Data("HTTP/9.9 abc\n\0".utf8)))) == "HTTP/9.9 abc\n\0")
    }

    @Test("Without a response, the connection stays open until the server stops")
    func noResponse() async throws {
        let server = try MockServer { [response] _ in response(200, "", .noResponse, [:]) }
        let client = try RawClient(server)
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually("the request arrives") { server.receivedRequests.count == 1 }
        #expect(client.send("more"))
        server.stop()
        #expect(client.readToEnd().isEmpty)
    }

    @Test("A disconnect closes the connection without a byte and is an error for a real session")
    func disconnect() async throws {
        #expect(try reply(response(200, "ale", .disconnect)).isEmpty)
        let server = try MockServer { [response] _ in response(200, "ale", .disconnect, [:]) }
        #expect(await plainSession.response(to: try get(server.baseURLString)).error is URLError)
    }

    @Test(
        "A field that would break the head is not sent, and a 500 names it",
        arguments: [
            ("X-Bad", "a\r\nInjected: yes"), ("X-Bad", "a\nb"), ("X-Bad", "a\rb"), ("X-Bad", "a\0b"), ("X-Bad", "\r\n"),
            ("X Bad", "a"),
            ("X-Bad\r\nInjected", "a"), ("", "a"),
        ])
    func injection(name: String, value: String) async throws {
        let text = try reply(response(200, "ale", headers: [name: value]))
        #expect(text.hasPrefix("HTTP/1.1 500 Internal Server Error\r\n"))
        #expect(!text.contains("\r\nInjected"))
        #expect(
            name != "X-Bad"
                || text.hasSuffix("mockServer: the value of the header field X-Bad contains CR, LF or NUL; remove it"))
    }

    @Test("A response or JSON that cannot be encoded is a 500 with the reason")
    func unwritable() throws {
        for status in [0, 99, 1000, -1, .min, .max] { #expect(try reply(response(status)).hasPrefix("HTTP/1.1 500 ")) }
        var wrong = response(200)
        wrong.version = "HTTP/1.1 200 OK\r\nInjected: yes\r\n"
        #expect(try reply(wrong).hasPrefix("HTTP/1.1 500 "))
        let text = try reply(MockResponse(statusCode: 200, json: Date(timeIntervalSince1970: 0)))
        #expect(text.hasPrefix("HTTP/1.1 500 "))
        #expect(text.contains("encoding: "))
    }
}
