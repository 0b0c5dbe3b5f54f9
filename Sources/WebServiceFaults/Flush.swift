import Dispatch
import Foundation
import WebServiceCore

/// An object that waits until code that the test clock does not count, such as an unstructured
/// `Task` or code on the main actor, has had a turn to run.
final class Flush: Sendable {
    private struct State {
        /// Whether the main thread has run a job of the main queue; `nil` before the first attempt.
        var servesMain: Bool?
        /// The number of consecutive waits in which a thread did not meet all others.
        var failedMeetings = 0
    }

    private let state = Mutex(State())
    private static let processors = max(2, ProcessInfo.processInfo.activeProcessorCount)

    /// Lets the main actor and the global executor run their pending jobs, and waits until no
    /// thread of the global executor runs another job.
    func round() {
        let end = ThreadSignal()
        let tasks: @Sendable () -> Void = { [self] in
            let meeting = DispatchGroup()
            for _ in 0..<Self.processors { meeting.enter() }
            // A preempted thread arrives late, and a missing thread never arrives.
            let patience = state.withLock { $0.failedMeetings < 3 ? 100 : 1 }
            for _ in 0..<Self.processors {
                // Each job occupies a thread until all others have arrived.
                Task.detached {
                    meeting.leave()
                    let hasMet = meeting.wait(timeout: .now() + .milliseconds(patience)) == .success
                    self.state.withLock { $0.failedMeetings = hasMet ? 0 : $0.failedMeetings + 1 }
                    end.signal()
                }
            }
            DispatchQueue.global().async { end.signal() }
        }
        let servesMain = state.withLock { $0.servesMain }
        var isServed = false
        if servesMain != false {
            let main = ThreadSignal()
            DispatchQueue.main.async {
                tasks()
                main.signal()
            }
            // A main thread that never runs its queue belongs to a program that blocks it.
            isServed = main.wait(milliseconds: servesMain == nil ? 500 : 10_000)
            state.withLock { $0.servesMain = isServed }
        }
        if !isServed { tasks() }
        for _ in 0...Self.processors where !end.wait(milliseconds: 10_000) { return }
    }
}
