import Foundation
import WebServiceCore
import WebServiceStorage

/// A body that is written to a file of a ``BodyFolder`` while its reader takes it.
///
/// The file is written on a queue. The reader waits while more than ``maximumPending`` bytes have
/// not been written, in total at most ``maximumDelay``; beyond that, the body is not stored.
final class BodyDraft: BodyCopy {
    /// The number of bytes in memory beyond which the reader waits.
    private static let maximumPending = 512 << 10
    /// The maximum duration for which the reader of one body waits.
    static let maximumDelay = Duration.seconds(10)

    private enum Phase {
        case open
        /// The body is complete, and is written or being written.
        case finished
        /// The body is not stored.
        case abandoned
        /// The file has its name.
        case published
    }

    private struct State {
        var phase = Phase.open
        var count: Int64 = 0
        var pending = 0
        var delay = Duration.zero
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
    ///   - onFinish: Called by the reader after the end of the body. It may call ``publish()``.
    ///   - onRefusal: Called with the reason why the body is not stored, unless the reader stops.
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

    /// The file, once ``publish()`` has returned.
    var file: CachedBody.File { CachedBody.File(name: name, count: state.withLock { $0.count }) }

    // MARK: The reader

    func add(_ bytes: Data) async {
        let (refusal, isOpen, waiter, delay) = state.withLock { state -> (CacheRefusal?, Bool, Once<Bool>?, Duration) in
            guard state.phase == .open else { return (nil, false, nil, .zero) }
            state.count += Int64(bytes.count)
            if state.count > folder.maximumBodyBytes { return (.tooLarge(folder), false, nil, .zero) }
            if state.failure != nil { return (.unwritable, false, nil, .zero) }
            state.pending += bytes.count
            if state.pending > Self.maximumPending { state.waiter = Once() }
            return (nil, true, state.waiter, state.delay)
        }
        if let refusal { return refuse(refusal) }
        guard isOpen else { return }
        queue.run { self.write(bytes) }
        guard let waiter else { return }
        let start = clock.now
        let left = max(.zero, Self.maximumDelay - delay)
        guard await clock.value(of: waiter, orAfter: left, false, orIfCancelled: true) else {
            return refuse(CacheRefusal("the disk is too slow"))
        }
        let spent = Duration.nanoseconds(Int64(clamping: clock.now - min(start, clock.now)))
        state.withLock { $0.delay += spent }
    }

    func finish() {
        let (isComplete, refusal) = state.withLock { state -> (Bool, CacheRefusal?) in
            guard state.phase == .open else { return (false, nil) }
            guard expected == nil || expected == state.count else {
                return (false, CacheRefusal("the body has another length than its head announced"))
            }
            state.phase = .finished
            return (true, nil)
        }
        if let refusal { refuse(refusal) }
        if isComplete { onFinish(self) }
    }

    func abandon() { _ = end() }

    /// Removes the file of a complete body that is not stored. Called in place of ``publish()``.
    func discard() { _ = end(of: .finished) }

    private func refuse(_ refusal: CacheRefusal) {
        if end() { onRefusal(refusal) }
    }

    /// - Returns: Whether the draft was in the phase.
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

    /// Returns the file, which the first call creates.
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

    /// Gives the file its name, after all bytes are written. The file remains locked until
    /// ``close()``.
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
