import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

/// The negotiation of RFC 7692, section 7.1.
@Suite("Negotiation of permessage-deflate", .permit)
struct DeflateNegotiationTests {
    private func server(_ offer: String) throws -> ServerHandshake {
        var headers = try HandshakeTests.client([], nil).fields
        headers["Sec-WebSocket-Extensions"] = offer
        return try ServerHandshake(method: "GET", headers: headers)
    }

    @Test(
        "The offer contains the preferences of the client",
        arguments: [
            (.make(), "permessage-deflate; client_max_window_bits"),
            (.make(clientBits: 10), "permessage-deflate; client_max_window_bits=10"),
            (
                .make(serverNoContext: true, clientNoContext: true, serverBits: 9),
                "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=9; "
                    + "client_max_window_bits"
            ),
        ] as [(DeflateParameters, String)])
    func offer(parameters: DeflateParameters, field: String) throws {
        #expect(try HandshakeTests.client([], parameters).fields["Sec-WebSocket-Extensions"] == field)
    }

    @Test(
        "A server applies the offer and its preferences",
        arguments: [
            ("permessage-deflate", .make(), .make(), "permessage-deflate"),
            (
                "permessage-deflate; server_no_context_takeover", .make(), .make(serverNoContext: true),
                "permessage-deflate; server_no_context_takeover"
            ),
            (
                "permessage-deflate; client_no_context_takeover", .make(), .make(clientNoContext: true),
                "permessage-deflate; client_no_context_takeover"
            ),
            (
                "permessage-deflate; server_max_window_bits=\"10\"", .make(), .make(serverBits: 10),
                "permessage-deflate; server_max_window_bits=10"
            ),
            (
                "permessage-deflate; server_max_window_bits=15", .make(), .make(),
                "permessage-deflate; server_max_window_bits=15"
            ),
            ("permessage-deflate; client_max_window_bits", .make(), .make(), "permessage-deflate"),
            (
                "permessage-deflate; client_max_window_bits", .make(clientBits: 9), .make(clientBits: 9),
                "permessage-deflate; client_max_window_bits=9"
            ),
            (
                "permessage-deflate; client_max_window_bits=10", .make(clientBits: 12), .make(clientBits: 10),
                "permessage-deflate; client_max_window_bits=10"
            ),
            // A client that does not offer the parameter cannot be limited.
            ("permessage-deflate", .make(clientBits: 9), .make(), "permessage-deflate"),
            (
                "permessage-deflate", .make(serverNoContext: true, clientNoContext: true, serverBits: 11),
                .make(serverNoContext: true, clientNoContext: true, serverBits: 11),
                "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=11"
            ),
            // The first valid offer applies.
            (
                "foo, permessage-deflate; x, permessage-deflate; server_max_window_bits=9, permessage-deflate", .make(),
                .make(serverBits: 9), "permessage-deflate; server_max_window_bits=9"
            ),
        ] as [(String, DeflateParameters, DeflateParameters, String)])
    func server(offer: String, preferences: DeflateParameters, applied: DeflateParameters, response: String) throws {
        let server = try server(offer)
        let agreement = server.agreement(deflate: preferences)
        #expect(agreement.deflate == applied)
        #expect(server.fields(for: agreement)["Sec-WebSocket-Extensions"] == response)
    }

    @Test(
        "An offer with an invalid parameter is declined",
        arguments: [
            "foo", "permessage-deflate; foo", "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; client_no_context_takeover=true", "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=7", "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=09", "permessage-deflate; server_max_window_bits=+9",
            "permessage-deflate; client_max_window_bits=7",
            "permessage-deflate; client_max_window_bits=99999999999999999999",
            "permessage-deflate; client_max_window_bits; client_max_window_bits",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        ])
    func declined(offer: String) throws {
        let server = try server(offer)
        let agreement = server.agreement()
        #expect(agreement == WebSocketAgreement())
        #expect(server.fields(for: agreement)["Sec-WebSocket-Extensions"] == nil)
    }

    /// Returns what a client applies; `nil` if it refuses the response.
    private func applied(_ offer: DeflateParameters, _ response: String) throws -> DeflateParameters? {
        let handshake = try HandshakeTests.client([], offer)
        var headers: Headers = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": handshake.key.accept,
        ]
        headers["Sec-WebSocket-Extensions"] = response
        do {
            return try handshake.agreement(status: 101, headers: headers).deflate
        } catch {
            #expect(error == .invalidExtensionParameters)
            return nil
        }
    }

    @Test(
        "A client applies the response",
        arguments: [
            (.make(), "permessage-deflate", .make()),
            (.make(), "permessage-deflate; server_no_context_takeover", .make(serverNoContext: true)),
            (.make(), "permessage-deflate; client_no_context_takeover", .make(clientNoContext: true)),
            (.make(), "permessage-deflate; server_max_window_bits=8", .make(serverBits: 8)),
            (.make(), "permessage-deflate; client_max_window_bits=8", .make(clientBits: 8)),
            (.make(clientBits: 10), "permessage-deflate", .make(clientBits: 10)),
            (.make(clientNoContext: true), "permessage-deflate", .make(clientNoContext: true)),
            (.make(serverBits: 10), "permessage-deflate; server_max_window_bits=9", .make(serverBits: 9)),
        ] as [(DeflateParameters, String, DeflateParameters)])
    func client(offer: DeflateParameters, response: String, expected: DeflateParameters) throws {
        #expect(try applied(offer, response) == expected)
    }

    @Test(
        "A client refuses a response that does not correspond to its offer",
        arguments: [
            (.make(), "permessage-deflate; client_max_window_bits"), (.make(), "permessage-deflate; foo"),
            (.make(), "permessage-deflate; server_max_window_bits"),
            (.make(), "permessage-deflate; server_max_window_bits=16"),
            (.make(serverNoContext: true), "permessage-deflate"), (.make(serverBits: 10), "permessage-deflate"),
            (.make(serverBits: 10), "permessage-deflate; server_max_window_bits=11"),
            (.make(clientBits: 10), "permessage-deflate; client_max_window_bits=11"),
        ] as [(DeflateParameters, String)])
    func refused(offer: DeflateParameters, response: String) throws {
        #expect(try applied(offer, response) == nil)
    }
}
