import Foundation
import WebServiceCore
import WebServiceStorage

/// A body that is written to a file of a ``BodyFolder`` while its reader receives it.
///
/// The file is written on a queue. The reader waits while more than ``maximumPending`` bytes have
/// not been written. If its total waiting time would exceed the rest of the stream's duration by
/// more than ``maximumDelay``, the body is not stored. A slow disk can therefore at most double the
/// duration of a stream and add ``maximumDelay`` to it.
final class BodyDraft: BodyCopy {
    /// The number of bytes in memory beyond which the reader waits.
    private static let maximumPending = 512 << 10
    /// The time by which the reader's total waiting time may exceed the rest of the stream's
    /// duration.
    private static let maximumDelay = Duration.seconds(10)

    private enum Phase {
        case open
        /// The body is complete, but its file does not have its final name yet.
        case finished
        /// The body is not stored.
        case abandoned
        /// The file has its final name.
        case published
    }

    private struct State {
        var phase = Phase.open
        var count: Int64 = 0
        var pending = 0
        /// The instant of the first bytes; 0 if there are none yet.
        var start: UInt64 = 0
        /// The duration for which the reader has waited, in nanoseconds.
        var delay: UInt64 = 0
        /// The reader that waits.
        var waiter: Once<Bool>?
        var file: BodyFolder.Draft?
        /// The failure to write the file.
        var failure: (any Error)?
    }

    private let folder: BodyFolder
    private let name: String
    private let expected: Int64?
    private let clock: TaskClock
    let queue = BlockingQueue("WebService.BodyDraft")
    private let onFinish: @Sendable (BodyDraft) -> Void
    private let onRefusal: @Sendable (CacheRefusal) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - expected: The number of bytes that the head of the response announced; `nil` if it is
    ///     unknown.
    ///   - onFinish: Called after the reader has received the complete body. It may call
    ///     ``publish()``.
    ///   - onRefusal: Called with the reason, instead of `onFinish`, if the body is refused. Not
    ///     called if the reader stops early.
    init(
        in folder: BodyFolder, for key: StorageKey, expecting expected: Int64?, _ clock: TaskClock,
        onFinish: @escaping @Sendable (BodyDraft) -> Void, onRefusal: @escaping @Sendable (CacheRefusal) -> Void
    ) {
        self.folder = folder
        self.expected = expected
        self.clock = clock
        self.onFinish = onFinish
        self.onRefusal = onRefusal
        name = folder.newName(for: key)
    }

    deinit {
        let (phase, file) = state.withLock { ($0.phase, $0.file) }
        if phase != .published, let file { folder.discard(file) }
    }

    /// The file, which exists after ``publish()`` has returned.
    var file: CachedBody.File { CachedBody.File(name: name, count: state.withLock { $0.count }) }

    // MARK: The reader

    func add(_ bytes: Data) async {
        let now = clock.now
        switch state.withLock({ add(bytes.count, at: now, to: &$0) }) {
        case .none: return
        case .refuse(let refusal): return refuse(refusal)
        case .write: queue.run { self.write(bytes) }
        case .writeAndWait(let waiter, let limit):
            queue.run { self.write(bytes) }
            guard await clock.value(of: waiter, orAfter: limit, false, orIfCancelled: true) else {
                return refuse(CacheRefusal("the disk is too slow"))
            }
            let end = clock.now
            state.withLock { $0.delay += end - min(now, end) }
        }
    }

    private enum Addition {
        case none
        case refuse(CacheRefusal)
        case write
        case writeAndWait(Once<Bool>, limit: Duration)
    }

    private func add(_ count: Int, at now: UInt64, to state: inout State) -> Addition {
        guard state.phase == .open else { return .none }
        if state.start == 0 { state.start = now }
        state.count += Int64(count)
        if state.count > folder.maximumBodyBytes { return .refuse(.tooLarge(folder)) }
        if state.failure != nil { return .refuse(.unwritable) }
        state.pending += count
        guard state.pending > Self.maximumPending else { return .write }
        let waiter = Once<Bool>()
        state.waiter = waiter
        let others = Int64(clamping: now - min(state.start, now)) - 2 * Int64(clamping: state.delay)
        return .writeAndWait(waiter, limit: max(.zero, Self.maximumDelay + .nanoseconds(others)))
    }

    func finish() {
        let (isComplete, refusal) = state.withLock { state -> (Bool, CacheRefusal?) in
            guard state.phase == .open else { return (false, nil) }
            guard expected == nil || expected == state.count else {
                return (false, CacheRefusal("the length of the body differs from the announced length"))
            }
            state.phase = .finished
            return (true, nil)
        }
        if let refusal { refuse(refusal) }
        if isComplete { onFinish(self) }
    }

    func abandon() { _ = end() }

    /// Removes the file of a complete body that is not stored. Call this instead of ``publish()``.
    func discard() { _ = end(of: .finished) }

    private func refuse(_ refusal: CacheRefusal) {
        if end() { onRefusal(refusal) }
    }

    /// - Returns: Whether the draft was in `phase`.
    private func end(of phase: Phase = .open) -> Bool {
        let (isEnd, file) = state.withLock { state -> (Bool, BodyFolder.Draft?) in
            guard state.phase == phase else { return (false, nil) }
            state.phase = .abandoned
            return (true, state.file.take())
        }
        if let file { folder.discard(file) }
        return isEnd
    }

    // MARK: On the queue

    private func write(_ bytes: Data) {
        if state.withLock({ $0.phase != .abandoned && $0.failure == nil }) {
            do { try openFile().descriptor.append(bytes) } catch { state.withLock { $0.failure = error } }
        }
        let waiter = state.withLock { state in
            state.pending -= bytes.count
            return state.pending <= Self.maximumPending || state.failure != nil ? state.waiter.take() : nil
        }
        waiter?.set(true)
    }

    /// Returns the file, and creates it on the first call.
    private func openFile() throws -> BodyFolder.Draft {
        if let file = state.withLock({ $0.file }) { return file }
        let file = try folder.makeDraft()
        let isUnwanted = state.withLock { state in
            if state.phase != .abandoned { state.file = file }
            return state.phase == .abandoned
        }
        if isUnwanted { folder.discard(file) }
        return file
    }

    /// Gives the file its final name after all bytes have been written. The file remains locked
    /// until ``close()`` is called.
    ///
    /// - Throws: The reason why the body is not stored.
    func publish() async throws(CacheRefusal) {
        do {
            let draft = try await queue.result { [self] in
                if let failure = state.withLock({ $0.failure }) { throw failure }
                let file = try openFile()
                let count = state.withLock { $0.count }
                guard Int64(try file.descriptor.status().size) == count else {
                    throw SystemFailure(call: "write", number: EIO)
                }
                return file
            }
            try await folder.publish(draft, as: file)
            state.withLock { $0.phase = .published }
        } catch {
            discard()
            throw .unwritable
        }
    }

    /// Closes and unlocks a published file.
    func close() {
        let file = state.withLock { $0.file.take() }
        withExtendedLifetime(file) {}
    }
}

extension CacheRefusal {
    fileprivate static var unwritable: CacheRefusal { CacheRefusal("the file of the body could not be written") }

    static func tooLarge(_ folder: BodyFolder) -> CacheRefusal {
        CacheRefusal("the body has more than \(folder.maximumBodyBytes) bytes")
    }
}
