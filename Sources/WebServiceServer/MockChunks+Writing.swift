import Foundation
import WebServiceCore
import WebServiceMocking

extension MockChunks {
    /// Writes the elements on the current thread, each after the system has accepted the previous
    /// one.
    ///
    /// - Throws: The error of the sequence, or a connection error if the client has closed the
    ///   connection. The sequence is then cancelled.
    func write(to body: MockResponse.BodyWriter) throws {
        let relay = ChunkRelay()
        let task = Task {
            do {
                try await produce({ try await relay.pass($0) }, .system)
                relay.end(nil)
            } catch {
                relay.end(error)
            }
        }
        defer {
            task.cancel()
            relay.close()
        }
        while let chunk = try relay.next(isNeeded: { !body.output.isDisconnected }) { try body.write(chunk) }
    }
}

/// A relay that passes chunks from a Swift task to a thread that waits for them.
final class ChunkRelay: Sendable {
    struct State {
        var chunk: Data?
        /// The producer of the last chunk, which waits until the thread requests the next one.
        var producer: CheckedContinuation<Void, Never>?
        var isOver = false
        var failure: (any Error)?
    }

    let state = Mutex(State())
    private let available = ThreadSignal()

    func pass(_ chunk: Data) async throws {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { (state.chunk, state.producer) = (chunk, continuation) }
                return state.isOver
            }
            if isOver { continuation.resume() } else { available.signal() }
        }
        try Task.checkCancellation()
    }

    func end(_ failure: (any Error)?) {
        state.withLock { ($0.isOver, $0.failure) = (true, failure) }
        available.signal()
    }

    /// Resumes a waiting producer.
    func close() {
        let producer = state.withLock { state in
            state.isOver = true
            return state.producer.take()
        }
        producer?.resume()
    }

    /// Returns the next chunk, or `nil` at the end.
    ///
    /// - Parameter isNeeded: A closure that returns whether to continue waiting. It is called every
    ///   20 milliseconds.
    func next(isNeeded: () -> Bool) throws -> Data? {
        // The first chunk can arrive before the thread requests it.
        let producer = state.withLock { $0.chunk == nil ? $0.producer.take() : nil }
        producer?.resume()
        while !available.wait(milliseconds: 20) {
            guard isNeeded() else { throw URLError(.networkConnectionLost) }
        }
        let (chunk, failure) = state.withLock { state in
            defer { state.chunk = nil }
            return (state.chunk, state.failure)
        }
        if let failure { throw failure }
        return chunk
    }
}
