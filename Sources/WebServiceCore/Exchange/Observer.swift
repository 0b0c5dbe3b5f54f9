/// An observer of a service's exchanges: requests, responses, decisions and results.
///
/// ```swift
/// struct FailureCounter: Observer {
///     let failures = Counter()
///
///     func observe(_ event: ExchangeEvent) {
///         if case .ended(let summary) = event.kind, case .failure = summary.result { failures.add(1) }
///     }
/// }
/// service.observers = [FailureCounter()]
/// ```
/// ``WebService/observers`` contains the observers of a service, which retains them. An observer
/// cannot change requests or responses; interceptors and the ``ServicePassthroughDelegate`` can.
/// Without observers, no event is created.
public protocol Observer: Sendable {
    /// Receives one event.
    ///
    /// The events of one exchange are delivered one after another, in the order in which they
    /// occurred. Events of different exchanges are delivered concurrently. Each observer of the
    /// service receives an event before the next event of the exchange is delivered.
    ///
    /// Called without a lock, usually on the thread on which the event occurred
    /// (`Documentation/Concurrency.md`). This can be any thread, including the main thread if a
    /// task is resumed there. It is the event loop of a session only for a Swift task on the
    /// executor of that session, where a slow observer delays all requests of the loop. Otherwise,
    /// a slow observer delays only the exchange of the event. An observer can use the service and
    /// its tasks, for example to cancel one. An observer must not wait for that exchange.
    func observe(_ event: ExchangeEvent)

    /// The number of bytes of a streamed body that the observer receives
    /// (``ExchangeEvent/Kind/bodyReceived(_:)``).
    ///
    /// All observers of a service receive as many bytes as the largest of their limits. The
    /// property is read when a task is resumed. Defaults to 0.
    var streamedBodyLimit: Int { get }
}

extension Observer {
    /// 0: the observer receives no bytes of streamed bodies.
    public var streamedBodyLimit: Int { 0 }
}
