import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What was made for one task elsewhere, until its first step takes it.
final class Answer<Value: Sendable>: Sendable {
    private let state = Mutex<Result<Value, any Error>?>(nil)

    func set(_ result: Result<Value, any Error>) {
        state.withLock { $0 = result }
    }

    var value: Value {
        get throws {
            // The task is completed after the answer was set, so that there is none cannot be.
            guard let result = state.withLock({ $0 }) else { throw URLError(.unknown) }
            return try result.get()
        }
    }

    /// Takes what a flight brought.
    ///
    /// - Returns: Whether the task had no outcome before.
    func take(_ delivery: RequestRegistry.Delivery, _ task: SessionTask, isJoined: Bool) -> Bool {
        set(
            delivery.result.flatMap { value in
                (value as? Value).map { .success($0) } ?? .failure(WebServiceError(.unexpectedOutput, "the value is not a \(Value.self)"))
            })
        if let exchange = delivery.exchange { task.takeOver(exchange) }
        return task.complete(
            delivery.response.map { response in
                var response = response
                if isJoined { response.source = .joined }
                return response
            })
    }
}
