/// The exchanges in flight, and their cancellation.
extension WebService {
    /// The exchanges in flight, in the order in which they began.
    ///
    /// They include requests, uploads, downloads, typed requests, reads of a storage, streams until
    /// the end of their body, and event streams that wait for their next connection.
    ///
    /// A task is in flight from `resume()` until it has a result. Its handlers may run afterwards.
    /// Requests that are parts of a download or a typed request are not listed separately.
    public var exchanges: [InFlightExchange] {
        core.workInFlight.compactMap(\.snapshot)
    }

    /// The exchanges in flight now, and again whenever one begins or ends.
    ///
    /// A slow reader skips earlier elements and receives the newest one. Progress does not produce
    /// an element. The sequence ends when the reading Swift task is cancelled or the service is
    /// deallocated.
    public var exchangeUpdates: AsyncStream<[InFlightExchange]> {
        let changes = core.changes
        return AsyncStream { [weak core] in
            for await _ in changes {
                guard let core else { return nil }
                return core.workInFlight.compactMap(\.snapshot)
            }
            return nil
        }
    }

    /// Cancels all exchanges in flight.
    ///
    /// Each task ends with `URLError.cancelled`, unless it already has a result, and the reader of
    /// each stream receives the same error. Tasks that other threads create or resume during the
    /// call may be missed; ``invalidate()`` refuses them. Asynchronous steps, such as `mapAsync`,
    /// continue if their task already has a result.
    public func cancelAll() {
        // Later work is cancelled first, so that a queued request does not start when the one
        // before it is cancelled.
        for work in core.workInFlight.reversed() { work.cancel() }
    }

    /// Cancels the exchanges in flight that satisfy a predicate; see ``cancelAll()``.
    ///
    /// - Parameter predicate: A closure that returns whether to cancel an exchange. It is called on
    ///   the calling thread, once for each exchange.
    public func cancelAll(where predicate: (InFlightExchange) throws -> Bool) rethrows {
        for work in core.workInFlight.reversed() {
            if let snapshot = work.snapshot, try predicate(snapshot) { work.cancel() }
        }
    }

    /// Cancels all exchanges in flight and refuses further ones.
    ///
    /// A task that is resumed later fails with ``WebServiceError/Code/serviceInvalidated``. A clone
    /// is not affected.
    public func invalidate() {
        core.invalidate()
        cancelAll()
    }
}
