import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

extension Request {
    /// The options that define how a request is sent, independently of its content.
    ///
    /// A limit that is `nil` is not set. The limit of the service (``WebService/options``) or the
    /// default then applies:
    ///
    /// | limit that is not set | requests | streams | downloads |
    /// | --- | --- | --- | --- |
    /// | ``timeout`` | 60 s | 60 s | 60 s |
    /// | ``connectTimeout`` | that of the session | that of the session | that of the session |
    /// | ``attemptTimeout`` | none | none | none |
    /// | ``expectsContinue`` | none | none | none |
    /// | ``deadline`` | 10 min | 10 min for the head | 10 min for each head |
    /// | ``maximumResponseBytes`` | 100 MiB | none | none |
    ///
    /// The limits of a service replace these defaults, except for the bodies of streams and
    /// downloads: the service's maximum size does not apply to them, and its deadline applies only
    /// to their heads. A maximum size or a deadline that is set on the request or the task of a
    /// stream or a download applies to the whole stream or download.
    ///
    /// Four of these options limit the duration of an exchange: ``connectTimeout`` limits the time
    /// to connect, ``timeout`` limits each wait for bytes, ``attemptTimeout`` limits one attempt,
    /// and ``deadline`` limits the whole exchange, with all attempts and the pauses between them.
    /// ``WebService/withDeadline(_:isolation:_:)`` shortens the deadlines of all requests in a
    /// scope.
    public struct Options: Sendable {
        /// The idle timeout: the longest time that the transport waits for the next bytes.
        ///
        /// The session measures this timeout, and each byte restarts it, so the timeout does not
        /// limit the duration of a response; see ``attemptTimeout``. When the timeout expires, the
        /// task fails with `URLError.timedOut`. Defaults to `nil`: 60 seconds, as in Foundation.
        public var timeout: Duration?

        /// The longest duration of one attempt, until the end of its response or the head of a
        /// stream or a download.
        ///
        /// An attempt is each request that is sent, such as the first one, a retry, a request after
        /// a credential refresh, or a request to the target of a redirect. The service's clock
        /// measures the duration of an attempt over every session, excluding the time that
        /// interceptors take. When the timeout expires, the attempt is cancelled and fails with
        /// `URLError.timedOut`, which ``RetryPolicy`` retries. Defaults to `nil`: no limit.
        public var attemptTimeout: Duration?

        /// The timeout for connecting, including name resolution and TLS.
        ///
        /// Defaults to `nil`: the timeout of the session applies. When the timeout expires, the
        /// task fails with `URLError.cannotConnectToHost`. If a server that accepted the connection
        /// does not respond, the task fails with `URLError.timedOut` instead. `CurlSession`
        /// enforces this timeout. Foundation does not report when a connection is established, so
        /// Foundation's sessions ignore the timeout.
        public var connectTimeout: Duration?

        /// The longest wait for an interim response before the body is sent.
        ///
        /// Defaults to `nil`, which sends the body immediately. Otherwise, `CurlSession` sends the
        /// request over HTTP/1.1 with the header field `Expect: 100-continue` (RFC 9110, section
        /// 10.1.1). It sends the body after a response with status 100, or when the duration has
        /// elapsed. A final response ends the request without its body. After a response with
        /// status 417, the request is sent again without the field if its body can be sent again.
        /// The option has no effect on requests without a body or over other sessions.
        public var expectsContinue: Duration?

        /// Whether the body is compressed with gzip.
        ///
        /// The request has the header field `Content-Encoding: gzip` (RFC 9110, section 8.4.1.3),
        /// which the server must support. Bytes in memory are compressed when the request is
        /// encoded. `CurlSession` compresses files and streams while it sends them, so their length
        /// is unknown. Each element of a stream can be decoded when it arrives.
        ///
        /// If zlib is missing, the request fails with ``WebServiceError/Code/encoding``. The option
        /// has no effect on an empty body or a Foundation input stream, or if the request has a
        /// header field `Content-Encoding`. Defaults to `false`.
        public var compressesBody = false

        /// The deadline: the longest duration of the whole exchange, with all its attempts.
        ///
        /// The service's clock measures the duration from `resume()` to the last byte, including
        /// retries and redirects, regardless of the session. When the deadline passes, the task
        /// fails with ``WebServiceError/Code/deadline``. For a WebSocket connection, the deadline
        /// applies only to the handshake. Defaults to `nil`: 10 minutes for requests and heads, and
        /// no deadline for the bodies of downloads and streams.
        public var deadline: Duration?

        /// The maximum size of the response body in bytes, after decompression.
        ///
        /// If the body of a response with a status from 200 to 299 is larger, the task fails with
        /// ``WebServiceError/Code/responseTooLarge`` as soon as the session detects it. For any
        /// other status, the error is the underlying error of
        /// ``WebServiceError/Code/unacceptableStatus``. `.max` removes the limit. Defaults to
        /// `nil`: 100 MiB, and no limit for streams and downloads.
        public var maximumResponseBytes: Int?

        /// Whether the request sends and stores cookies.
        ///
        /// The option has an effect only if the service has a ``WebService/cookieJar`` or the
        /// session handles cookies. Defaults to `true`.
        public var shouldHandleCookies = true

        /// The priority of the request among those of its session, as a hint.
        ///
        /// Foundation's sessions pass the priority to the task (`URLSessionTask.priority`).
        /// `CurlSession` sends the priority as the weight of the HTTP/2 stream (RFC 7540, section
        /// 5.3.2), which many servers ignore. Defaults to ``Request/Priority/normal``.
        public var priority = Request.Priority.normal

        /// The policy for redirects. Defaults to ``RedirectPolicy/follow``.
        public var redirectPolicy = RedirectPolicy.follow

        /// The policy that determines when a `ResponseCache` among the interceptors may respond.
        ///
        /// If there is no such interceptor, a request with `returnCacheDataDontLoad` fails with
        /// `URLError.resourceUnavailable`, and a request with any other policy is sent.
        public var cachePolicy: URLRequest.CachePolicy = .useProtocolCachePolicy

        /// The interceptors of this request. Those of the service usually precede them, but a retry
        /// policy of the request, for example, replaces that of the service; see ``Interceptor``.
        public var interceptors: [any Interceptor] = []

        /// A mapper that converts unacceptable responses to this request into custom errors.
        ///
        /// This mapper takes precedence over the mapper of the service.
        public var errorMapper: (any ErrorMapper)?

        /// The limits of the service, for requests that do not set these limits.
        fileprivate var serviceDeadline: Duration?
        fileprivate var serviceMaximum: Int?
        /// The duration from `resume()` to the end of the request's scope.
        var scopeDeadline: Duration?
        /// Whether the body is a stream or a download, to which the limits of the service do not
        /// apply.
        var isStreamed = false

        /// The values of tags, by the type of their key.
        private var tags: [ObjectIdentifier: any Sendable] = [:]

        /// Creates options with the defaults of their properties.
        public init() {}

        /// The value of a tag. Defaults to the ``RequestTagKey/defaultValue`` of its key.
        public subscript<Key: RequestTagKey>(key: Key.Type) -> Key.Value {
            get { tags[ObjectIdentifier(key)] as? Key.Value ?? Key.defaultValue }
            set { tags[ObjectIdentifier(key)] = newValue }
        }
    }
}

extension Request.Options {
    /// The options of a request that a service with these options creates.
    var inherited: Request.Options {
        var options = self
        options.serviceDeadline = deadline ?? serviceDeadline
        options.serviceMaximum = maximumResponseBytes ?? serviceMaximum
        (options.deadline, options.maximumResponseBytes) = (nil, nil)
        return options
    }

    /// Whether all durations that are set are positive.
    var hasPositiveDurations: Bool {
        // An array would be allocated for each request.
        func isPositive(_ duration: Duration?) -> Bool { duration.map { $0 > .zero } ?? true }
        return isPositive(timeout) && isPositive(attemptTimeout) && isPositive(connectTimeout)
            && isPositive(expectsContinue) && isPositive(deadline) && isPositive(serviceDeadline)
    }

    /// The idle timeout that applies.
    var idleTimeout: Duration { timeout ?? .seconds(60) }

    /// The deadline of a request, and of the head of a stream.
    package var requestDeadline: Duration {
        let deadline = deadline ?? serviceDeadline ?? .seconds(600)
        return scopeDeadline.map { min($0, deadline) } ?? deadline
    }

    /// The deadline of the body of a stream or of a download; `nil` unless the request or its scope
    /// sets a deadline.
    var bodyDeadline: Duration? {
        guard let scopeDeadline else { return deadline }
        return deadline.map { min($0, scopeDeadline) } ?? scopeDeadline
    }

    /// The maximum size of the body that applies.
    package var bodyMaximum: Int { maximumResponseBytes ?? (isStreamed ? .max : serviceMaximum ?? 100 << 20) }
}

extension Request {
    /// The priority of a request (``Options/priority``).
    public enum Priority: Sendable, Hashable {
        /// The request is sent after other requests, for example because it is a prefetch.
        case low
        /// The request is sent after requests of high priority and before those of low priority.
        /// This is the default.
        case normal
        /// The request is sent before other requests.
        case high

        /// The weight of an HTTP/2 stream, from 1 to 256 (RFC 7540, section 5.3.2).
        package var streamWeight: Int {
            switch self {
            case .low: 1
            case .normal: 16
            case .high: 256
            }
        }
    }
}

/// The key of a tag, a value that accompanies a request and is not sent.
///
/// ```swift
/// enum Feature: RequestTagKey {
///     static let defaultValue = "unknown"
/// }
/// request.options[Feature.self] = "search"
/// ```
/// A tag can be read from the ``Request`` in interceptors, from the task and
/// ``WebServiceError/request``, and from ``ObservedExchange``. Redirects and retries preserve tags.
public protocol RequestTagKey {
    /// The type of the value.
    associatedtype Value: Sendable

    /// The value for requests without this tag.
    static var defaultValue: Value { get }
}

extension TimeInterval {
    /// The timeout, limited to values that every transport supports.
    ///
    /// The range is from a millisecond to 1e9 seconds (30 years). NaN becomes the default of
    /// ``Request/Options/timeout``. The session enforces this idle timeout.
    /// ``SessionTask/ring()`` in `SessionTask+Exchange.swift` enforces the deadline.
    var clampedTimeout: TimeInterval {
        isNaN ? Request.Options().idleTimeout.inSeconds : Swift.min(Swift.max(self, 0.001), 1e9)
    }
}
