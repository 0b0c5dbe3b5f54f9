import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl

@Suite("Byte connections: cancellation in real time", .exclusive)
struct ByteConnectionRealTimeTests {
    private let session: CurlSession

    init() throws {
        session = try CurlSession { $0.proxy = .none }
    }

    /// Expects that a call ends within 100 milliseconds of its cancellation
    /// (``realTimeLimit(_:)``). Other processes may keep the processors busy, so the shortest of up
    /// to five durations counts.
    private func expectPromptEnd(
        sourceLocation: SourceLocation = #_sourceLocation, _ duration: () async throws -> Duration
    ) async rethrows {
        let limit = realTimeLimit(.milliseconds(100))
        var shortest = Duration.seconds(60)
        for _ in 0..<5 where shortest >= limit { shortest = min(shortest, try await duration()) }
        #expect(shortest < limit, sourceLocation: sourceLocation)
    }

    /// Cancels a call once it waits, and returns its result and the duration until it ended.
    private func cancelled<Value: Sendable>(
        when isWaiting: () -> Bool, _ body: @escaping @Sendable () async throws -> Value
    ) async -> (URLError.Code?, Duration) {
        let task = Task { await outcome(body) }
        await eventually("the call waits") { isWaiting() }
        let start = ContinuousClock.now
        task.cancel()
        let code = await task.value.urlErrorCode
        return (code, start.duration(to: .now))
    }

    @Test("A cancelled call that receives ends at once, with its connection")
    func cancelReceive() async throws {
        try await expectPromptEnd {
            let peer = try BytePeer { $0.awaitEnd() }
            let connection = try await session.connect(port: peer.port)
            let (code, duration) = await cancelled(when: { peer.openCount == 1 }) { try await connection.receive() }
            #expect(code == .cancelled)
            await eventually("the peer notices") { peer.openCount == 0 }
            #expect(await outcome { try await connection.send(Data("x".utf8)) }.urlErrorCode == .cancelled)
            return duration
        }
    }

    @Test("A cancelled call that sends ends at once, with its connection")
    func cancelSend() async throws {
        try await expectPromptEnd {
            let (isSending, release) = (Box(false), ThreadSignal())
            let peer = try BytePeer { connection in
                isSending.change { $0 = !connection.receive(1).isEmpty }
                release.wait()
                connection.awaitEnd()
            }
            let connection = try await session.connect(port: peer.port)
            let (code, duration) = await cancelled(when: { isSending.value }) {
                try await connection.send(Data(count: 64 << 20))
            }
            #expect(code == .cancelled)
            release.signal()
            await eventually("the peer notices") { peer.openCount == 0 }
            #expect(await outcome { try await connection.receive() }.urlErrorCode == .cancelled)
            return duration
        }
    }

    @Test("A cancelled connect ends at once, while the peer does not accept")
    func cancelConnect() async throws {
        try await expectPromptEnd {
            let listener = try FullListener()
            let port = listener.port
            let (code, duration) = await cancelled(when: { true }) { [session] in
                try await session.connect(port: port)
            }
            #expect(code == .cancelled)
            return duration
        }
    }

    @Test("A cancelled connect ends at once, while a closure looks the host up")
    func cancelResolver() async throws {
        try await expectPromptEnd {
            let isCalled = Box(false)
            let session = try CurlSession {
                $0.proxy = .none
                $0.resolver = { _, _ in
                    isCalled.change { $0 = true }
                    while !Task.isCancelled { await Task.yield() }
                    return nil
                }
            }
            let (code, duration) = await cancelled(when: { isCalled.value }) {
                try await session.connect(port: 9, host: "brewery.example")
            }
            #expect(code == .cancelled)
            return duration
        }
    }

    @Test(
        "A cancelled connect ends at once, during the handshake",
        .enabled(if: SecureServer.isAvailable, "nginx and openssl are needed"))
    func cancelHandshake() async throws {
        try await expectPromptEnd {
            let peer = try BytePeer { $0.awaitEnd() }
            let server = try SecureServer()
            let session = try CurlSession {
                $0.proxy = .none
                $0.tls.trustedCertificatesFile = server.path("ca.pem")
            }
            let (code, duration) = await cancelled(when: { peer.openCount == 1 }) {
                try await session.connect(port: peer.port, scheme: "https")
            }
            #expect(code == .cancelled)
            await eventually("the peer notices") { peer.openCount == 0 }
            return duration
        }
    }
}
