public import WebServiceCore

/// The checks of the order of interceptors. If an interceptor has no effect at its place in the
/// list, requests fail.
extension Next {
    /// Throws an error if another interceptor precedes this one.
    ///
    /// - Parameters:
    ///   - own: The expression that creates this interceptor, such as `.hedging()`.
    ///   - other: The type of the other interceptor, and the expression that creates it.
    ///   - reason: The reason why this interceptor must precede the other one.
    func require<Other: Interceptor>(
        _ own: String, before other: (type: Other.Type, name: String), because reason: String, _ request: Request
    ) throws(WebServiceError) {
        guard isPreceded(by: other.type) else { return }
        throw .order(reason, first: own, second: other.name, request)
    }

    /// Throws an error if another interceptor follows this one.
    func require<Other: Interceptor>(
        _ own: String, after other: (type: Other.Type, name: String), because reason: String, _ request: Request
    ) throws(WebServiceError) {
        guard isFollowed(by: other.type) else { return }
        throw .order(reason, first: other.name, second: own, request)
    }
}

extension WebServiceError {
    fileprivate static func order(_ reason: String, first: String, second: String, _ request: Request) -> Self {
        WebServiceError(
            .interceptorOrder, "\(reason); place \(first) before \(second) in the list of interceptors",
            request: request)
    }
}

extension WebServiceError.Code {
    /// A request that was not sent because its interceptors are in an order in which one of them
    /// has no effect. The message specifies the correct order.
    public static let interceptorOrder = WebServiceError.Code("interceptorOrder")
}
