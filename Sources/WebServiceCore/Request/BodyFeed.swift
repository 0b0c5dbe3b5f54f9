import Foundation

/// A buffer between the sequence of a ``StreamedBody`` and the thread that sends its bytes.
///
/// The sequence runs in a Swift task, which is suspended while 128 KiB or more are unread.
package final class BodyFeed: Sendable {
    private struct State {
        var chunks = Queue<Data>()
        /// The unread remainder of the first chunk.
        var first = Data()
        /// The number of unread bytes.
        var waiting = 0
        var readCount: Int64 = 0
        /// The result of the sequence; `nil` before its end.
        var end: Result<Void, any Error>?
        /// Whether the reader must be notified when the next bytes are available.
        var isAwaited = false
        var isCancelled = false
        /// The sequence, while it waits for space in the buffer.
        var producer: CheckedContinuation<Void, Never>?
        var task: Task<Void, Never>?

        /// - Returns: Whether the reader must be notified.
        mutating func wakeReader() -> Bool {
            defer { isAwaited = false }
            return isAwaited
        }

        mutating func nextChunk() -> Bool {
            guard first.isEmpty else { return true }
            first = chunks.popFirst() ?? Data()
            return !first.isEmpty
        }
    }

    /// The number of unread bytes at which the sequence is suspended.
    private static let limit = 128 << 10

    package let body: StreamedBody
    private let state = Mutex(State())
    private let onMore: @Sendable () -> Void

    /// - Parameter onMore: A closure that is called once after each ``read(into:)`` that returns
    ///   `nil`, on any thread, unless the feed was already cancelled.
    package init(_ body: StreamedBody, onMore: @escaping @Sendable () -> Void) {
        self.body = body
        self.onMore = onMore
    }

    /// The number of bytes read.
    package var readCount: Int64 { state.withLock { $0.readCount } }

    /// Starts the sequence.
    package func start() {
        let task = Task(executorPreference: HandlerPool.shared) { [self] in
            let result: Result<Void, any Error>
            do {
                result = .success(try await body.produce { try await self.append($0) })
            } catch {
                result = .failure(error)
            }
            let wakes = state.withLock { state in
                state.end = result
                return state.wakeReader()
            }
            if wakes { onMore() }
        }
        let isCancelled = state.withLock { state in
            if state.end == nil { state.task = task }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// Reads the next bytes.
    ///
    /// The last byte of a body of known length is returned only after the sequence has ended, so
    /// that a body that is too long is never sent as a complete one.
    ///
    /// - Returns: The number of bytes; 0 at the end, and `nil` if there are none yet or the feed
    ///   was cancelled.
    /// - Throws: The error of the sequence.
    package func read(into room: UnsafeMutableRawBufferPointer) throws -> Int? {
        let (count, producer) = try state.withLock { state in
            if state.isCancelled { return (nil as Int?, nil as CheckedContinuation<Void, Never>?) }
            if let end = state.end { try end.get() }
            var available = min(state.waiting, room.count)
            if state.end == nil, let length = body.length, state.readCount + Int64(available) >= length {
                available = max(0, available - 1)
            }
            var filled = 0
            while filled < available, state.nextChunk() {
                let part = state.first.prefix(available - filled)
                part.copyBytes(to: UnsafeMutableRawBufferPointer(rebasing: room[filled..<filled + part.count]))
                state.first = state.first.dropFirst(part.count)
                filled += part.count
            }
            state.waiting -= filled
            state.readCount += Int64(filled)
            state.isAwaited = filled == 0 && state.end == nil
            let producer = state.waiting < Self.limit ? state.producer.take() : nil
            return (state.isAwaited ? nil : filled, producer)
        }
        producer?.resume()
        return count
    }

    /// Adds a chunk, and waits until there is space for the next one.
    private func append(_ chunk: Data) async throws {
        let wakes = state.withLock { state in
            state.chunks.append(chunk)
            state.waiting += chunk.count
            return state.wakeReader()
        }
        if wakes { onMore() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let hasRoom = state.withLock { state in
                    let hasRoom = state.waiting < Self.limit || state.isCancelled
                    if !hasRoom { state.producer = continuation }
                    return hasRoom
                }
                if hasRoom { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
        try Task.checkCancellation()
    }

    /// Cancels the sequence and releases the bytes. If the reader is waiting, it is notified.
    package func cancel() {
        let (task, producer, released, wakes) = state.withLock { state in
            let released = (state.chunks, state.first)
            (state.chunks, state.first, state.waiting) = (Queue(), Data(), 0)
            state.isCancelled = true
            return (state.task.take(), state.producer.take(), released, state.wakeReader())
        }
        withExtendedLifetime(released) {}
        task?.cancel()
        producer?.resume()
        if wakes { onMore() }
    }
}
