/// Hears of answers to typed requests that were performed or read with a delegate. Held weakly.
public protocol ServiceDelegate: AnyObject, Sendable {
    /// There is an answer. Called once for each request, on the main actor.
    ///
    /// - Parameters:
    ///   - response: What came of it; ``ServiceResponse/convert(for:)`` gives it the request's type.
    ///   - request: The request.
    ///   - key: The key that the request was performed with; `nil` without one.
    ///   - isFromStorage: Whether a storage was read.
    @MainActor
    func serviceDidAnswer(
        _ response: ServiceResponse<any Sendable>, to request: any ServiceRequest, key: (any Hashable & Sendable)?, isFromStorage: Bool
    )
}
