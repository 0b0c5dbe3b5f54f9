import Foundation
public import WebServiceCore

/// An interceptor that adds an `Idempotency-Key` to requests, which makes them retriable.
///
/// ```swift
/// service.interceptors = [.idempotencyKey(), .retry()]
/// ```
/// A server that supports the field processes only one of several requests with the same key
/// (draft-ietf-httpapi-idempotency-key-header-07). The key is a random UUID. It is the same for all
/// attempts of a request, so this interceptor precedes the `RetryPolicy` in the list. A request
/// that already has the field is not changed.
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
    /// - Throws: `WebServiceError.Code.interceptorOrder` if a `RetryPolicy` precedes this
    ///   interceptor, because each attempt would have its own key; and any error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        try next.require(
            ".idempotencyKey()", before: (RetryPolicy.self, ".retry()"),
            because: "each attempt of the retry policy would have its own Idempotency-Key", request)
        var request = request
        if methods.contains(request.method), request.headers["Idempotency-Key"] == nil {
            let key = UUID().uuidString.lowercased()
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
