public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A session that responds to requests from stubs, without a network, and records them.
///
/// ```swift
/// let session = MockSession()
/// session.on(.GET, "/brewers/{id}") { request in .json(Brewer(id: request.pathParameters["id"])) }
/// session.on(.GET, "/slow", .error(URLError(.timedOut)))
/// service.session = session
/// ```
///
/// Tasks behave like those of a real session. Nothing happens before `resume()`, and further calls
/// to `resume()` have no effect. The completion is called exactly once, on a background queue,
/// never within `resume()` or `cancel()`. A task that is cancelled before its result is available
/// fails with `URLError.cancelled`. A request that is cancelled before `resume()` is not recorded.
/// A request that cannot be encoded fails with the error of the encoding. A request that has no
/// result within `Request.Options.timeout` after `resume()` fails with `URLError.timedOut`. A
/// request whose response body exceeds `Request.Options.maximumResponseBytes` fails with
/// `WebServiceError.Code.responseTooLarge`. The task, not the session, enforces
/// `Request.Options.deadline`. Progress is reported when a response is delivered.
///
/// If several stubs match, the last one added before `resume()` is used. If no stub matches,
/// ``passthrough`` sends the request, or else the request fails with `WebServiceError.Code.noStub`.
/// The error message contains the method, the path, and the closest stubs with their differences.
/// Matchers and handlers are called on a background queue. All members may be called from any
/// thread.
public final class MockSession: MockableSession, StreamingSession {
    /// A closure that returns whether a stub applies to a request.
    ///
    /// Called on a background queue, concurrently for different requests.
    public typealias Matcher = @Sendable (_ request: any URLRequestEncodable) -> Bool

    /// The stubs and the requests.
    public let stubTable = StubTable()

    /// The session that sends the requests that match no stub. Defaults to `nil`: such requests
    /// fail with `WebServiceError.Code.noStub`.
    ///
    /// ```swift
    /// session.passthrough = FoundationSession.shared
    /// session.on(.GET, "/v1/offers", .json(offers))
    /// ```
    /// The other session also sends streams and uploads, and enforces timeouts and cancellation. A
    /// body with files is read twice, because the stubs are compared with it first.
    /// `receivedRequests` contains the requests that the other session sends, and a verification
    /// does not report them. Their responses have the source `.mock`, like all responses of a
    /// `MockSession`.
    public var passthrough: (any Session)? {
        get { other.withLock { $0 } }
        set { other.withLock { $0 = newValue } }
    }

    private let other = Mutex<(any Session)?>(nil)
    let clock: TaskClock

    /// Creates a session without stubs.
    public convenience init() {
        self.init(timekeeper: nil)
    }

    /// Creates a session without stubs that measures timeouts and delays with a test clock.
    public convenience init(clock: TestClock) {
        self.init(timekeeper: clock)
    }

    /// Creates a session without stubs.
    ///
    /// - Parameter timekeeper: Measures timeouts and delays; `nil` for the system clock.
    package init(timekeeper: (any Timekeeper)?) {
        clock = TaskClock(timekeeper)
    }

    /// The requests in the order of `resume()`, including those that match no stub.
    public var recordedRequests: [URLRequest] {
        stubTable.state.withLock { $0.requests }.compactMap { $0.encodable?.urlRequestValue }
    }

    /// `.mock`.
    public var responseSource: Response.Source { .mock }

    /// Returns whether ``passthrough`` may add credentials to a request.
    public func addsCredentials(to url: URL) -> Bool { passthrough?.addsCredentials(to: url) ?? false }

    /// Creates a task that responds from the stubs after it is resumed.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        MockDataTask(clock: clock) { result, _ in
            if let error = result.2 { completion(nil, nil, error) } else { completion(result.0, result.1, nil) }
        } send: { [self] in
            try send(request) { $0.dataTask(request: request, completion: completion) }
        }
    }

    /// Creates a task that, after it is resumed, delivers the response of a stub in parts.
    ///
    /// The task delivers no metrics and no interim heads.
    public func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        let mayPause = receiver.mayPause
        var base: MockDataTask?
        let stubbed = DeliveringTask(receiver, clock) { delivery in
            let sent = (request as? EncodedRequest)?.bodyCount ?? request.urlRequestValue.httpBody?.count ?? 0
            let task = MockDataTask(clock: clock, delivery: delivery) { result, trailers in
                let (data, response, error) = result
                if error == nil, sent > 0 { delivery.send(Int64(sent), of: Int64(sent)) }
                guard let response, let data else { return delivery.finish(data, response, error) }
                delivery.receive(ResponseHead(response), length: error == nil ? Int64(data.count) : nil)
                for piece in mayPause ? data.pieces(of: 64 << 10) : [data] { delivery.receive(piece) }
                delivery.finish(error.map { .failure($0) } ?? .success(trailers))
            } send: { [self] in
                try send(request) { [clock] in $0.passedTask(request, to: receiver, clock) }
            }
            base = task
            return task
        }
        return base.map { MockStreamTask($0, stubbed) } ?? stubbed
    }

    /// Records a request, and returns its timeout and a closure that determines the outcome.
    ///
    /// - Parameter pass: Returns the task of another session for the request.
    private func send(
        _ request: any URLRequestEncodable, pass: @escaping @Sendable (any Session) -> any DataTask
    ) throws -> (Duration, @Sendable () -> MockDataTask.Outcome) {
        let sent = try SentRequest(request)
        let arrival = stubTable.receive(sent)
        return (
            sent.timeout,
            { [self] in
                do { return try outcome(of: sent, arrival, pass: pass) } catch {
                    return MockDataTask.Outcome(result: (nil, nil, error))
                }
            }
        )
    }

    private func outcome(
        of sent: SentRequest, _ arrival: StubTable.Arrival, pass: (any Session) -> any DataTask
    ) throws -> MockDataTask.Outcome {
        let request = try sent.readingBody()
        if request.hasFileBody { stubTable.replace(arrival.number, with: request) }
        guard let match = stubTable.match(request, arrival) else {
            if let passthrough { return MockDataTask.Outcome(passed: pass(passthrough)) }
            throw WebServiceError(
                .noStub, stubTable.recordUnmatched(request, arrival), request: Request(request.request))
        }
        switch match.stub.responder {
        case .handler(let handler):
            return try Self.outcome(of: handler(match.request ?? request.received), to: request)
        case .asyncHandler(let handler):
            let received = match.request ?? request.received
            return MockDataTask.Outcome(later: {
                do { return try Self.outcome(of: try await handler(received), to: request) } catch {
                    return MockDataTask.Outcome(result: (nil, nil, error))
                }
            })
        case .sequence(let responses):
            return try Self.outcome(of: responses.response(ofCall: match.call), to: request)
        case .result(let result): return try Self.outcome(of: result, to: request)
        case nil:  // only the stubs of a server are released
            return try Self.outcome(of: MockResponse(statusCode: 500), to: request)
        }
    }

    private static func outcome(of result: any MockableDataTaskResult, to request: SentRequest) throws
        -> MockDataTask.Outcome
    {
        var result = result
        while let computed = result as? ComputedResult { result = try computed.compute(request.request) }
        let response = result as? MockResponse
        if response?.wire == .endless, let maximum = request.maximumResponseBytes {
            throw WebServiceError.tooLarge(maximum, Request(request.request), nil)
        }
        if let response, !response.trailers.isEmpty { _ = try response.lastChunk() }  // as a server would write them
        let triple = limited(result.dataTaskResult(request: request.request), length: response?.data.count, to: request)
        return MockDataTask.Outcome(
            result: triple, trailers: response?.trailers ?? [:], delay: response?.delay ?? .zero)
    }

    /// Returns a result, or an error if its body exceeds the limit of the request.
    ///
    /// - Parameter length: The length that the head of the response specifies; `nil` for the length
    ///   of the body.
    private static func limited(_ result: MockDataTask.Result, length: Int?, to request: SentRequest)
        -> MockDataTask.Result
    {
        guard let maximum = request.maximumResponseBytes else { return result }
        let response = result.1
        let tooLarge: @Sendable () -> WebServiceError = {
            .tooLarge(
                maximum, Request(request.request),
                response.map { Response(data: Data(), head: ResponseHead($0), source: .mock) })
        }
        if let chunks = result.2 as? MockChunks {
            return (nil, response, MockChunks(maximum: maximum, tooLarge: tooLarge, produce: chunks.produce))
        }
        guard let count = result.0?.count, max(count, result.2 == nil ? 0 : length ?? 0) > maximum else {
            return result
        }
        return (nil, nil, tooLarge())
    }
}

extension Data {
    /// Returns the bytes in pieces of at most the given size.
    fileprivate func pieces(of size: Int) -> [Data] {
        stride(from: startIndex, to: endIndex, by: size).map { self[$0..<Swift.min($0 + size, endIndex)] }
    }
}

extension Session {
    /// Returns a task that delivers the response to a receiver.
    fileprivate func passedTask(
        _ request: any URLRequestEncodable, to receiver: any BodyReceiver, _ clock: TaskClock
    ) -> any StreamTask {
        if let session = self as? any StreamingSession {
            return session.streamTask(request: request, receiver: receiver)
        }
        return DeliveringTask(receiver, clock) { delivery in
            dataTask(request: request) { delivery.finish($0, $1, $2) }
        }
    }
}
