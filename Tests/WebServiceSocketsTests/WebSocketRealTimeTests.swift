import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceSockets

@Suite("WebSocket: cancellation in real time", .exclusive)
struct WebSocketRealTimeTests {
    @Test("Cancelling the reader ends the connection", .covers("W-10"), arguments: SocketTransport.allCases)
    func cancelled(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        let ends = Collected<Bool>()
        stubs.on(
            .GET, "/chat",
            .webSocket { socket in
                do { while try await socket.next() != nil {} } catch {}
                ends.add(true)
            })
        let socket = try await service.webSocket("/chat")
        let reader = Task { await failure { for try await _ in socket.messages {} } }
        await eventually { service.exchanges.count == 1 }
        let start = ContinuousClock.now
        reader.cancel()
        let error = await reader.value
        #expect(ContinuousClock.now - start < .milliseconds(100))
        #expect(urlCode(error) == .cancelled)
        await eventually { ends.values == [true] }
        await eventually { service.exchanges.isEmpty }
    }
}
