import Foundation
import Synchronization
import WebServiceCore

/// The loops whose threads run in this process.
///
/// In `exit()`, the TLS library frees its state. A thread that uses TLS at that time would crash,
/// so the threads of all loops are stopped first.
final class RunningLoops: Sendable {
    private struct State {
        var loops: [ObjectIdentifier: CurlLoop] = [:]
        var isExiting = false
    }

    /// The maximum duration for which `exit()` waits for the threads, in nanoseconds.
    private static let maximumWait: UInt64 = 1_000_000_000

    private static let perProcess = PerProcess { _ in RunningLoops() }
    /// Exit handlers are called in reverse order, so the handler is registered after those of the
    /// TLS library.
    private static let isRegistered = atexit { perProcess.value.stop() } == 0

    private let state = Lock(State())

    /// Runs the body on the thread of a loop. libcurl must have been initialized.
    static func run(_ loop: CurlLoop, _ body: () -> Void) {
        _ = isRegistered
        let loops = perProcess.value
        let isExiting = loops.state.withLock { state in
            state.loops[ObjectIdentifier(loop)] = loop
            return state.isExiting
        }
        if isExiting { loop.park() }
        body()
        loops.state.withLock { $0.loops[ObjectIdentifier(loop)] = nil }
    }

    private func stop() {
        let loops = state.withLock { state -> [CurlLoop]? in
            state.isExiting = true
            return state.loops.isEmpty ? nil : Array(state.loops.values)
        }
        // In a forked process, the locks of the Swift runtime may be held forever.
        guard let loops else { return }
        for loop in loops { loop.beginPark() }
        let end = TaskClock.system.now + Self.maximumWait
        for loop in loops {
            let now = TaskClock.system.now
            loop.waitUntilParked(milliseconds: Int((end - min(now, end)) / 1_000_000))
        }
    }
}
