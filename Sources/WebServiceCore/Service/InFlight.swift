import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A snapshot of an exchange in flight. It does not retain any body.
///
/// ``WebService/exchanges`` returns the snapshots of a service, and
/// ``WebService/cancelAll(where:)`` passes them to its closure.
public struct InFlightExchange: Sendable, Identifiable {
    /// The kind of an exchange.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String

        /// A request whose response is received as a whole.
        public static let request = Kind(description: "request")
        /// A request whose body is a file, a stream or a multipart form.
        public static let upload = Kind(description: "upload")
        /// A streamed response, until the end of its body.
        public static let stream = Kind(description: "stream")
        /// An event stream or a `ReconnectingWebSocket` that waits for its next connection.
        public static let reconnection = Kind(description: "reconnection")
        /// A download to a file.
        public static let download = Kind(description: "download")
        /// A typed request, or the read of its stored value.
        public static let typedRequest = Kind(description: "typed request")
    }

    /// The identifier, unique among the exchanges in flight.
    public let id: ObjectIdentifier
    /// The kind of the exchange, such as a request, a download or a stream.
    public let kind: Kind
    /// The request without its body; `nil` for most typed requests.
    public let request: Request?
    /// The type of a typed request, also for a task that `sessionTask(request:)` creates from one;
    /// `nil` for any other exchange and for a stream after its head.
    public let type: (any Sendable.Type)?
    /// The state of the task; `.running` for a stream after its head.
    public let state: DataTaskState
    /// The progress of the transfer that was reported last.
    ///
    /// The value is `nil` before a request is sent. Unless the task has a progress handler, the
    /// value is also `nil` between attempts and for a request whose exchange may be shared.
    public let progress: TransferProgress?

    init(
        _ work: any InFlightWork, _ kind: Kind, _ request: Request?, type: (any Sendable.Type)? = nil,
        state: DataTaskState = .running, progress: TransferProgress? = nil
    ) {
        id = work.workID
        self.kind = kind
        self.request = request?.withoutBody
        self.type = type
        self.state = state
        self.progress = progress
    }

    /// The value of one of the request's tags.
    ///
    /// If the request does not have the tag, the value is the ``RequestTagKey/defaultValue`` of its
    /// key.
    public subscript<Key: RequestTagKey>(key: Key.Type) -> Key.Value {
        request?.options[key] ?? Key.defaultValue
    }
}

/// Work that can be cancelled, from any thread and more than once.
package protocol Cancellable: Sendable {
    func cancel()
}

extension Task: Cancellable {}

/// Work of a service that ``WebService/cancelAll()`` ends.
protocol InFlightWork: AnyObject, Cancellable {
    /// The identifier of the exchange.
    var workID: ObjectIdentifier { get }
    /// The snapshot; `nil` while the list contains other work that represents the exchange.
    var snapshot: InFlightExchange? { get }
}

/// The work in flight of one service, in the order in which it began.
struct InFlight: Sendable {
    private enum Entry: Sendable {
        case retained(any InFlightWork)
        /// A stream or event stream, which ends when its reader releases it.
        case unretained(WeakWork)
    }

    private struct WeakWork: Sendable {
        weak var work: (any InFlightWork)?
    }

    private var entries: [ObjectIdentifier: (order: UInt64, entry: Entry)] = [:]
    private var last: UInt64 = 0
    private var isInvalidated = false
    private var isFinishing = false
    var observers = ChangeObservers<Void>()

    /// The observers to notify of a change, and the work to release, both outside the lock.
    struct Change {
        fileprivate var observers: [ChangeObservers<Void>.Observer] = []
        fileprivate var released: (any InFlightWork)?

        func notify() {
            for observer in observers { observer.yield() }
        }
    }

    /// The work, oldest first.
    var ordered: [any InFlightWork] {
        entries.values.sorted { $0.order < $1.order }.compactMap { _, entry in
            switch entry {
            case .retained(let work): work
            case .unretained(let reference): reference.work
            }
        }
    }

    /// - Throws: ``WebServiceError/Code/serviceInvalidated``.
    mutating func begin(_ work: any InFlightWork, isRetained: Bool = true) throws(WebServiceError) -> Change {
        try checkAccepts()
        last += 1
        let entry = isRetained ? Entry.retained(work) : .unretained(WeakWork(work: work))
        entries[work.workID] = (last, entry)
        return change
    }

    /// Lists a stream in place of its task, unless the stream has ended.
    mutating func replace(_ task: any InFlightWork, with stream: any InFlightWork) {
        if entries[task.workID] != nil { entries[task.workID]?.entry = .unretained(WeakWork(work: stream)) }
    }

    mutating func end(_ id: ObjectIdentifier) -> Change {
        guard let entry = entries.removeValue(forKey: id)?.entry else { return Change() }
        guard case .retained(let work) = entry else { return change }
        return Change(observers: change.observers, released: work)
    }

    mutating func invalidate() { isInvalidated = true }

    /// Refuses work, except the refresh of a credential.
    mutating func finish() { isFinishing = true }

    /// - Throws: ``WebServiceError/Code/serviceInvalidated``.
    func checkValid() throws(WebServiceError) {
        if isInvalidated { throw Self.refusal }
    }

    /// - Throws: ``WebServiceError/Code/serviceInvalidated``, also while the service is finishing.
    ///   The refresh of a credential is then still accepted, because the exchanges in flight may
    ///   wait for it.
    func checkAccepts() throws(WebServiceError) {
        if isInvalidated || isFinishing && Refresh.current.isEmpty { throw Self.refusal }
    }

    private static var refusal: WebServiceError {
        WebServiceError(
            .serviceInvalidated,
            "the service was invalidated or is finishing and sends no further requests; create another WebService")
    }

    /// A change for all observers, without work to release.
    var change: Change { Change(observers: observers.all) }
}

/// The exchanges in flight, and their cancellation.
extension WebService {
    /// The exchanges in flight, in the order in which they began.
    ///
    /// They include requests, uploads, downloads, typed requests, reads of a storage, streams until
    /// the end of their body, and event streams and WebSockets that wait for their next connection.
    ///
    /// A task is in flight from `resume()` until it has a result. Its handlers may run afterwards.
    /// Requests that are parts of a download or a typed request are not listed separately.
    public var exchanges: [InFlightExchange] {
        core.workInFlight.compactMap(\.snapshot)
    }

    /// A sequence of the exchanges in flight, with one element at the start and one whenever an
    /// exchange begins or ends.
    ///
    /// A slow reader skips earlier elements and receives the newest one. Progress does not produce
    /// an element. The sequence ends when the reading Swift task is cancelled or the service and
    /// its tasks are deallocated.
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
    /// Each task that has no result yet ends with `URLError.cancelled`, and the reader of each
    /// stream receives the same error. Tasks that other threads create or resume during the call
    /// might not be cancelled; ``invalidate()`` refuses such tasks. Asynchronous steps, such as
    /// `mapAsync`, continue if their task already has a result.
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

    /// Refuses further exchanges, and waits until those in flight and their handlers have ended.
    /// When the limit is reached, cancels the exchanges that are still in flight.
    ///
    /// Call this method when the program ends, for example in a SIGTERM handler, after the program
    /// has stopped accepting work:
    /// ```swift
    /// if await !service.finish(within: .seconds(20)) { logger.warning("requests were cancelled") }
    /// ```
    /// - After the call, every task that is resumed, even by a handler, fails with
    ///   ``WebServiceError/Code/serviceInvalidated``. An event stream ends with the same error
    ///   instead of reconnecting. The exchanges in flight continue, including their retries,
    ///   redirects, refreshes of credentials, parts of downloads and uploads, and endpoints of
    ///   typed requests. Requests of custom interceptors count as further exchanges; send them with
    ///   a separate service.
    /// - A stream is in flight until its reader has received the end of the body or released the
    ///   stream. The method waits for handlers that were added before the result arrived. It does
    ///   not wait for code that follows an `await` of a result.
    /// - When the limit is reached or the calling Swift task is cancelled, exchanges end as they do
    ///   after ``invalidate()``, and the method does not wait for handlers. If the session is a
    ///   `CurlSession`, the method waits until the session sends no more bytes.
    ///
    /// A clone is not affected. Concurrent calls of this method wait as well. The session is not
    /// closed, because other services may use it.
    ///
    /// - Parameter limit: The maximum duration of the wait, on the service's ``clock``.
    /// - Returns: Whether all exchanges and handlers ended before the limit.
    @discardableResult
    public func finish(within limit: Duration) async -> Bool {
        // The call throws only if the Swift task is cancelled, in which case the method stops
        // waiting.
        let hasEnded = try? await core.clock.value(within: limit) { [core] in
            await core.finish()
            return !Task.isCancelled
        }
        core.invalidate()
        cancelAll()
        if hasEnded != true { await core.leave() }
        return hasEnded == true
    }
}
