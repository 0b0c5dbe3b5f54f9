import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A snapshot of an exchange in flight, which retains no body.
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
        /// An event stream that waits for its next connection.
        public static let reconnection = Kind(description: "reconnection")
        /// A download to a file.
        public static let download = Kind(description: "download")
        /// A typed request, or the read of its stored value.
        public static let typedRequest = Kind(description: "typed request")
    }

    /// The identifier, unique among the exchanges in flight.
    public let id: ObjectIdentifier
    /// The kind.
    public let kind: Kind
    /// The request without its body; `nil` for a typed request that has not created it yet.
    public let request: Request?
    /// The type of a typed request; `nil` for any other exchange.
    public let type: (any Sendable.Type)?
    /// The state of the task; `.running` for a stream after its head.
    public let state: DataTaskState
    /// The last known progress.
    ///
    /// `nil` before a request is sent and, unless the task has a progress handler, between attempts
    /// and for a request whose exchange may be shared.
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

    /// The value of a tag of the request.
    ///
    /// Defaults to the ``RequestTagKey/defaultValue`` of its key.
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

/// A service's work in flight, in the order in which it began.
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

    /// - Throws: ``WebServiceError/Code/serviceInvalidated``, also while the service finishes. The
    ///   exchanges in flight may wait for a refresh.
    func checkAccepts() throws(WebServiceError) {
        if isInvalidated || isFinishing && Refresh.current.isEmpty { throw Self.refusal }
    }

    private static var refusal: WebServiceError {
        WebServiceError(
            .serviceInvalidated,
            "the service was invalidated or is finishing, and sends no further requests; create another WebService")
    }

    /// The notification of a change.
    var change: Change { Change(observers: observers.all) }
}

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

    /// Refuses further exchanges, and waits until those in flight and their handlers have ended. At
    /// the limit, cancels what is still in flight.
    ///
    /// Call it when the program ends, for example in the handler of SIGTERM, after the program has
    /// stopped accepting work:
    /// ```swift
    /// if await !service.finish(within: .seconds(20)) { logger.warning("requests were cancelled") }
    /// ```
    /// - From the call on, a task that is resumed fails with
    ///   ``WebServiceError/Code/serviceInvalidated``, also one that is resumed by a handler, and so
    ///   does an event stream that would reconnect. The exchanges in flight continue, with their
    ///   retries, redirects, refreshes of credentials, parts of downloads and uploads, and
    ///   endpoints of typed requests. Requests of custom interceptors are further exchanges: send
    ///   them with a separate service.
    /// - A stream is in flight until its reader has received the end of the body or released it.
    ///   Handlers count if they were added before the result arrived. Code after an `await` of a
    ///   result belongs to the program.
    /// - At the limit, or if the calling Swift task is cancelled, exchanges end as after
    ///   ``invalidate()``. The method then does not wait for handlers, but until the session sends
    ///   no further byte, if it is a `CurlSession`.
    ///
    /// A clone is not affected. Concurrent calls all wait. The session is not closed, because other
    /// services may use it.
    ///
    /// - Parameter limit: The maximum duration of the wait, on the service's ``clock``.
    /// - Returns: Whether everything has ended before the limit.
    @discardableResult
    public func finish(within limit: Duration) async -> Bool {
        // An error is the cancellation of the Swift task, after which nothing is waited for.
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
