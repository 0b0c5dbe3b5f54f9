import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What came of a request, for those who want one `switch`.
public enum ServiceResponse<Value: Sendable>: Sendable {
    /// The value.
    case data(Value)
    /// Why there is none.
    case error(any Error)
    /// The request was cancelled, or, where `duplicate` is true, not performed because the same one was under way.
    case canceledRequest(duplicate: Bool)

    /// Sorts a result: `URLError.cancelled` and `CancellationError` are cancellations, ``WebServiceError/Code/duplicateRequest`` is a duplicate.
    public init(_ result: Result<Value, any Error>) {
        switch result {
        case .success(let value): self = .data(value)
        case .failure(let error as URLError) where error.code == .cancelled: self = .canceledRequest(duplicate: false)
        case .failure(is CancellationError): self = .canceledRequest(duplicate: false)
        case .failure(let error as WebServiceError) where error.code == .duplicateRequest: self = .canceledRequest(duplicate: true)
        case .failure(let error): self = .error(error)
        }
    }

    /// The value; `nil` without one.
    public var data: Value? { if case .data(let value) = self { value } else { nil } }
    /// The error; `nil` without one, and for cancelled requests.
    public var error: (any Error)? { if case .error(let error) = self { error } else { nil } }
    /// Whether the request was cancelled or a duplicate.
    public var isCanceled: Bool { if case .canceledRequest = self { true } else { false } }
    /// Whether the request was a duplicate.
    public var isDuplicate: Bool { if case .canceledRequest(duplicate: true) = self { true } else { false } }

    /// The same with a value made of this one.
    public func map<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> ServiceResponse<Other> {
        switch self {
        case .data(let value): .data(try transform(value))
        case .error(let error): .error(error)
        case .canceledRequest(let duplicate): .canceledRequest(duplicate: duplicate)
        }
    }

    /// The same with a value of another type; ``WebServiceError/Code/unexpectedOutput`` when it is not of that type.
    public func convert<Other: Sendable>(to type: Other.Type = Other.self) -> ServiceResponse<Other> {
        switch self {
        case .data(let value as Other): .data(value)
        case .data(let value): .error(WebServiceError(.unexpectedOutput, "the value is a \(Swift.type(of: value)), not a \(type)"))
        case .error(let error): .error(error)
        case .canceledRequest(let duplicate): .canceledRequest(duplicate: duplicate)
        }
    }

    /// The same with a value of the request's output type; ``WebServiceError/Code/unexpectedOutput`` when it is not of that type.
    public func convert<Request: ServiceRequest>(for request: Request) -> ServiceResponse<Request.Output> {
        convert(to: Request.Output.self)
    }
}

extension TypedTask {
    /// What came of it, once it is there; like ``result``.
    public var serviceResponse: ServiceResponse<Value> {
        get async { ServiceResponse(await result) }
    }
}
