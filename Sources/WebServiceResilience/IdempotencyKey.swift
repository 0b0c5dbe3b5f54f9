import Foundation
public import WebServiceCore

/// An interceptor that adds an `Idempotency-Key` to requests, which makes them retriable.
///
/// ```swift
/// service.interceptors = [.idempotencyKey(), .retry()]
/// ```
/// A server that supports the field processes only one of several requests with the same key
/// (draft-ietf-httpapi-idempotency-key-header-07). The key is a random UUID. An exchange has one
/// key, which all of its requests have, regardless of what sends them again. A request that already
/// has the field is not changed: a custom interceptor that sends several different requests in one
/// exchange sets the field of each.
///
/// In the list of interceptors, place it before a `RetryPolicy`, which repeats a POST request only
/// if it has a key or nothing of it was sent. In the other order, requests fail with
/// `WebServiceError.Code.interceptorOrder`.
///
/// All members may be used from any thread.
public struct IdempotencyKey: Interceptor {
    /// The methods whose requests receive a key.
    public let methods: Set<Request.Method>
    /// A Boolean value that indicates whether the key is sent in quotation marks.
    public let isQuoted: Bool

    /// Creates an interceptor.
    ///
    /// - Parameters:
    ///   - methods: The methods whose requests receive a key. Defaults to POST and PATCH, the
    ///     standard methods that are not idempotent.
    ///   - isQuoted: Whether the key is sent in quotation marks, as the draft requires. Some
    ///     services expect it without. Defaults to `true`.
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
