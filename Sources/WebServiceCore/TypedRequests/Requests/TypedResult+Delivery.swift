extension TypedResult {
    /// Stores the result of a flight and completes the task.
    ///
    /// - Returns: Whether this is the first result of the task.
    func take(_ delivery: RequestRegistry.Delivery, _ task: SessionTask, isJoined: Bool) -> Bool {
        set(
            delivery.result.flatMap { value in
                (value as? Value).map { .success($0) }
                    ?? .failure(
                        WebServiceError(
                            .unexpectedOutput,
                            "the shared value is not of type \(Value.self); give the two requests different keys"))
            })
        if let exchange = delivery.exchange { task.takeOver(exchange.record) }
        return task.complete(
            delivery.response.map { response in
                var response = response
                if isJoined { response.source = .joined }
                return response
            })
    }
}
