import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

extension InspectorProbe {
    // MARK: A WebSocket

    /// The server responds to a message with JSON and bytes, to `many` with 1,200 messages, and
    /// to `close` with the end of the connection.
    func addSockets() {
        session.on(
            .GET, "/v1/chat",
            .webSocket { socket in
                while let message = try await socket.next() {
                    switch message {
                    case .text("close"): return try await socket.close(.policyViolation, reason: "token=canary-34")
                    case .text("many"): for number in 0..<1_200 { try await socket.send("number \(number)") }
                    case .text(let text):
                        try await socket.send(["echo": text, "access_token": "canary-35"])
                        try await socket.send(Data((0..<200).map { UInt8($0) }))
                    case .data: break
                    }
                }
            })
    }

    func openSocket() {
        _ = Task { [service, messages] in
            do {
                let socket = try await service.webSocket("/chat")
                async let reading: Void = { for try await _ in socket.messages {} }()
                for await text in messages { try await socket.send(text) }
                try await reading
            } catch {}  // the server closes with an error
        }
    }
}
