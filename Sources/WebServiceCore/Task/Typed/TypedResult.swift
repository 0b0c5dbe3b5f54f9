import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The result of a typed task or of one of its steps, set before the handlers that read it run.
/// Only the first result counts.
final class TypedResult<Value: Sendable>: Sendable {
    private let settlement = AtomicLazyReference<Settlement>()

    /// - Returns: Whether this is the first result.
    @discardableResult
    func set(_ result: Result<Value, any Error>) -> Bool {
        let new = Settlement(result.map { $0 })
        return settlement.storeIfNil(new) === new
    }

    /// The value. Readers run after the result is set, so a missing result is unreachable.
    var value: Value {
        get throws {
            switch settlement.load()?.result {
            case .success(let value as Value): return value
            case .failure(let error): throw error
            default: throw URLError(.unknown)
            }
        }
    }

    /// The result; see ``value``.
    var result: Result<Value, any Error> { Result { try value } }

    /// The result; `nil` until it is set.
    var settled: Result<Value, any Error>? { settlement.load() == nil ? nil : result }
}

/// A result whose type is erased, because each access to a generic class costs several lookups of
/// type metadata.
private final class Settlement: Sendable {
    let result: Result<any Sendable, any Error>

    init(_ result: Result<any Sendable, any Error>) { self.result = result }
}
