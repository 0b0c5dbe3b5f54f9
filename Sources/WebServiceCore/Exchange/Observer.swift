public import Foundation

/// An observer of a service's exchanges: requests, responses, decisions and results.
///
/// ```swift
/// struct FailureCounter: Observer {
///     let failures = Counter()
///
///     func observe(_ event: ExchangeEvent) {
///         if case .ended(let summary) = event.kind, case .failure = summary.result {
///             failures.add(1)
///         }
///     }
/// }
/// service.observers = [FailureCounter()]
/// ```
/// ``WebService/observers`` contains the observers of a service, which retains them. An observer
/// cannot change requests or responses, unlike an interceptor or a ``ServicePassthroughDelegate``.
/// If there are no observers, no event is created.
public protocol Observer: Sendable {
    /// Receives one event of an exchange.
    ///
    /// The events of one exchange are delivered one after another, in the order in which they
    /// occurred. Events of different exchanges are delivered concurrently. Each observer of the
    /// service receives an event before the next event of the exchange is delivered.
    ///
    /// The method is called without a lock, usually on the thread on which the event occurred
    /// (`Documentation/Concurrency.md`). This can be any thread, including the main thread if a
    /// task is resumed there. For a Swift task that runs on the executor of a session, the thread
    /// is the event loop of that session, and a slow observer delays all requests of the loop. In
    /// other cases, a slow observer delays only the exchange of the event and other code on its
    /// thread.
    ///
    /// An observer can use the service and its tasks, for example to cancel a task, but it must not
    /// wait for the exchange of the event.
    func observe(_ event: ExchangeEvent)

    /// The number of bytes of a streamed body that the observer receives
    /// (``ExchangeEvent/Kind/bodyReceived(_:)``).
    ///
    /// If the observers of a service have different limits, the largest limit applies to all of
    /// them. The property is read when a task is resumed. Defaults to 0.
    var streamedBodyLimit: Int { get }
}

extension Observer {
    /// The value 0: the observer receives no bytes of streamed bodies.
    public var streamedBodyLimit: Int { 0 }
}

/// An observer that reports the metrics of each exchange. It is created by
/// ``Observer/metrics(_:)``.
public struct MetricsObserver: Observer {
    let report: @Sendable (_ metrics: ObservedExchange.Metrics) -> Void

    /// Reports the metrics at the end of an exchange.
    public func observe(_ event: ExchangeEvent) {
        guard case .ended(let summary) = event.kind, !event.exchange.isComposite else { return }
        let response = try? summary.result.get()  // an error has no response
        let failure: String? =
            if case .failure(let error) = summary.result { ExchangeLog.Attempt.kind(of: error) } else { nil }
        report(
            ObservedExchange.Metrics(
                exchange: event.exchange, duration: event.time, attempts: summary.attempts,
                status: response?.head.flatMap { $0.isHTTP ? $0.status : nil }, failure: failure,
                source: response?.source, byteCount: response?.data.count ?? 0,
                transport: summary.metrics.transport))
    }
}

extension Observer where Self == MetricsObserver {
    /// Returns an observer that reports the metrics of each exchange.
    ///
    /// ```swift
    /// service.observers = [.metrics { requests.record($0.duration, status: $0.status) }]
    /// ```
    /// Exchanges that consist of others, such as typed requests and downloads, are not reported,
    /// but the exchanges that they send are.
    ///
    /// - Parameter report: A closure that is called with the metrics of each exchange when the
    ///   exchange has ended, on any thread.
    public static func metrics(
        _ report: @escaping @Sendable (_ metrics: ObservedExchange.Metrics) -> Void
    ) -> MetricsObserver {
        MetricsObserver(report: report)
    }
}

/// An event of an exchange, for the observers of a service (``WebService/observers``).
///
/// The first event of an exchange is ``Kind/created``. ``Kind/ended(_:)`` is delivered once. Only
/// ``Kind/recorded(_:)`` (such as the end of a streamed body, a handler or a write to a storage),
/// ``Kind/bodyReceived(_:)`` and ``Kind/message(_:isReceived:)`` can follow it.
///
/// A task that is never resumed has no events.
public struct ExchangeEvent: Sendable {
    /// The kind of an event. Later versions can add cases, so a `switch` needs a `default`.
    public enum Kind: Sendable {
        /// The task was resumed.
        case created
        /// An attempt is about to be sent.
        ///
        /// The number starts at 1. Retries, redirects and attempts with a newer credential are
        /// included.
        case attemptStarted(number: Int, EncodedRequest)
        /// An interim head was received, such as that of 103 Early Hints (RFC 8297).
        ///
        /// `CurlSession` delivers the heads whose status is from 100 to 199, except 101.
        case interimHeadReceived(ResponseHead)
        /// The head of a response was received.
        ///
        /// A session that delivers whole responses delivers the head together with the body.
        case headReceived(ResponseHead)
        /// Bytes of a body that no result contains, after decompression.
        ///
        /// If a ``StreamingSession`` reports an error, the bytes of the body that it has received
        /// are delivered before the ``attemptEnded(number:_:_:)`` with that error. For a streamed
        /// body, the first bytes that its reader takes are delivered in pieces, up to
        /// ``Observer/streamedBodyLimit``.
        case bodyReceived(Data)
        /// A response was received or the request failed.
        ///
        /// The metrics are `nil` if the session has provided none. The data of a streamed response
        /// is empty.
        indirect case attemptEnded(number: Int, Result<Response, any Error>, TransportMetrics?)
        /// A message of a WebSocket connection was received, or was passed to the connection.
        case message(WebSocketMessage, isReceived: Bool)
        /// An event of the timeline other than an attempt.
        ///
        /// Such events include redirects, retries, waits, refreshes, decisions of a cache,
        /// deprecated resources, shared responses and access to a storage (``Timeline/Kind``). An
        /// event with a duration is delivered when it ends.
        indirect case recorded(Timeline.Event)
        /// The task has its result, and its handlers follow. The result of a stream is its head.
        case ended(ExchangeSummary)
    }

    /// The exchange to which the event belongs.
    public let exchange: ObservedExchange
    /// The kind of the event.
    public let kind: Kind
    /// The nanoseconds since the exchange was resumed.
    package let nanoseconds: UInt64

    /// The duration since the task was resumed, measured by a monotonic clock. The duration is
    /// never less than that of the previous event of the exchange.
    public var time: Duration { .nanoseconds(Int64(clamping: nanoseconds)) }

    /// The date of the event: the date when the task was resumed plus ``time``.
    public var date: Date { exchange.date.addingTimeInterval(Double(nanoseconds) / 1e9) }
}

/// The exchange to which an ``ExchangeEvent`` belongs: a ``SessionTask``, a typed request or the
/// read of a storage.
public final class ObservedExchange: Sendable {
    /// The identifier, unique among the exchanges of this process.
    ///
    /// The identifier of a typed request is `EndpointContext.id`.
    public let id: UInt64

    /// The identifier of the exchange on whose behalf this one is sent; `nil` if there is none.
    ///
    /// The parent is the typed request whose endpoint sends the exchange, the request after
    /// `setDuplicates(_:key:)`, the download or resumable upload to which the request belongs, the
    /// exchange whose stored response is validated in the background (`stale-while-revalidate`), or
    /// the exchange for which an interceptor such as `.hedging()` sends a concurrent request. If
    /// several requests share a response, the parent is the request that was started first
    /// (``Timeline/Event/related``).
    public let parent: UInt64?

    /// The request of the task, before the interceptors; `nil` for a typed request and the read of
    /// a storage.
    public let request: Request?

    /// The path of the request with its placeholders (``Request/pathTemplate``); `nil` if there is
    /// no request, or if its URL is absolute.
    public var pathTemplate: String? { request?.pathTemplate }

    /// Whether the exchange consists of other exchanges (``parent``), such as a typed request or a
    /// download; also `true` for the read of a storage.
    public let isComposite: Bool

    /// The type of a typed request.
    private let type: (any Sendable.Type)?

    /// The date when the task was resumed.
    public let date: Date

    init(
        id: UInt64, parent: UInt64?, request: Request?, type: (any Sendable.Type)?, isComposite: Bool, date: Date
    ) {
        self.id = id
        self.parent = parent
        self.request = request
        self.type = type
        self.isComposite = isComposite
        self.date = date
    }

    /// A description that is safe to log: the type of a typed request, or the method and the URL
    /// without its query.
    public var name: String { type.map { "\($0)" } ?? request?.description ?? "" }

    /// The value of one of the request's tags (``Request/Options``).
    ///
    /// If the request does not have the tag, the value is the ``RequestTagKey/defaultValue`` of its
    /// key.
    public subscript<Key: RequestTagKey>(key: Key.Type) -> Key.Value {
        request?.options[key] ?? Key.defaultValue
    }
}

extension ObservedExchange {
    /// The metrics of one exchange that has ended (``Observer/metrics(_:)``).
    public struct Metrics: Sendable {
        /// The exchange, with the method, the URL and the tags of its request.
        public let exchange: ObservedExchange
        /// The duration from `resume()` to the result.
        public let duration: Duration
        /// The number of attempts, including those of retries and redirects.
        public let attempts: Int
        /// The status of the response; `nil` after an error, or if the response is not an HTTP
        /// response.
        public let status: Int?
        /// The kind of the error without its values, such as `URLError -1004`; `nil` for a
        /// response.
        public let failure: String?
        /// The source of the response; `nil` after an error.
        public let source: Response.Source?
        /// The number of bytes of the response body; 0 for a streamed body and after an error.
        public let byteCount: Int
        /// The metrics of the session for the last attempt; `nil` if there are none.
        public let transport: TransportMetrics?
    }
}

/// The result of an exchange, with the metrics and the timeline recorded until its end.
public final class ExchangeSummary: Sendable {
    /// The response or the error of the task, before its handlers.
    public let result: Result<Response, any Error>

    /// Whether the body of the response is streamed.
    ///
    /// The end of such a body is recorded later, as ``Timeline/Kind/body``.
    public let isStreamed: Bool

    private let log: ExchangeLog.Record

    init(_ result: Result<Response, any Error>, _ log: ExchangeLog.Record) {
        self.result = result.withoutStream
        isStreamed = if case .success(let response) = result { response.isStreamed } else { false }
        self.log = log
    }

    /// The number of requests that were sent.
    public var attempts: Int { log.attempts }

    /// The metrics, without those of the handlers.
    public var metrics: ServiceTaskMetrics { log.metrics }

    /// The timeline, which is created on each access.
    public var timeline: Timeline { log.timeline }
}

extension Result where Success == Response {
    var withoutStream: Self { map(\.withoutStream) }
}
