import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

@Suite("WebSocket: cancellation and floods in real time", .exclusive)
struct WebSocketRealTimeTests {
    @Test("Cancelling the reader ends the connection", arguments: SocketTransport.allCases)
    func cancelled(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        let ends = Collected<Bool>()
        stubs.on(
            .GET, "/chat",
            .webSocket { socket in
                do { while try await socket.next() != nil {} } catch {}
                ends.add(true)
            })
        let limit = realTimeLimit(.milliseconds(100))
        var shortest = Duration.seconds(60)
        // Other processes may keep the processors busy, so the shortest of five durations counts.
        for round in 1...5 where shortest >= limit {
            let socket = try await service.webSocket("/chat")
            let reader = Task { await failure { for try await _ in socket.messages {} } }
            await eventually { service.exchanges.count == 1 }
            let start = ContinuousClock.now
            reader.cancel()
            let error = await reader.value
            shortest = min(shortest, ContinuousClock.now - start)
            #expect(urlCode(error) == .cancelled)
            await eventually { ends.values.count == round }
            await eventually { service.exchanges.isEmpty }
        }
        #expect(shortest < limit)
    }

    @Test(
        "A peer that sends without end does not delay the opening",
        arguments: SocketTransport.allCases, [[0x81, 0x00], [0x89, 0x00]] as [[UInt8]])
    func flood(_ transport: SocketTransport, frame: [UInt8]) async throws {
        let (service, stubs) = try transport.make()
        let piece = Data(Array(repeatElement(frame, count: 8 << 10).joined()))
        let isOpen = OnceFlag()
        // The server stops at a limit, so that a client that first reads all of it fails.
        let opened = Collected<Bool>()
        stubs.on(
            .GET, "/flood",
            .webSocket(compresses: false) { socket in
                for _ in 0..<2_000 where !isOpen.isSet { try await socket.send(raw: piece) }
                opened.add(isOpen.isSet)
                _ = try await socket.next()
            })
        let socket = try await service.webSocket("/flood")
        _ = isOpen.set()
        // A full buffer would hold the server back.
        let reader = Task { await failure { for try await _ in socket.messages {} } }
        #expect(await opened.wait() == [true])
        reader.cancel()
    }
}
