import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The result of a typed request, produced outside its task and stored until the task's first step
/// reads it.
final class Answer<Value: Sendable>: Sendable {
    private let state = Mutex<Result<Value, any Error>?>(nil)

    func set(_ result: Result<Value, any Error>) {
        state.withLock { $0 = result }
    }

    var value: Value {
        get throws {
            // The task completes only after the result is set, so a missing result is unreachable.
            guard let result = state.withLock({ $0 }) else { throw URLError(.unknown) }
            return try result.get()
        }
    }
}
