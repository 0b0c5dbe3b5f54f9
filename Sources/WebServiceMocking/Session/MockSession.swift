public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A session that sends nothing: it answers from stubs and records what it would have sent.
///
/// ```swift
/// let session = MockSession()
/// session.addStub(MockResponse(statusCode: 200, json: ["foo": "bar"]))
/// session.addStub(URLError(.timedOut)) { $0.urlRequestValue.url?.path == "/slow" }
/// service.session = session
/// ```
/// It keeps the promises of a real session: nothing happens before `resume()`, a second `resume()` is harmless, and the completion is called
/// exactly once, on a background queue, never from inside `resume()` or `cancel()`. A task that is cancelled before its answer gets
/// `URLError.cancelled`; one that is cancelled before it is resumed is not recorded. A request that cannot be encoded fails with its own error.
/// An answer that does not come within the timeout of the request is `URLError.timedOut`, a body
/// longer than its ``Request/maximumResponseBytes`` is ``WebServiceError/Code/responseTooLarge``,
/// and progress is reported where a response comes.
///
/// Of the stubs that are there at `resume()` and match, the latest added wins. When none matches the error is a `WebServiceError` with the code
/// `noStub`; it names the method, the path and the stubs. All members may be called from any thread.
public final class MockSession: ResponseSession {
    /// Says whether a stub answers a request. Called on a background queue, for several requests at the same time.
    public typealias Matcher = @Sendable (_ request: any URLRequestEncodable) -> Bool

    private struct State {
        var stubs: [Stub] = []
        var sent: [SentRequest] = []

        mutating func send(_ request: SentRequest) -> [Stub] {
            sent.append(request)
            return stubs
        }
    }

    private let state = Mutex(State())
    private let clock: TaskClock

    /// Makes a session without stubs.
    public convenience init() {
        self.init(timekeeper: nil)
    }

    /// - Parameter timekeeper: Measures timeouts; `nil` for the real clock.
    package init(timekeeper: (any Timekeeper)?) {
        clock = TaskClock(timekeeper)
    }

    /// Adds an answer for the requests that the matcher accepts; for all requests when there is none.
    public func addStub(
        _ result: any MockableDataTaskResult,
        requestMatcher: @escaping Matcher = { _ in true },
        fileID: String = #fileID,
        line: Int = #line
    ) {
        let stub = Stub(result: result, matches: requestMatcher, fileID: fileID, line: line)
        state.withLock { $0.stubs.append(stub) }
    }

    /// Adds an answer that is worked out anew for each request that the matcher accepts; for all requests when there is none.
    ///
    /// - Parameters:
    ///   - requestMatcher: Which requests it answers.
    ///   - fileID: Where the stub was added, for the error when none matches; leave it out.
    ///   - line: The line there; leave it out.
    ///   - answer: Called on a background queue, for several requests at the same time. What it throws is the answer too.
    public func addStub(
        requestMatcher: @escaping Matcher = { _ in true },
        fileID: String = #fileID,
        line: Int = #line,
        answer: @escaping @Sendable (_ request: any URLRequestEncodable) throws -> any MockableDataTaskResult
    ) {
        addStub(ComputedResult(compute: answer), requestMatcher: requestMatcher, fileID: fileID, line: line)
    }

    /// The same as ``addStub(_:requestMatcher:fileID:line:)``.
    public func stub(
        _ result: any MockableDataTaskResult,
        requestMatcher: @escaping Matcher,
        fileID: String = #fileID,
        line: Int = #line
    ) {
        addStub(result, requestMatcher: requestMatcher, fileID: fileID, line: line)
    }

    /// Removes all stubs. Requests that were resumed before are still answered from them, and what is recorded stays.
    public func removeAllStubs() {
        let removed = state.withLock { state in
            defer { state.stubs = [] }
            return state.stubs
        }
        withExtendedLifetime(removed) {}  // what stubs hold is freed outside the lock
    }

    /// The requests that were sent, in the order in which they were resumed; also those that no stub matched.
    public var recordedRequests: [URLRequest] {
        state.withLock { $0.sent }.map(\.encodable.urlRequestValue)
    }

    /// A mock.
    public var responseSource: Response.Source { .mock }

    /// Makes a task that is answered from the stubs once it is resumed.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        MockDataTask(clock: clock, completion: completion) { [self] in
            let sent = try SentRequest(request)
            let stubs = state.withLock { $0.send(sent) }
            return (sent.timeout, { Self.limited(Stub.answer(to: sent.encodable, from: stubs), to: sent) })
        }
    }

    /// The same with progress, which is complete when the response comes.
    public func responseTask(
        request: any URLRequestEncodable,
        progress: (@Sendable (TransferProgress) -> Void)?,
        completion: @escaping @Sendable (Result<Response, any Error>, TransportMetrics?) -> Void
    ) -> any DataTask {
        dataTask(request: request) { data, response, error in
            if let error { return completion(.failure(error), nil) }
            guard data != nil || response != nil else { return completion(.failure(URLError(.badServerResponse)), nil) }
            if let progress {
                let sent = Int64((request as? EncodedRequest)?.bodyCount ?? request.urlRequestValue.httpBody?.count ?? 0)
                let received = Int64(data?.count ?? 0)
                progress(TransferProgress(bytesSent: sent, bytesToSend: sent, bytesReceived: received, bytesToReceive: received))
            }
            completion(.success(Response(data: data ?? Data(), urlResponse: response, source: .mock)), nil)
        }
    }

    private static func limited(_ result: MockDataTask.Result, to request: SentRequest) -> MockDataTask.Result {
        guard let maximum = request.maximumResponseBytes, result.2 == nil, let count = result.0?.count, count > maximum else { return result }
        return (nil, nil, WebServiceError.tooLarge(maximum, Request(request.encodable), result.1))
    }
}
