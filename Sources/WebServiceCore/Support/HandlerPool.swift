import Dispatch
import Foundation

/// Work that a ``HandlerPool`` performs.
package protocol PooledWork: AnyObject, Sendable {
    func perform()
}

/// A pool that runs handlers in the background, on the global dispatch queue.
///
/// A transport delivers responses in batches, and waking a thread for each response costs more than
/// most handlers do. A worker therefore runs one handler after another. Another worker starts if
/// several handlers wait, or if none was started for a millisecond because a handler blocks; a
/// blocking handler delays others by no more than that.
package final class HandlerPool: Sendable {
    package static let shared = HandlerPool()

    private struct State {
        var waiting = Queue<any PooledWork>()
        var workers = 0
        /// The number of items that were started, which indicates progress.
        var begun: UInt64 = 0
        var isWatched = false
        /// The number of batches that are being delivered.
        var batches = 0

        /// Returns the action that the waiting work requires.
        mutating func need() -> Need {
            guard !waiting.isEmpty else { return .nothing }
            // The delivery of a batch may wait for a part of that batch, so it is watched as well.
            if batches == 0, workers == 0 || workers < HandlerPool.processors && waiting.count > HandlerPool.patience {
                workers += 1
                return .worker
            }
            defer { isWatched = true }
            return isWatched ? .nothing : .watch(begun)
        }
    }

    private enum Need {
        case nothing, worker
        case watch(UInt64)
    }

    private let state = Mutex(State())
    private static let processors = max(2, ProcessInfo.processInfo.activeProcessorCount)
    /// The number of items that may wait before another worker starts.
    private static let patience = 8

    /// Runs work soon, never on the calling thread.
    ///
    /// - Parameter token: Retained until the work is done. Defaults to `nil`.
    package func schedule(_ work: any PooledWork, counting token: WorkCount.Token? = nil) {
        let work = token.map { CountedWork(work, $0) } ?? work
        carryOut(
            state.withLock { state in
                state.waiting.append(work)
                return state.need()
            })
    }

    /// Schedules work as a batch: no worker starts for it until `bring` returns.
    ///
    /// `bring` must return soon.
    package func together(_ bring: () -> Void) {
        state.withLock { $0.batches += 1 }
        bring()
        carryOut(
            state.withLock { state in
                state.batches -= 1
                return state.need()
            })
    }

    private func carryOut(_ need: Need) {
        switch need {
        case .nothing: break
        case .worker: addWorker()
        case .watch(let begun): watch(begun)
        }
    }

    private func addWorker() {
        DispatchQueue.global().async { [self] in
            while let work = next() { work.perform() }
        }
    }

    private func next() -> (any PooledWork)? {
        state.withLock { state in
            guard let work = state.waiting.popFirst() else {
                state.workers -= 1
                return nil
            }
            state.begun &+= 1
            return work
        }
    }

    /// Checks for progress again in a millisecond, while work is waiting.
    private func watch(_ begun: UInt64) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { [self] in
            let (isStuck, next) = state.withLock { state -> (Bool, UInt64?) in
                guard !state.waiting.isEmpty else {
                    state.isWatched = false
                    return (false, nil)
                }
                let isStuck = state.begun == begun
                if isStuck { state.workers += 1 }
                return (isStuck, state.begun)
            }
            if isStuck { addWorker() }
            if let next { watch(next) }
        }
    }
}

/// Work that a test clock waits for.
private final class CountedWork: PooledWork {
    private let work: any PooledWork
    private let token: WorkCount.Token

    init(_ work: any PooledWork, _ token: WorkCount.Token) {
        (self.work, self.token) = (work, token)
    }

    func perform() { work.perform() }
}
