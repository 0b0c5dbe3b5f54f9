import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The result of a request, with separate cases for errors and cancellation.
public enum ServiceResponse<Value: Sendable>: Sendable {
    /// The request succeeded with a value.
    case data(Value)
    /// The request failed with an error.
    case error(any Error)
    /// The request was cancelled.
    ///
    /// If `duplicate` is `true`, the request was not sent because an equal request was in flight.
    case canceledRequest(duplicate: Bool)

    /// Creates a response from a result.
    ///
    /// `URLError.cancelled` and `CancellationError` count as cancellations, and
    /// `WebServiceError.Code.duplicateRequest` counts as a duplicate.
    public init(_ result: Result<Value, any Error>) {
        switch result {
        case .success(let value): self = .data(value)
        case .failure(let error as URLError) where error.code == .cancelled: self = .canceledRequest(duplicate: false)
        case .failure(is CancellationError): self = .canceledRequest(duplicate: false)
        case .failure(let error as WebServiceError) where error.code == .duplicateRequest:
            self = .canceledRequest(duplicate: true)
        case .failure(let error): self = .error(error)
        }
    }

    /// The value; `nil` if there is none.
    public var data: Value? { if case .data(let value) = self { value } else { nil } }
    /// The error; `nil` if there is none or if the request was cancelled.
    public var error: (any Error)? { if case .error(let error) = self { error } else { nil } }
    /// Whether the request was cancelled or was a duplicate.
    public var isCanceled: Bool { if case .canceledRequest = self { true } else { false } }
    /// Whether the request was a duplicate.
    public var isDuplicate: Bool { if case .canceledRequest(duplicate: true) = self { true } else { false } }

    /// Returns a response with the value transformed.
    public func map<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> ServiceResponse<Other> {
        switch self {
        case .data(let value): .data(try transform(value))
        case .error(let error): .error(error)
        case .canceledRequest(let duplicate): .canceledRequest(duplicate: duplicate)
        }
    }

    /// Returns the response with its value cast to another type.
    ///
    /// If the value is not of that type, the result is an error with the code
    /// `WebServiceError.Code.unexpectedOutput`.
    public func convert<Other: Sendable>(to type: Other.Type = Other.self) -> ServiceResponse<Other> {
        switch self {
        case .data(let value as Other): .data(value)
        case .data(let value):
            .error(
                WebServiceError(.unexpectedOutput, "the value is of type \(Swift.type(of: value)) instead of \(type)"))
        case .error(let error): .error(error)
        case .canceledRequest(let duplicate): .canceledRequest(duplicate: duplicate)
        }
    }

    /// Returns the response with its value cast to the output type of the request.
    ///
    /// If the value is not of that type, the result is an error with the code
    /// `WebServiceError.Code.unexpectedOutput`.
    public func convert<Request: ServiceRequest>(for request: Request) -> ServiceResponse<Request.Output> {
        convert(to: Request.Output.self)
    }
}

extension TypedTask {
    /// The result of the task as a ``ServiceResponse``. Awaits the task as `result` does.
    public var serviceResponse: ServiceResponse<Value> {
        get async { ServiceResponse(await result) }
    }
}
