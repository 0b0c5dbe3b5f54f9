extension Request {
    /// The priority of a request (``Options/priority``).
    public enum Priority: Sendable, Hashable {
        /// After other requests, for example for a prefetch.
        case low
        /// The default.
        case normal
        /// Before other requests.
        case high

        /// The weight of an HTTP/2 stream, from 1 to 256 (RFC 7540, section 5.3.2).
        package var streamWeight: Int {
            switch self {
            case .low: 1
            case .normal: 16
            case .high: 256
            }
        }
    }
}
