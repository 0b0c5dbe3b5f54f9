public import Foundation

/// An event of an exchange, for the observers of a service (``WebService/observers``).
///
/// The first event of an exchange is ``Kind/created``. ``Kind/ended(_:)`` is delivered once. Only
/// ``Kind/recorded(_:)`` (the end of a streamed body, handlers, storing), ``Kind/bodyReceived(_:)``
/// and ``Kind/message(_:isReceived:)`` can follow it.
///
/// A task that is never resumed has no events.
public struct ExchangeEvent: Sendable {
    /// The kind of an event. Later versions can add cases: use `default` in a `switch`.
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
        /// If the session is a ``StreamingSession``, all received bytes of a body precede an
        /// ``attemptEnded(number:_:_:)`` with an error. Of a streamed body, the first bytes that
        /// its reader has taken are delivered, in pieces (``Observer/streamedBodyLimit``).
        case bodyReceived(Data)
        /// A response was received or the request failed.
        ///
        /// The metrics are `nil` if the session measures nothing. The data of a streamed response
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

    /// The exchange.
    public let exchange: ObservedExchange
    /// The kind of the event.
    public let kind: Kind
    /// The nanoseconds since the exchange was resumed.
    package let nanoseconds: UInt64

    /// The duration since the task was resumed, measured by a monotonic clock. It is never less
    /// than that of the previous event of the exchange.
    public var time: Duration { .nanoseconds(Int64(clamping: nanoseconds)) }

    /// The date of the event: the date when the task was resumed plus ``time``.
    public var date: Date { exchange.date.addingTimeInterval(Double(nanoseconds) / 1e9) }
}
