public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A session over the system's libcurl: the transport for Linux.
///
/// ```swift
/// let service = WebService(baseURLString: "https://brewhapi.example.com/v1")
/// service.session = try CurlSession()
/// ```
/// It moves bytes and nothing else: redirects, cookies, credentials and retries are those of the service, and libcurl's own are off. A request that may be
/// sent twice (RFC 9110, section 9.2.2) goes out again when a kept-alive connection turns out to be dead before any byte of the answer; no other does.
///
/// - Limits: the idle time (`Request.timeout`) and the connecting time (`Request.connectTimeout`) to the millisecond, the size of header and body while
///   they arrive, also of bodies that are compressed. A task's `Request.deadline` is kept above the session.
/// - Bodies in gzip are asked for, decoded and checked to their end; a broken one is `URLError.cannotDecodeContentData`. Any other coding, which only comes when
///   the request asks for it, is handed over as it came. The header fields are those of the answer.
/// - Transport errors are `URLError`s, by the table in the Guide; a body or a header that is too long is `WebServiceError.Code.responseTooLarge`. An answer
///   whose framing contradicts itself (RFC 9112, section 6.3) is `URLError.badServerResponse`, one that ends too soon `URLError.networkConnectionLost`. Over
///   TLS a body without a length ends too soon where the server's `close_notify` is missing (RFC 8446, section 6.1), as far as libcurl uses OpenSSL.
/// - One thread for each loop (``Configuration/loops``), whatever the number of requests; libcurl looks names up in threads that end with the look-up. No
///   handler or completion of yours runs on a loop's thread.
/// - Each task that was resumed holds the session until it is complete. A session that nobody holds any more ends its threads and connections.
///
/// Make one and keep it: its connections are what makes it fast. All members may be used from any thread.
public final class CurlSession: ResponseSession {
    /// What the session was made with.
    public let configuration: Configuration

    private let loops: [CurlLoop]
    private let turn = Mutex(0)

    /// Makes a session and starts its threads.
    ///
    /// - Throws: `WebServiceError` with the code `WebServiceError.Code.curl` when the system gives no thread or no descriptor, and when a string of the
    ///   configuration cannot be passed to libcurl: a user agent with control characters, an empty proxy, a path with NUL.
    public init(configuration: Configuration = Configuration()) throws {
        try configuration.check()
        self.configuration = configuration
        var loops: [CurlLoop] = []
        do {
            for _ in 0..<min(max(configuration.loops, 1), 64) { loops.append(try CurlLoop(configuration)) }
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

    /// What becomes of the requests that are under way when a session is closed.
    public enum Closing: Sendable, Hashable {
        /// They go on until they are complete; those that wait are still sent.
        case finishing
        /// They fail with `URLError.cancelled`.
        case cancelling
    }

    /// Closes the session: no further request is taken, and when those under way have ended its connections are closed and its threads joined.
    ///
    /// Returns when all that is done, so it waits where requests are to finish; completions have been called or are on their way to their queues then. Further
    /// calls do no harm, and `.cancelling` hurries a `.finishing` that is under way. A task that is resumed afterwards fails with
    /// `WebServiceError.Code.sessionClosed`.
    public func close(_ closing: Closing = .finishing) {
        for loop in loops { loop.end(closing) }
        for loop in loops { loop.join() }
    }

    /// Makes a task that sends the request once it is resumed. The completion runs in the background, never on a loop's thread.
    ///
    /// A request whose body is a stream fails with `WebServiceError.Code.encoding`: hand over the bytes.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        responseTask(request: request, progress: nil) { result, _ in
            DispatchQueue.global().async {
                switch result {
                case .success(let response): completion(response.data, response.urlResponse, nil)
                case .failure(let error): completion(nil, nil, error)
                }
            }
        }
    }

    /// Makes a task that sends the request once it is resumed, for those who want all that the session knows.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - progress: Called on the loop's thread as bytes move; it must return at once.
    ///   - completion: Called once, on the loop's thread or on the thread that resumes or cancels; it must return at once and not wait for the session.
    public func responseTask(
        request: any URLRequestEncodable,
        progress: (@Sendable (TransferProgress) -> Void)?,
        completion: @escaping @Sendable (Result<Response, any Error>, TransportMetrics?) -> Void
    ) -> any DataTask {
        CurlTransfer(request, on: self, loop: nextLoop(), progress: progress, completion: completion)
    }

    private func nextLoop() -> CurlLoop {
        guard loops.count > 1 else { return loops[0] }
        let index = turn.withLock { turn in
            turn = (turn + 1) % loops.count
            return turn
        }
        return loops[index]
    }
}

extension WebServiceError.Code {
    /// A ``CurlSession`` that cannot be made.
    public static let curl = WebServiceError.Code("curl")
    /// A request that was resumed on a ``CurlSession`` after it was closed, or in a process that was forked from the session's.
    public static let sessionClosed = WebServiceError.Code("sessionClosed")
}
