import WebServiceCore

extension ResponseCache {
    /// The counts of a cache since its creation.
    ///
    /// GET, HEAD and QUERY requests that do not bypass the cache count as hits, revalidations or
    /// misses. This includes requests that the cache sends in the background.
    public struct Statistics: Sendable, Hashable {
        /// The number of requests that received a stored response without validation. This includes
        /// stale responses whose use is permitted.
        public internal(set) var hits = 0
        /// The number of requests that received a stored response after the server had validated
        /// it, or status 304 from the server.
        public internal(set) var revalidations = 0
        /// The number of requests that received a new response from the server, or no response.
        public internal(set) var misses = 0
        /// The number of stored responses, including those that a validation updated.
        public internal(set) var stores = 0
        /// The number of removed responses and bodies. Responses are removed when there are more
        /// than 8 for one URL and method, and bodies are removed when the ``BodyFolder`` exceeds
        /// its limit.
        ///
        /// Responses that the storage removes to stay within its own limits are not included.
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

    /// Counts stored and evicted responses.
    func count(_ changes: (insertions: Int, evictions: Int)) {
        state.withLock { state in
            state.statistics.stores += changes.insertions
            state.statistics.evictions += changes.evictions
        }
    }
}
