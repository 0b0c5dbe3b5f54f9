import Foundation
import WebServiceCore
import WebSocketCodec

/// A byte connection whose peer is the test.
final class HandConnection: ByteConnection {
    private struct State {
        var pieces = Queue<Data>()
        var receivedCount = 0
        var isInputOver = false
        var isClosed = false
        var holdsSending: Bool
        var sent = Data()
        /// The calls that wait for a change.
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - pieces: The bytes of the peer, one element for each call of ``receive()``.
    ///   - holdsSending: Whether ``send(_:)`` waits for ``allowSending()``.
    init(_ pieces: [[UInt8]] = [], holdsSending: Bool = false) {
        state = Mutex(State(holdsSending: holdsSending))
        for piece in pieces { add(piece) }
    }

    var metrics: TransportMetrics { TransportMetrics(total: .zero) }

    func receive() async throws -> Data {
        while true {
            let piece = try state.withLock { state -> Data? in
                if state.isClosed { throw URLError(.cancelled) }
                guard let piece = state.pieces.popFirst() else { return state.isInputOver ? Data() : nil }
                state.receivedCount += 1
                return piece
            }
            if let piece { return piece }
            await wait { $0.pieces.isEmpty && !$0.isInputOver && !$0.isClosed }
        }
    }

    func send(_ bytes: Data) async throws {
        await wait { $0.holdsSending && !$0.isClosed }
        try state.withLock { state in
            if state.isClosed { throw URLError(.cancelled) }
            state.sent += bytes
        }
    }

    func close() { change { $0.isClosed = true } }

    // MARK: For the test

    /// Adds bytes of the peer.
    func add(_ piece: [UInt8]) { change { $0.pieces.append(Data(piece)) } }

    func endInput() { change { $0.isInputOver = true } }

    func allowSending() { change { $0.holdsSending = false } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// The number of pieces that were received.
    var receivedCount: Int { state.withLock { $0.receivedCount } }

    /// What the peer has received.
    var events: [WebSocketEvent] {
        var machine = WebSocketStateMachine(.server)
        return machine.receive(state.withLock { $0.sent })
    }

    private func wait(while condition: @Sendable (borrowing State) -> Bool) async {
        while state.withLock({ condition($0) }) {
            await withCheckedContinuation { waiter in
                let waits = state.withLock { state in
                    if condition(state) { state.waiters.append(waiter) }
                    return condition(state)
                }
                if !waits { waiter.resume() }
            }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiters = state.withLock { state in
            body(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
