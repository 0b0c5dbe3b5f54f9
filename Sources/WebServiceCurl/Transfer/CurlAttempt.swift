import WebServiceCore

/// The progress of one exchange of a ``CurlHandle``.
struct CurlAttempt {
    // MARK: Time

    /// The instant at which a byte was last sent, or received on the connection of the exchange,
    /// according to the loop's clock.
    var lastActivity: UInt64 = 0
    /// The instant at which a line of the head or a byte of a body was last sent or received.
    private var lastProgress: UInt64 = 0
    private(set) var idleLimit: UInt64 = 0
    private var maximumIdleLimit: UInt64 = 0

    /// Returns the instant at which the idle timeout elapses.
    ///
    /// Bytes that libcurl does not deliver, such as endless chunk extensions or a part of a TLS
    /// record, extend the timeout to at most ten times its duration.
    ///
    /// - Parameter earliest: The instant before which the timeout does not begin.
    func idleEnd(after earliest: UInt64?) -> UInt64 {
        min(
            Self.sum(max(lastActivity, earliest ?? 0), idleLimit),
            Self.sum(max(lastProgress, earliest ?? 0), maximumIdleLimit))
    }

    private static func sum(_ instant: UInt64, _ nanoseconds: UInt64) -> UInt64 {
        let (sum, overflow) = instant.addingReportingOverflow(nanoseconds)
        return overflow ? .max : sum
    }

    /// Records that bytes of the exchange were sent or received.
    mutating func progress(at now: UInt64) {
        lastActivity = now
        lastProgress = now
    }

    // MARK: The request

    /// The maximum wait for the server's permission to send the body; `nil` if no permission is
    /// requested.
    var expectation: Duration?
    /// The request body that libcurl reads in pieces.
    var upload: OutgoingBody?
    /// Whether the exchange waits for bytes of the request body.
    var isAwaitingBody = false
    /// Whether the request body ends before its last byte.
    var isBodyOver = false
    private(set) var isIdempotent = true
    /// The number of times the request was sent.
    var sendCount = 0
    /// The head of the request as it was sent; empty unless the configuration records it.
    var sentHead = SentHead()
    /// Whether a part of the request may have been sent.
    var wasSent: Bool { sendCount > 0 || hasStartedOver }
    private var hasStartedOver = false
    /// Whether the server rejected the field `Expect`.
    var isRefused = false
    /// Whether the exchange restarts, for example because libcurl chose an unusable connection or
    /// the server rejected the field `Expect`.
    var mustBeginAgain = false

    // MARK: The connection

    /// Whether the exchange uses a separate connection.
    var isExclusive = false
    /// The connection of the exchange; `nil` before one is chosen.
    var connection: Connections.Connection?
    /// The connection to a Unix domain socket, which only this exchange uses. The ends of such a
    /// connection do not identify it.
    var unixConnection: Connections.Connection?
    /// The check of the addresses to which libcurl connects.
    var destinationCheck = CurlHandle.DestinationCheck()
    /// The TLS connection to the server; `nil` if there is none.
    var security: Connections.Security?
    /// The TLS connection whose end marks the end of the body.
    var closing: TLSClosing.Connection?

    // MARK: The response

    /// Whether the exchange has a result.
    var isComplete = false

    /// The number of header lines received so far.
    var headLines = 0
    /// Whether only a part of the current line has been received.
    var isWithinLine = false
    /// The number of missing bytes of the response; `nil` if it is unknown or the request body is
    /// not streamed.
    var remaining: Int64?
    /// The number of body bytes received.
    var bodyCount = 0
    /// Whether the receiver has paused the exchange.
    var isPaused = false
    /// Whether libcurl receives nothing until ``CurlHandle/receive()``, because the thread of a
    /// caller sends the request.
    var isHeld = false
    /// The response that libcurl has not read; `nil` if there is none.
    var unread: UnreadResponse?
    /// The error with which the handle aborted the exchange.
    var failure: (any Error)?

    /// Creates the state of a handle without an exchange.
    init() {}

    init(_ request: EncodedRequest, at now: UInt64) {
        progress(at: now)
        idleLimit = UInt64(0).addingSaturated(max(request.timeout, .milliseconds(1)))
        let (tenfold, overflow) = idleLimit.multipliedReportingOverflow(by: 10)
        maximumIdleLimit = overflow ? .max : tenfold
        expectation = request.source.options.expectsContinue
        isIdempotent = request.method.isIdempotent
    }

    /// Prepares for sending the request again after the server has rejected the field `Expect`.
    mutating func startOver() {
        hasStartedOver = true
        isRefused = false
        failure = nil
        unread = nil
        sendCount = 0
        headLines = 0
        isWithinLine = false
    }
}
