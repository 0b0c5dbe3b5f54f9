public import Foundation
import Synchronization
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A session based on the system's libcurl, intended for Linux.
///
/// ```swift
/// let service = WebService(baseURLString: "https://brewhapi.example.com/v1")
/// service.session = try CurlSession()
/// ```
/// The session only transfers bytes. The service handles redirects, cookies, credentials and
/// retries; libcurl's implementations are disabled. The session sends an idempotent request (RFC
/// 9110, section 9.2.2) again if, before the first byte of the response, a reused connection proves
/// to be closed or an HTTP/2 or HTTP/3 connection fails. It sends no other request again, except
/// one whose `Expect` field the server rejects.
///
/// - Limits: the session enforces the idle timeout (`Request.Options.timeout`) and the connect
///   timeout (`Request.Options.connectTimeout`) with a resolution of a few milliseconds. It checks
///   the sizes of the header and of the decompressed body as bytes arrive. The task, not the
///   session, enforces `Request.Options.deadline`. Bytes of other requests, and frames that belong
///   to no request, do not extend the idle timeout. Bytes of an HTTP/1.1 connection that are not
///   delivered, such as chunk extensions, extend the idle timeout to at most ten times its
///   duration. A request that ends before its response is complete closes its connection, unless
///   other requests use it.
/// - Content coding: the session requests, decodes and verifies gzip and, if the libraries
///   libbrotlidec and libzstd are available when the program runs, brotli and zstd. It decodes
///   deflate as well, with and without the zlib format (RFC 1950), but does not request it. A
///   corrupt or truncated body fails with `URLError.cannotDecodeContentData`. Brotli, and deflate
///   without the zlib format, have no checksum, so damage that results in a valid body is not
///   detected. A body with any other coding, or with more than two codings, fails with the same
///   error, whose description names the codings, even if the request accepts them. Header fields
///   are delivered as received.
/// - Errors: transport errors are `URLError`s, as <doc:ErrorsOfCurlSession> lists them. An
///   oversized header or body fails with `WebServiceError.Code.responseTooLarge`, a response with
///   contradictory framing (RFC 9112, section 6.3) with `URLError.badServerResponse`, and an
///   incomplete response with `URLError.networkConnectionLost`. A body without a length that is
///   received over TLS is incomplete unless the server sends `close_notify` (RFC 8446, section
///   6.1). The session detects this only if libcurl uses OpenSSL.
/// - Threads: one per loop (``Configuration/loops``), regardless of the number of requests. libcurl
///   looks up names on additional threads, each of which ends with its lookup. Handlers of a
///   service and completions of `dataTask(request:completion:)` do not run on a loop's thread. If a
///   loop has nothing in flight and has an idle connection to the host, `resume()` usually sends a
///   small request on the calling thread, without blocking: see
///   <doc:ConfiguringTheTransport#The-duration-of-resume>.
/// - Lifetime: a resumed task retains the session until it completes. Deallocating a session ends
///   its threads and closes its connections.
///
/// Create one session and reuse it, because requests share its connections. All members are
/// thread-safe.
public final class CurlSession: UploadingSession {
    /// The configuration of the session.
    public let configuration: Configuration

    private let rules: HostRules
    private let loops: [CurlLoop]
    private let turn = Lock(0)

    /// Creates a session and starts its threads.
    ///
    /// - Throws: `WebServiceError.Code.curl` if the system provides no thread or no descriptor, if
    ///   libcurl is older than 7.80, if the configuration is invalid or libcurl rejects it, or if a
    ///   certificate or key file is missing, has the wrong format or needs a password that is not
    ///   set. A wrong password may be detected only when a request is sent.
    public convenience init(configuration: Configuration = Configuration()) throws {
        try self.init(configuration: configuration, timekeeper: nil)
    }

    /// Creates a session with a clock, and starts its threads.
    ///
    /// - Parameter timekeeper: The clock that measures idle timeouts and the lifetime of idle
    ///   connections; `nil` for the system clock. The timeouts of libcurl are always measured by
    ///   the system clock.
    package init(configuration: Configuration = Configuration(), timekeeper: (any Timekeeper)?) throws {
        try configuration.check()
        let rules = try HostRules(configuration)
        let clock = TaskClock(timekeeper)
        self.configuration = configuration
        self.rules = rules
        var loops: [CurlLoop] = []
        do {
            for _ in 0..<min(max(configuration.loops, 1), 64) {
                loops.append(try CurlLoop(configuration, clock, rules: rules))
            }
        } catch {
            for loop in loops { loop.end(.cancelling) }
            for loop in loops { loop.join() }
            throw error
        }
        self.loops = loops
    }

    deinit {
        close(.cancelling)
    }

    /// The treatment of requests in flight when a session is closed.
    public enum Closing: Sendable, Hashable {
        /// Requests in flight and waiting requests are completed.
        case finishing
        /// All resumed tasks fail with `URLError.cancelled`, including those that prepare a request
        /// or wait for a retry.
        case cancelling
    }

    /// Closes the session and its connections, and ends its threads.
    ///
    /// The method blocks the thread until all requests have ended. With ``Closing/finishing``, this
    /// includes the wait for their responses. An exchange is then cancelled if, for the duration of
    /// the request's idle timeout, its receiver stays paused or its request body produces no bytes.
    /// When the method returns, all completions have been called or dispatched to their queues.
    ///
    /// The method may be called repeatedly; a later call with ``Closing/cancelling`` cancels the
    /// remaining requests. Tasks that are resumed after the first call fail with
    /// `WebServiceError.Code.sessionClosed`.
    ///
    /// With ``Closing/finishing``, an exchange that waits for a retry, a refresh or a network sends
    /// no further request. It ends with its last response or error. An exchange that receives a
    /// redirect after the call does not follow it, and a download or an upload is not continued.
    /// Such exchanges fail with `WebServiceError.Code.sessionClosed`.
    ///
    /// On the ``executor`` of this or another session, the method does not wait.
    public func close(_ closing: Closing = .finishing) {
        for loop in loops { loop.end(closing) }
        for loop in loops { loop.join() }
    }

    /// Returns a task that sends the request when resumed.
    ///
    /// A request with an `httpBodyStream` fails with `WebServiceError.Code.encoding`. Use a
    /// `Request.Body` instead.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - receiver: The receiver, which is called on the loop's thread or, if the exchange ends
    ///     before the request is sent, possibly on another thread, such as the one that resumes or
    ///     cancels the task. The receiver must not block or wait for the session.
    public func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        CurlTransfer(request, on: self, loop: nextLoop(), receiver: receiver)
    }

    /// Returns whether the configuration has a client certificate for the URL.
    public func addsCredentials(to url: URL) -> Bool {
        guard let index = try? rules.index(for: url.absoluteString) else {  // no request can be sent to it
            return rules.all.contains { $0.identity != nil }
        }
        return rules.all[index].identity != nil
    }

    func nextLoop() -> CurlLoop {
        guard loops.count > 1 else { return loops[0] }
        if let loop = loops.first(where: \.isCurrent) { return loop }
        let index = turn.withLock { turn in
            turn = (turn + 1) % loops.count
            return turn
        }
        return loops[index]
    }
}

extension CurlSession: SettlingSession {
    package func settle() async {
        for loop in loops { await loop.settle() }
    }
}

extension WebServiceError.Code {
    /// A ``CurlSession`` cannot be created, or libcurl rejected a request.
    public static let curl = WebServiceError.Code("curl")
    /// The ``CurlSession`` was closed, or was created before the process was forked.
    public static let sessionClosed = WebServiceError.Code("sessionClosed")
}
