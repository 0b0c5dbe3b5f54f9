import Foundation
public import WebServiceCore

/// An interceptor that adds an `Idempotency-Key` to requests, which makes them retriable.
///
/// ```swift
/// service.interceptors = [.idempotencyKey(), .retry()]
/// ```
/// A server that supports the field processes only one of several requests with the same key
/// (draft-ietf-httpapi-idempotency-key-header-07). The key is a random UUID. All requests of an
/// exchange have the same key, regardless of which component sends them again. A request that
/// already has the field is not changed. A custom interceptor that sends several different requests
/// in one exchange must therefore set the field of each request.
///
/// In the list of interceptors, place this interceptor before a `RetryPolicy`, which by default
/// repeats a POST request only if it has a key or nothing of it was sent. In the other order,
/// requests fail with `WebServiceError.Code.interceptorOrder`.
///
/// All members may be used from any thread.
public struct IdempotencyKey: Interceptor {
    /// The methods whose requests receive a key.
    public let methods: Set<Request.Method>
    /// Whether the key is sent in quotation marks.
    public let isQuoted: Bool

    /// Creates an interceptor that adds an `Idempotency-Key`.
    ///
    /// - Parameters:
    ///   - methods: The methods whose requests receive a key. Defaults to POST and PATCH, which are
    ///     not idempotent.
    ///   - isQuoted: Whether the key is sent in quotation marks, as the draft requires. Some
    ///     services expect the key without quotation marks. Defaults to `true`.
    public init(for methods: Set<Request.Method> = [.POST, .PATCH], isQuoted: Bool = true) {
        self.methods = methods
        self.isQuoted = isQuoted
    }

    /// Adds a key and sends the request.
    ///
    /// - Throws: Any error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        var request = request
        if methods.contains(request.method), request.headers["Idempotency-Key"] == nil {
            let key = next.withValue(of: Self.self, UUID().uuidString.lowercased()) { $0 }
            request.headers["Idempotency-Key"] = isQuoted ? "\"\(key)\"" : key
        }
        return try await next(request)
    }
}

extension Interceptor where Self == IdempotencyKey {
    /// Returns an interceptor that adds an `Idempotency-Key`; see ``IdempotencyKey``.
    ///
    /// - Parameters:
    ///   - methods: The methods whose requests receive a key. Defaults to POST and PATCH.
    ///   - isQuoted: Whether the key is sent in quotation marks. Defaults to `true`.
    public static func idempotencyKey(
        for methods: Set<Request.Method> = [.POST, .PATCH], isQuoted: Bool = true
    ) -> IdempotencyKey {
        IdempotencyKey(for: methods, isQuoted: isQuoted)
    }
}
