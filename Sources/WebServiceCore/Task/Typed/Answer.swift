import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The result of a typed task or of one of its steps, set before the handlers that read it run.
final class Answer<Value: Sendable>: Sendable {
    /// The value is stored with any type, because each access to a lock of a generic type costs
    /// several lookups of type metadata.
    private let state = Mutex<Result<any Sendable, any Error>?>(nil)

    func set(_ result: Result<Value, any Error>) {
        switch result {
        case .success(let value): state.withLock { $0 = .success(value) }
        case .failure(let error): state.withLock { $0 = .failure(error) }
        }
    }

    /// The value. All readers follow the setter, so a missing result is unreachable.
    var value: Value {
        get throws {
            switch state.withLock({ $0 }) {
            case .success(let value as Value): return value
            case .failure(let error): throw error
            default: throw URLError(.unknown)
            }
        }
    }

    /// The result; see ``value``.
    var result: Result<Value, any Error> { Result { try value } }

    /// The result; `nil` until it is set.
    var settled: Result<Value, any Error>? { state.withLock { $0 != nil } ? result : nil }
}
