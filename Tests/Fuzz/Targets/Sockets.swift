import Foundation
import WebServiceCore

@testable import WebSocketCodec

extension FuzzTarget {
    /// The WebSocket codec: the events and the output do not depend on how the bytes are split.
    static let sockets: [FuzzTarget] = [
        FuzzTarget(
            "websocket-frames", runs: 6, seeds: frames,
            check: { bytes in
                for role in WebSocketRole.allCases {
                    let whole = Received(bytes, by: max(1, bytes.count), role)
                    for size in [1, 7] {
                        try require(
                            Received(bytes, by: size, role) == whole, "pieces of \(size) bytes give other events")
                    }
                }
            }),
        FuzzTarget(
            "websocket-handshake", share: 5, runs: 2,
            seeds: [
                "permessage-deflate; client_max_window_bits, x; a=\"b\"", "permessage-deflate;server_max_window_bits=9",
                "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
            ],
            tokens: ["permessage-deflate", "; ", "client_max_window_bits", "=15", "server_no_context_takeover"],
            check: { bytes in
                let field = text(bytes)
                let request: Headers = [
                    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Extensions": field,
                    "Sec-WebSocket-Protocol": field,
                ]
                // Most fields are malformed.
                guard let server = try? ServerHandshake(method: "GET", headers: request) else { return }
                let agreement = server.agreement(subprotocols: ["permessage-deflate"])
                let response = server.fields(for: agreement)["Sec-WebSocket-Extensions"]
                try require((response == nil) == (agreement.deflate == nil), "the response differs from the agreement")
                try require(
                    agreement.deflate.map { (8...15).contains($0.serverMaxWindowBits) } ?? true, "invalid window")
            }),
    ]

    /// A text, a fragmented and a compressed message, control frames, and masked frames.
    private static let frames: [[UInt8]] = [
        [0x81, 5, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x89, 1, 0x61, 0x8A, 0],
        [0x01, 1, 0xE2, 0x89, 0, 0x00, 1, 0x82, 0x80, 1, 0xAC],
        [0xC1, 7, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0, 0xC1, 5, 0xF2, 0, 0x11, 0, 0],
        [0x41, 3, 0xF2, 0x48, 0xCD, 0x80, 4, 0xC9, 0xC9, 0x07, 0],
        [0xC1, 8, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0, 0, 0x88, 3, 3, 0xE8, 0x61],
        [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58, 0x89, 0x80, 0, 0, 0, 0],
        [0xC1, 0x87, 0, 0, 0, 0, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0, 0x82, 0xFE, 0, 0x80, 1, 2, 3, 4],
    ]
}

/// What an endpoint does with the bytes of its peer.
private struct Received: Equatable {
    private(set) var events: [WebSocketEvent] = []
    private(set) var output = Data()

    init(_ bytes: [UInt8], by size: Int, _ role: WebSocketRole) {
        var options = WebSocketOptions()
        options.deflate = DeflateParameters()
        options.limits.maximumFrameLength = 1 << 14
        options.limits.maximumMessageLength = 1 << 13
        options.limits.maximumFragmentCount = 50
        var machine = WebSocketStateMachine(role, options, generator: Random(state: 1))
        for start in stride(from: 0, to: bytes.count, by: size) {
            events += machine.receive(bytes[start..<min(start + size, bytes.count)])
        }
        while let part = machine.takeOutput() { output += part }
    }
}
