import WebServiceCore

extension CurlSession {
    /// The executor of an event loop, for Swift tasks that send requests and compute little.
    ///
    /// A task that prefers this executor runs on the thread that receives its responses, so no
    /// thread is woken to send a request or to continue after a response. Use it for gateways,
    /// workers and command-line tools:
    ///
    /// ```swift
    /// let offers = await Task(executorPreference: session.executor) {
    ///     await withTaskGroup(of: Offer?.self) { group in
    ///         for shop in shops {  // services over the session
    ///             group.addTask { try? await shop.GET("/offers/7").decode(Offer.self).value }
    ///         }
    ///         return await group.reduce(into: [Offer]()) { offers, offer in
    ///             if let offer { offers.append(offer) }
    ///         }
    ///     }
    /// }.value
    /// ```
    /// - Code on the executor must not block or compute for long, because all requests of the loop
    ///   have to wait in the meantime. Code that blocks until one of these requests completes never
    ///   returns. A debug build reports on standard error if a task runs for more than 50 ms
    ///   without suspending.
    /// - Child tasks, actors without a custom executor, observers, and steps without closures, such
    ///   as `decode`, also run on the executor. Handlers, steps with closures, interceptors, the
    ///   main actor and tasks created with `Task { … }` do not (`Documentation/Concurrency.md`).
    /// - If the session has several loops (``Configuration/loops``), successive accesses return the
    ///   executors of the loops in turn. On the thread of a loop, an access returns the executor of
    ///   that loop. A task stays on its loop. Its requests are sent by the same loop, except those
    ///   with interceptors or a body provider.
    /// - When the session is closed and its loop has ended, the tasks continue on the handler pool.
    ///   Their requests fail with `WebServiceError.Code.sessionClosed`.
    public var executor: any TaskExecutor { nextLoop().taskExecutor }
}
