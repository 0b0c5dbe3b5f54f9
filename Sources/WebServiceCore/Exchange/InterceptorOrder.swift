/// An interceptor whose effect depends on its place in the list.
package protocol PlacedInterceptor: Interceptor {
    static var place: InterceptorPlace { get }
}

/// The interceptors whose order matters, by the expression that creates them.
package enum InterceptorPlace: String, Sendable {
    case connectivityWait = ".waitForConnectivity()"
    case idempotencyKey = ".idempotencyKey()"
    case retry = ".retry()"
    case hedging = ".hedging()"
    case endpoints = ".endpoints()"
    case circuitBreaker = ".circuitBreaker()"
    case rateLimit = ".rateLimit()"
    case concurrencyLimit = ".concurrencyLimit()"

    /// Returns the reason why this interceptor must precede another one; `nil` if both orders have
    /// a meaning.
    fileprivate func reason(toPrecede other: Self) -> String? {
        switch (self, other) {
        case (.idempotencyKey, .retry):
            "the retry policy would not see the Idempotency-Key, and would not send the request again"
        case (.connectivityWait, .hedging): "a wait for a network would count as a late response"
        case (.retry, .hedging): "a pause of the retry policy would count as a late response"
        case (.retry, .endpoints), (.hedging, .endpoints): "each attempt would be sent to the same endpoint"
        case (.hedging, .rateLimit), (.hedging, .concurrencyLimit): "the limiter would not count the second request"
        case (.endpoints, .circuitBreaker), (.endpoints, .rateLimit), (.endpoints, .concurrencyLimit):
            "the key would be the same for all endpoints"
        default: nil
        }
    }

    /// The reason why a list must not contain two interceptors of this kind; `nil` if it may.
    fileprivate var reasonToBeUnique: String? {
        switch self {
        case .retry: "the attempts of two retry policies would multiply"
        case .hedging: "the second requests of two hedging interceptors would multiply"
        case .connectivityWait: "the waits of two interceptors would add up"
        default: nil
        }
    }

    /// A Boolean value that indicates whether the interceptor of a request replaces that of the
    /// service.
    fileprivate var replacesOther: Bool { reasonToBeUnique != nil || [.idempotencyKey, .endpoints].contains(self) }
}

/// Interceptors in the order in which they wrap each other.
struct InterceptorList: Sendable {
    let interceptors: [any Interceptor]
    /// The reason why no request can be sent; `nil` if the order is correct.
    private let violation: String?

    init(_ interceptors: [any Interceptor]) {
        self.interceptors = interceptors
        violation = interceptors.count > 1 ? Self.violation(in: interceptors) : nil
    }

    /// Adds the interceptors of a request.
    ///
    /// They follow those of the service, with two exceptions. An interceptor that must be the only
    /// one of its kind replaces that of the service. One that must precede another one is inserted
    /// before it.
    func adding(_ others: [any Interceptor]) -> InterceptorList {
        guard !others.isEmpty else { return self }
        var (list, rest) = (interceptors, [any Interceptor]())
        var replaced: Set<InterceptorPlace> = []
        // The last one is added first, so that those that must precede it find it in the list.
        for interceptor in others.reversed() {
            let place = Self.place(of: interceptor)
            if let place, place.replacesOther, !replaced.contains(place),
                let index = list.firstIndex(where: { Self.place(of: $0) == place })
            {
                list[index] = interceptor
                replaced.insert(place)
            } else if let place,
                let index = list.firstIndex(where: { Self.place(of: $0).flatMap(place.reason(toPrecede:)) != nil })
            {
                list.insert(interceptor, at: index)
                replaced.insert(place)
            } else {
                rest.append(interceptor)
            }
        }
        return InterceptorList(list + rest.reversed())
    }

    /// Throws an error if the order is incorrect.
    ///
    /// - Throws: ``WebServiceError/Code/interceptorOrder``.
    func check(for request: Request) throws(WebServiceError) {
        guard let violation else { return }
        throw WebServiceError(.interceptorOrder, violation, request: request)
    }

    private static func place(of interceptor: any Interceptor) -> InterceptorPlace? {
        (interceptor as? any PlacedInterceptor).map { type(of: $0).place }
    }

    private static func violation(in interceptors: [any Interceptor]) -> String? {
        let places = interceptors.compactMap(place)
        for (index, place) in places.enumerated() {
            for earlier in places[..<index] {
                if earlier == place, let reason = place.reasonToBeUnique {
                    return "\(reason); use one \(place.rawValue) in the list of interceptors"
                }
                if let reason = place.reason(toPrecede: earlier) {
                    return "\(reason); place \(place.rawValue) before \(earlier.rawValue) in the list of interceptors"
                }
            }
        }
        return nil
    }
}

extension WebServiceError.Code {
    /// A request that was not sent because one of its interceptors has no effect at its place in
    /// the list, or because two of them would multiply the requests. The message specifies the
    /// correct order.
    public static let interceptorOrder = WebServiceError.Code("interceptorOrder")
}
