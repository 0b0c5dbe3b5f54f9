/// The key of a tag: a value of a custom type that accompanies a request and is not sent.
///
/// ```swift
/// enum Feature: RequestTagKey {
///     static let defaultValue = "unknown"
/// }
/// request.options[Feature.self] = "search"
/// ```
/// A tag can be read wherever the ``Request`` is available: in interceptors, the task and
/// ``WebServiceError/request``. Redirects and retries preserve it.
public protocol RequestTagKey {
    /// The type of the value.
    associatedtype Value: Sendable

    /// The value for requests without this tag.
    static var defaultValue: Value { get }
}
