import Dispatch
import Foundation

/// What a ``HandlerPool`` runs.
package protocol PooledWork: AnyObject, Sendable {
    func perform()
}

/// Where handlers run: on the global queue, in the background.
///
/// A transport brings answers in bunches, and waking a thread for each of them costs more than most handlers do. So a worker takes one after another; another
/// worker joins in when several wait, or when nothing has moved for a millisecond because a handler blocks: so long can it hold up others.
package final class HandlerPool: Sendable {
    package static let shared = HandlerPool()

    private struct State {
        var waiting = Queue<any PooledWork>()
        var workers = 0
        /// How much work was begun; tells whether anything moves.
        var begun: UInt64 = 0
        var isWatched = false
        /// How many bunches of work are being brought.
        var bunches = 0

        /// Whether somebody has to come for what waits.
        mutating func need() -> Need {
            guard !waiting.isEmpty else { return .nothing }
            // What brings a bunch may wait for a part of it, so that is watched as well.
            if bunches == 0, workers == 0 || workers < HandlerPool.processors && waiting.count > HandlerPool.patience {
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
    /// How many may wait before another worker joins in.
    private static let patience = 8

    /// Has work done soon; never on this thread.
    package func schedule(_ work: any PooledWork) {
        answer(
            state.withLock { state in
                state.waiting.append(work)
                return state.need()
            })
    }

    /// Wakes nobody for what `bring` schedules until all of it is there. It has to return soon.
    package func together(_ bring: () -> Void) {
        state.withLock { $0.bunches += 1 }
        bring()
        answer(
            state.withLock { state in
                state.bunches -= 1
                return state.need()
            })
    }

    private func answer(_ need: Need) {
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

    /// Looks again in a millisecond, for as long as somebody waits.
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
