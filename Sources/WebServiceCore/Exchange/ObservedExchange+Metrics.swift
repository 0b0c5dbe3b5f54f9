extension ObservedExchange {
    /// The metrics of one exchange that has ended (``Observer/metrics(_:)``).
    public struct Metrics: Sendable {
        /// The exchange, with the method, the URL and the tags of its request.
        public let exchange: ObservedExchange
        /// The duration from `resume()` to the result.
        public let duration: Duration
        /// The number of attempts, including those of retries and redirects.
        public let attempts: Int
        /// The status of the response; `nil` after an error and without an HTTP response.
        public let status: Int?
        /// The kind of the error without its values, such as `URLError -1004`; `nil` for a
        /// response.
        public let failure: String?
        /// The source of the response; `nil` after an error.
        public let source: Response.Source?
        /// The number of bytes of the response body; 0 for a streamed body.
        public let byteCount: Int
        /// The metrics of the session for the last attempt; `nil` if it measures nothing.
        public let transport: TransportMetrics?
    }
}
