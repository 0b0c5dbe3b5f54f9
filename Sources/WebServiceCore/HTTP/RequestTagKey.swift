/// The key of a tag, a value that accompanies a request and is not sent.
///
/// ```swift
/// enum Feature: RequestTagKey {
///     static let defaultValue = "unknown"
/// }
/// request.options[Feature.self] = "search"
/// ```
/// A tag can be read from the ``Request`` in interceptors, from the task and
/// ``WebServiceError/request``, and from ``ObservedExchange``. Redirects and retries preserve it.
public protocol RequestTagKey {
    /// The type of the value.
    associatedtype Value: Sendable

    /// The value for requests without this tag.
    static var defaultValue: Value { get }
}
