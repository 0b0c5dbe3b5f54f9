import WebServiceCore

extension ResponseCache {
    /// The counts of a cache since its creation.
    ///
    /// Every GET or HEAD request that does not bypass the cache is a hit, a revalidation or a miss,
    /// including those that the cache sends in the background.
    public struct Statistics: Sendable, Hashable {
        /// The number of requests served with a stored response without validation, including stale
        /// responses that their own directives or those of the request permit.
        public internal(set) var hits = 0
        /// The number of requests served with a stored response after the server validated it.
        public internal(set) var revalidations = 0
        /// The number of requests with a new response from the server, or with no response.
        public internal(set) var misses = 0
        /// The number of responses that were stored, including those that were updated by a
        /// validation.
        public internal(set) var stores = 0
        /// The number of responses that were removed because there were more than 8 for one URL
        /// and method, and of bodies that were removed to meet the limit of the ``BodyFolder``.
        ///
        /// Responses that the storage removes to meet its limits are not included.
        public internal(set) var evictions = 0
        /// The number of failures of the storage.
        public internal(set) var storageFailures = 0
    }

    /// The counts of the cache since its creation.
    public var statistics: Statistics { state.withLock { $0.statistics } }

    /// Counts the response to a request.
    func count(_ source: Response.Source) {
        state.withLock { state in
            switch source {
            case .cache: state.statistics.hits += 1
            case .revalidated: state.statistics.revalidations += 1
            default: state.statistics.misses += 1
            }
        }
    }

    /// Counts responses that were stored.
    func count(_ changes: (insertions: Int, evictions: Int)) {
        state.withLock { state in
            state.statistics.stores += changes.insertions
            state.statistics.evictions += changes.evictions
        }
    }
}
