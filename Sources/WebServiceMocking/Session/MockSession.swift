public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A session that sends nothing: it responds from stubs and records the requests.
///
/// ```swift
/// let session = MockSession()
/// session.addStub(MockResponse(statusCode: 200, json: ["foo": "bar"]))
/// session.addStub(URLError(.timedOut)) { $0.urlRequestValue.url?.path == "/slow" }
/// service.session = session
/// ```
///
/// Tasks behave like those of a real session. Nothing happens before `resume()`, and further calls
/// to `resume()` have no effect. The completion is called exactly once, on a background queue,
/// never within `resume()` or `cancel()`. A task that is cancelled before its result is available
/// fails with `URLError.cancelled`; one that is cancelled before it is resumed is not recorded. A
/// request that cannot be encoded fails with its own error. A request without a result within its
/// ``Request/Options/timeout`` after `resume()` fails with `URLError.timedOut`, and one whose
/// response body exceeds its ``Request/Options/maximumResponseBytes`` fails with
/// ``WebServiceError/Code/responseTooLarge``. The task enforces ``Request/Options/deadline``, not
/// the session. Progress is reported when a response is delivered.
///
/// If several stubs match, the last one added before `resume()` is used. If none matches, the
/// request fails with a `WebServiceError` with the code `noStub`, which names the method, the path
/// and the source locations of the stubs. All members may be called from any thread.
public final class MockSession: StreamingSession {
    /// Returns whether a stub applies to a request.
    ///
    /// Called on a background queue, concurrently for different requests.
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

    /// Creates a session without stubs.
    public convenience init() {
        self.init(timekeeper: nil)
    }

    /// - Parameter timekeeper: Measures timeouts; `nil` for the system clock.
    package init(timekeeper: (any Timekeeper)?) {
        clock = TaskClock(timekeeper)
    }

    /// Adds a result for the requests that the matcher accepts.
    ///
    /// - Parameters:
    ///   - result: The result of every matching request.
    ///   - requestMatcher: Returns whether the stub applies. Defaults to all requests.
    ///   - fileID: The source file of the stub, reported if no stub matches a request.
    ///   - line: The line in that file.
    public func addStub(
        _ result: any MockableDataTaskResult,
        requestMatcher: @escaping Matcher = { _ in true },
        fileID: String = #fileID,
        line: Int = #line
    ) {
        let stub = Stub(result: result, matches: requestMatcher, fileID: fileID, line: line)
        state.withLock { $0.stubs.append(stub) }
    }

    /// Adds a closure that determines the result of each request that the matcher accepts.
    ///
    /// - Parameters:
    ///   - requestMatcher: Returns whether the stub applies. Defaults to all requests.
    ///   - fileID: The source file of the stub, reported if no stub matches a request.
    ///   - line: The line in that file.
    ///   - answer: Returns the result. Called on a background queue, concurrently for different
    ///     requests. An error that it throws is the error of the request.
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

    /// Removes all stubs.
    ///
    /// Requests that were already resumed still use them. Recorded requests are retained.
    public func removeAllStubs() {
        let removed = state.withLock { state in
            defer { state.stubs = [] }
            return state.stubs
        }
        withExtendedLifetime(removed) {}  // stubs are deallocated outside the lock
    }

    /// The requests in the order of `resume()`, including those without a matching stub.
    public var recordedRequests: [URLRequest] {
        state.withLock { $0.sent }.map(\.encodable.urlRequestValue)
    }

    /// `.mock`.
    public var responseSource: Response.Source { .mock }

    /// Creates a task that responds from the stubs after it is resumed.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        MockDataTask(clock: clock, completion: completion) { [self] in try send(request) }
    }

    /// Creates a task that responds from the stubs after it is resumed, in parts.
    ///
    /// There are no metrics, trailer fields or interim heads.
    public func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        DeliveringTask(receiver) { delivery in
            let sent = (request as? EncodedRequest)?.bodyCount ?? request.urlRequestValue.httpBody?.count ?? 0
            return MockDataTask(clock: clock) { data, response, error in
                if error == nil, sent > 0 { delivery.send(Int64(sent), of: Int64(sent)) }
                delivery.finish(data, response, error)
            } send: { [self] in
                try send(request)
            }
        }
    }

    private func send(_ request: any URLRequestEncodable) throws -> (Duration, @Sendable () -> MockDataTask.Result) {
        let sent = try SentRequest(request)
        let stubs = state.withLock { $0.send(sent) }
        return (sent.timeout, { Self.limited(Stub.answer(to: sent.encodable, from: stubs), to: sent) })
    }

    private static func limited(_ result: MockDataTask.Result, to request: SentRequest) -> MockDataTask.Result {
        guard let maximum = request.maximumResponseBytes, result.2 == nil, let count = result.0?.count, count > maximum
        else { return result }
        return (nil, nil, WebServiceError.tooLarge(maximum, Request(request.encodable), result.1))
    }
}
