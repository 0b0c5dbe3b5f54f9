extension WebServiceError {
    /// Returns the error for a body that is longer than a limit in bytes.
    package static func tooLarge(
        _ maximum: Int, _ request: Request? = nil, _ response: Response? = nil
    ) -> WebServiceError {
        WebServiceError(
            .responseTooLarge, "the body of the response is longer than \(maximum) bytes", request: request,
            response: response.map { Response(body: nil, head: $0.head, source: $0.source) })
    }
}
