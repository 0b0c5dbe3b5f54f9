package import WebServiceCore

extension ConnectivityWait: PlacedInterceptor {
    package static var place: InterceptorPlace { .connectivityWait }
}

extension IdempotencyKey: PlacedInterceptor {
    package static var place: InterceptorPlace { .idempotencyKey }
}

extension Coalescing: PlacedInterceptor {
    package static var place: InterceptorPlace { .coalescing }
}

extension Hedging: PlacedInterceptor {
    package static var place: InterceptorPlace { .hedging }
}

extension EndpointGroup: PlacedInterceptor {
    package static var place: InterceptorPlace { .endpoints }
}

extension CircuitBreaker: PlacedInterceptor {
    package static var place: InterceptorPlace { .circuitBreaker }
}

extension RateLimiter: PlacedInterceptor {
    package static var place: InterceptorPlace { .rateLimit }
}

extension ConcurrencyLimiter: PlacedInterceptor {
    package static var place: InterceptorPlace { .concurrencyLimit }
}
