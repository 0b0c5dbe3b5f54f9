import Foundation

/// The reply of a session to one request. The first result counts: a late, second or missing one
/// has no effect and delays nobody.
final class SessionReply: Sendable {
    struct Value: Sendable {
        let result: Result<Response, any Error>
        var metrics: TransportMetrics?
    }

    private struct State {
        var value: Value?
        var isAbandoned = false
        var call: (any DataTask)?
        var reader: CheckedContinuation<Void, Never>?
        var isOver: Bool { isAbandoned || value != nil }
    }

    private let state = Mutex(State())

    /// Called by the session, on any thread.
    func set(_ value: Value) {
        let (reader, call) = state.withLock { state -> (CheckedContinuation<Void, Never>?, (any DataTask)?) in
            guard !state.isOver else { return (nil, nil) }
            state.value = value
            return (state.reader.take(), state.call.take())
        }
        withExtendedLifetime(call) {}
        reader?.resume()
    }

    /// Resumes a task of the session and waits for its result.
    ///
    /// - Returns: The result; `nil` if the reply is abandoned first or the Swift task is cancelled.
    func value(of call: any DataTask) async -> Value? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { reader in
                let (isNeeded, isAbandoned) = state.withLock { state in
                    if !state.isOver { (state.call, state.reader) = (call, reader) }
                    return (!state.isOver, state.isAbandoned)
                }
                // A session may complete within `resume()`, or even before it.
                if isNeeded { return call.resume() }
                if isAbandoned { call.cancel() }
                reader.resume()
            }
        } onCancel: {
            abandon()
        }
        // Read under the lock, because the thread sanitizer does not see the order that a
        // continuation establishes.
        return state.withLock { $0.value }
    }

    /// Ends the wait and cancels the task of the session.
    func abandon() {
        let (reader, call) = state.withLock { state -> (CheckedContinuation<Void, Never>?, (any DataTask)?) in
            guard !state.isOver else { return (nil, nil) }
            state.isAbandoned = true
            return (state.reader.take(), state.call.take())
        }
        call?.cancel()
        reader?.resume()
    }
}
