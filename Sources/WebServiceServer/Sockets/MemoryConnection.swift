package import Foundation
package import WebServiceCore

/// One end of a connection in memory.
package final class MemoryConnection: ByteConnection {
    private let incoming: MemoryPipe
    private let outgoing: MemoryPipe

    private init(_ incoming: MemoryPipe, _ outgoing: MemoryPipe) {
        self.incoming = incoming
        self.outgoing = outgoing
    }

    /// Returns both ends of a connection.
    package static func pair() -> (client: MemoryConnection, server: MemoryConnection) {
        let (there, back) = (MemoryPipe(), MemoryPipe())
        return (MemoryConnection(back, there), MemoryConnection(there, back))
    }

    deinit { close() }

    package var metrics: TransportMetrics { TransportMetrics(total: .zero) }

    package func receive() async throws -> Data {
        try await withTaskCancellationHandler {
            try await incoming.receive()
        } onCancel: {
            close()
        }
    }

    package func send(_ bytes: Data) async throws {
        try await withTaskCancellationHandler {
            try await outgoing.send(bytes)
        } onCancel: {
            close()
        }
    }

    package func close() { close(throwing: nil) }

    /// Closes the connection with an error for the other end.
    ///
    /// The other end still receives the bytes that were sent before.
    package func close(throwing error: (any Error)?) {
        incoming.close(error)
        outgoing.end(error)
    }
}

/// One direction of a ``MemoryConnection``.
private final class MemoryPipe: Sendable {
    private struct State {
        var pieces = Queue<Data>()
        var count = 0
        /// Whether the sender has ended.
        var isOver = false
        /// Whether the receiver has closed the connection.
        var isClosed = false
        /// The error with which the other end has ended or closed the connection.
        var error: (any Error)?
        /// The callers that wait for a change.
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private static let capacity = 64 << 10
    private let state = Mutex(State())

    func receive() async throws -> Data {
        while true {
            let (bytes, waiters) = try state.withLock { state -> (Data?, [CheckedContinuation<Void, Never>]) in
                if state.isClosed { throw URLError(.cancelled) }
                guard let piece = state.pieces.popFirst() else {
                    if let error = state.error { throw error }
                    return (state.isOver ? Data() : nil, [])
                }
                state.count -= piece.count
                defer { state.waiters = [] }
                return (piece, state.waiters)
            }
            for waiter in waiters { waiter.resume() }
            if let bytes { return bytes }
            await wait { $0.count == 0 && !$0.isOver && !$0.isClosed }
        }
    }

    func send(_ bytes: Data) async throws {
        await wait { $0.count >= Self.capacity && !$0.isOver && !$0.isClosed }
        try change { state in
            if state.isOver { throw URLError(.cancelled) }
            if state.isClosed { throw state.error ?? URLError(.networkConnectionLost) }
            // The bytes are divided into pieces, because a receiver takes one piece at a time.
            var rest = bytes
            while !rest.isEmpty {
                state.pieces.append(Data(rest.prefix(Self.capacity)))
                rest = rest.dropFirst(Self.capacity)
            }
            state.count += bytes.count
        }
    }

    func end(_ error: (any Error)?) {
        change { state in
            if !state.isOver { (state.isOver, state.error) = (true, error) }
        }
    }

    func close(_ error: (any Error)?) {
        change { state in
            if !state.isClosed { (state.isClosed, state.error) = (true, error) }
            (state.pieces, state.count) = (Queue(), 0)
        }
    }

    /// Waits until a condition no longer holds.
    private func wait(while condition: @Sendable (borrowing State) -> Bool) async {
        while state.withLock({ condition($0) }) {
            await withCheckedContinuation { waiter in
                let waits = state.withLock { state in
                    let waits = condition(state)
                    if waits { state.waiters.append(waiter) }
                    return waits
                }
                if !waits { waiter.resume() }
            }
        }
    }

    private func change(_ body: (inout State) throws -> Void) rethrows {
        let waiters = try state.withLock { state in
            try body(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
