import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

@Suite("Handshake", .permit)
struct HandshakeTests {
    /// Returns a handshake whose key is determined by the seed.
    static func client(_ subprotocols: [String] = [], _ deflate: DeflateParameters? = .make()) throws -> ClientHandshake
    {
        var generator = SeededGenerator(seed: 2)
        return try ClientHandshake(subprotocols: subprotocols, deflate: deflate, using: &generator)
    }

    /// Returns the fields of a valid response with changes. A change to `nil` removes a field.
    private func response(_ handshake: ClientHandshake, _ changes: [String: String?] = [:]) -> Headers {
        var headers: Headers = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": handshake.key.accept,
        ]
        for (name, value) in changes { headers[name] = value }
        return headers
    }

    private func error(
        status: Int = 101, _ changes: [String: String?], subprotocols: [String] = [],
        deflate: DeflateParameters? = .make()
    ) throws -> WebSocketHandshakeError? {
        let handshake = try Self.client(subprotocols, deflate)
        do {
            _ = try handshake.agreement(status: status, headers: response(handshake, changes))
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "SHA-1 hashes the examples of FIPS 180",
        arguments: [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
            ),
            (String(repeating: "a", count: 1_000), "291e9a6c66994949b57ba5e650361e98fc36b1ba"),
        ])
    func hash(text: String, expected: String) {
        #expect(SHA1.hash(Data(text.utf8)) == hex(expected))
    }

    @Test("The accept value of the example of RFC 6455, section 1.3, is computed")
    func accept() {
        #expect(WebSocketKey("dGhlIHNhbXBsZSBub25jZQ==")?.accept == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test("A key is 16 bytes in Base64", arguments: ["", "dGhl", "dGhlIHNhbXBsZSBub25jZSE=", "dGhlIHNhbXBsZSBub25jZQ"])
    func invalidKey(value: String) {
        #expect(WebSocketKey(value) == nil)
    }

    @Test("Keys are random")
    func randomKeys() throws {
        var generator = SystemRandomNumberGenerator()
        let keys = (0..<100).map { _ in WebSocketKey(using: &generator).value }
        #expect(Set(keys).count == 100)
        #expect(keys.allSatisfy { WebSocketKey($0) != nil })
    }

    @Test("The request has the fields of a client")
    func requestFields() throws {
        let handshake = try Self.client(["chat", "v2.chat"])
        let expected: Headers = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": handshake.key.value,
            "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "chat, v2.chat",
            "Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits",
        ]
        #expect(handshake.fields == expected)
    }

    @Test("Without zlib, the extension is not offered and not accepted")
    func withoutZlib() throws {
        var generator = SeededGenerator(seed: 2)
        let fields = try ClientHandshake(zlib: nil, using: &generator).fields
        #expect(fields["Sec-WebSocket-Extensions"] == nil)
        let server = try ServerHandshake(method: "GET", headers: Self.client().fields)
        #expect(server.agreement(zlib: nil) == WebSocketAgreement())
    }

    @Test("Subprotocols are different tokens", arguments: [["a", "a"], [""], ["a b"], ["a,b"], ["é"]])
    func invalidSubprotocols(names: [String]) {
        #expect(throws: WebSocketHandshakeError.malformedSubprotocols) { try Self.client(names) }
    }

    @Test("Names of the response are compared regardless of case, and Connection is a list")
    func lenientResponse() throws {
        let changes = ["Upgrade": "WebSocket", "Connection": "keep-alive, upgrade"]
        #expect(try error(changes) == nil)
    }

    @Test(
        "An invalid response is refused",
        arguments: [
            ("Upgrade", nil, .missingUpgrade), ("Upgrade", "h2c", .missingUpgrade),
            ("Connection", nil, .missingConnectionUpgrade), ("Connection", "close", .missingConnectionUpgrade),
            ("Sec-WebSocket-Accept", nil, .invalidAccept), ("Sec-WebSocket-Accept", "", .invalidAccept),
            ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", .invalidAccept),
            ("Sec-WebSocket-Protocol", "chat", .unexpectedSubprotocol),
            ("Sec-WebSocket-Extensions", "foo", .unexpectedExtension),
            ("Sec-WebSocket-Extensions", "permessage-deflate, permessage-deflate", .unexpectedExtension),
            ("Sec-WebSocket-Extensions", "permessage-deflate; x", .invalidExtensionParameters),
            ("Sec-WebSocket-Extensions", "permessage-deflate x", .malformedExtensions),
            ("Sec-WebSocket-Extensions", "permessage-deflate; a=\"b", .malformedExtensions),
            ("Sec-WebSocket-Extensions", "; a", .malformedExtensions),
        ] as [(String, String?, WebSocketHandshakeError)])
    func invalidResponse(name: String, value: String?, expected: WebSocketHandshakeError) throws {
        #expect(try error([name: value]) == expected)
    }

    @Test(
        "A response with NUL in its head is refused",
        arguments: [
            "HTTP/1.1 101 a\0b\r\n\r\n", "HTTP/1.1 101 \r\nX: a\0b\r\n\r\n", "HTTP/1.1 403 \r\nX\0: a\r\n\r\n",
            "HTTP/1.1 103 \r\nX: \0\r\n\r\nHTTP/1.1 101 \r\n\r\n",
        ])
    func nul(text: String) throws {
        var response = HandshakeResponse(url: "https://a.test")
        response.append(Data(text.utf8))
        let error = #expect(throws: URLError.self) { while try response.next() != nil {} }
        #expect(error?.code == .badServerResponse)
        #expect(error?.localizedDescription.contains("NUL") == true)
    }

    @Test("A status other than 101 is refused", arguments: [200, 302, 401, 100])
    func status(status: Int) throws {
        #expect(try error(status: status, [:]) == .unexpectedStatus(status))
    }

    @Test("The selected subprotocol is one of those that were offered", arguments: ["chat", " v2 "])
    func subprotocol(selected: String) throws {
        let handshake = try Self.client(["chat", "v2"])
        let agreement = try handshake.agreement(
            status: 101, headers: response(handshake, ["Sec-WebSocket-Protocol": selected]))
        #expect(agreement.subprotocol == selected.trimmingCharacters(in: .whitespaces))
    }

    @Test("Another subprotocol is refused", arguments: ["Chat", "chat, v2", "", "v3"])
    func otherSubprotocol(selected: String) throws {
        #expect(
            try error(["Sec-WebSocket-Protocol": selected], subprotocols: ["chat", "v2"]) == .unexpectedSubprotocol)
    }

    @Test("An extension that was not offered is refused")
    func unofferedExtension() throws {
        #expect(try error(["Sec-WebSocket-Extensions": "permessage-deflate"], deflate: nil) == .unexpectedExtension)
    }

    @Test("A server verifies the request and selects a subprotocol")
    func server() throws {
        let client = try Self.client(["v1", "v2"])
        let server = try ServerHandshake(method: "GET", headers: client.fields)
        #expect(server.subprotocols == ["v1", "v2"])
        let agreement = server.agreement(subprotocols: ["v3", "v2", "v1"])
        #expect(agreement == WebSocketAgreement(subprotocol: "v2", deflate: .make()))
        #expect(try client.agreement(status: 101, headers: server.fields(for: agreement)) == agreement)
    }

    @Test(
        "An invalid request is refused with a status",
        arguments: [
            ("Upgrade", nil, .missingUpgrade, 426), ("Connection", "close", .missingConnectionUpgrade, 400),
            ("Sec-WebSocket-Version", nil, .unsupportedVersion, 426),
            ("Sec-WebSocket-Version", "8", .unsupportedVersion, 426),
            ("Sec-WebSocket-Key", nil, .invalidKey, 400), ("Sec-WebSocket-Key", "abc", .invalidKey, 400),
            ("Sec-WebSocket-Protocol", "a b", .malformedSubprotocols, 400),
            ("Sec-WebSocket-Extensions", "a=b", .malformedExtensions, 400),
        ] as [(String, String?, WebSocketHandshakeError, Int)])
    func invalidRequest(name: String, value: String?, expected: WebSocketHandshakeError, status: Int) throws {
        var headers = try Self.client().fields
        headers[name] = value
        #expect(throws: expected) { try ServerHandshake(method: "GET", headers: headers) }
        #expect(expected.status == status)
    }

    @Test("A method other than GET is refused")
    func method() throws {
        let headers = try Self.client().fields
        #expect(throws: WebSocketHandshakeError.invalidMethod) { try ServerHandshake(method: "POST", headers: headers) }
        #expect(ServerHandshake.fields(for: .invalidMethod) == ["Allow": "GET"])
    }

    @Test("The response to another version has the supported one")
    func version() {
        #expect(ServerHandshake.fields(for: .unsupportedVersion)["Sec-WebSocket-Version"] == "13")
    }

    @Test("A repeated key is refused")
    func repeatedKey() throws {
        var headers = try Self.client().fields
        headers.add("dGhlIHNhbXBsZSBub25jZQ==", for: "Sec-WebSocket-Key")
        #expect(throws: WebSocketHandshakeError.invalidKey) { try ServerHandshake(method: "GET", headers: headers) }
    }
}
