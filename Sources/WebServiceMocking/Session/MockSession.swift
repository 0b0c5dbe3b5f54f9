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
/// Progress is reported when a response is delivered.
///
/// A request that cannot be encoded fails with the encoding error. A request that has no result
/// within `Request.Options.timeout` after `resume()` fails with `URLError.timedOut`. A request
/// whose response body exceeds `Request.Options.maximumResponseBytes` fails with
/// `WebServiceError.Code.responseTooLarge`. The task, not the session, enforces
/// `Request.Options.deadline`.
///
/// If several stubs match, the last one added before `resume()` is used. If no stub matches,
/// ``passthrough`` sends the request, or else the request fails with `WebServiceError.Code.noStub`.
/// The error message contains the method, the path, and the closest stubs with their differences.
/// Matchers and handlers are called on a background queue. All members may be called from any
/// thread.
public final class MockSession: MockableSession, StreamingSession {
    /// A closure that returns whether a stub applies to a request.
    ///
    /// The closure is called on a background queue, concurrently for different requests.
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
    /// The gate that decides when requests reach the stubs; `nil` if they reach them immediately.
    let gate: (any ExchangeGate)?

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
    /// - Parameters:
    ///   - timekeeper: The clock that measures timeouts and delays; `nil` for the system clock.
    ///   - gate: The gate that decides when requests reach the stubs. Defaults to `nil`:
    ///     immediately.
    package init(timekeeper: (any Timekeeper)?, gate: (any ExchangeGate)? = nil) {
        clock = TaskClock(timekeeper)
        self.gate = gate
    }

    /// The requests in the order of `resume()`, including those that match no stub.
    public var recordedRequests: [URLRequest] {
        stubTable.state.withLock { $0.requests }.compactMap { $0.encodable?.urlRequestValue }
    }

    /// The source of all responses, `.mock`.
    public var responseSource: Response.Source { .mock }

    /// Returns whether ``passthrough`` may add credentials to a request.
    public func addsCredentials(to url: URL) -> Bool { passthrough?.addsCredentials(to: url) ?? false }

    /// Creates a task that responds from the stubs after it is resumed.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        MockDataTask(clock: clock) { result, _ in
            if let error = result.2 { return completion(nil, nil, error) }
            completion(result.0, result.1?.urlResponse, nil)
        } send: { [self] in
            try send(request) { $0.dataTask(request: request, completion: completion) }
        }
    }

    /// Creates a task that, after it is resumed, delivers the response of a stub in parts.
    ///
    /// The response of a stub has no metrics and no interim heads.
    public func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        let mayPause = receiver.mayPause
        var base: MockDataTask?
        let stubbed = DeliveringTask(receiver, clock) { delivery in
            let sent = (request as? EncodedRequest)?.bodyCount ?? request.urlRequestValue.httpBody?.count ?? 0
            let task = MockDataTask(clock: clock, delivery: delivery) { result, trailers in
                let (data, head, error) = result
                if error == nil, sent > 0 { delivery.send(Int64(sent), of: Int64(sent)) }
                guard let head, let data else { return delivery.finish(data, head, error) }
                delivery.receive(head, length: error == nil ? Int64(data.count) : nil)
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

    /// Records a request, unless a gate receives it, and returns its timeout and its route.
    ///
    /// - Parameter pass: A closure that returns the task of another session for the request.
    private func send(
        _ request: any URLRequestEncodable, pass: @escaping @Sendable (any Session) -> any DataTask
    ) throws -> MockDataTask.Sent {
        let sent = try SentRequest(request)
        if let gate {
            return MockDataTask.Sent(
                timeout: sent.timeout,
                route: .gate { [self] task in gate.receive(GatedRequest(sent, of: task, over: self)) })
        }
        let arrival = stubTable.receive(sent)
        return MockDataTask.Sent(
            timeout: sent.timeout,
            route: .stubs { [self] in
                do { return try outcome(of: sent, arrival, pass: pass) } catch {
                    return MockDataTask.Outcome(result: (nil, nil, error))
                }
            })
    }

    private func outcome(
        of sent: SentRequest, _ arrival: StubTable.Arrival, pass: (any Session) -> any DataTask
    ) throws -> MockDataTask.Outcome {
        let (request, reply) = try reply(to: sent, arrival)
        switch reply {
        case .result(let result): return try Self.outcome(of: result, to: request)
        case .later(let handler):
            return MockDataTask.Outcome(later: {
                do { return try Self.outcome(of: try await handler(), to: request) } catch {
                    return MockDataTask.Outcome(result: (nil, nil, error))
                }
            })
        case nil:
            if let passthrough { return MockDataTask.Outcome(passed: pass(passthrough)) }
            throw noStub(for: request, arrival)
        }
    }

    /// The result of a stub for a request.
    enum Reply {
        case result(any MockableDataTaskResult)
        case later(@Sendable () async throws -> MockResponse)
    }

    /// Returns the request with the bytes of its body, and the reply of the stub; `nil` if no stub
    /// matches.
    func reply(to sent: SentRequest, _ arrival: StubTable.Arrival) throws -> (SentRequest, Reply?) {
        let request = try sent.readingBody()
        if request.hasFileBody { stubTable.replace(arrival.number, with: request) }
        guard let match = stubTable.match(request, arrival) else { return (request, nil) }
        switch match.stub.responder {
        case .handler(let handler): return (request, .result(try handler(match.request ?? request.received)))
        case .asyncHandler(let handler):
            let received = match.request ?? request.received
            return (request, .later { try await handler(received) })
        case .sequence(let responses): return (request, .result(responses.response(ofCall: match.call)))
        case .result(var result):
            while let computed = result as? ComputedResult { result = try computed.compute(request.request) }
            return (request, .result(result))
        case nil: return (request, .result(MockResponse(statusCode: 500)))  // only a server's stubs are released
        }
    }

    /// Records a request that no stub matches, and returns its error.
    func noStub(for request: SentRequest, _ arrival: StubTable.Arrival) -> WebServiceError {
        WebServiceError(.noStub, stubTable.recordUnmatched(request, arrival), request: Request(request.request))
    }

    static func outcome(of result: any MockableDataTaskResult, to request: SentRequest) throws
        -> MockDataTask.Outcome
    {
        let response = result as? MockResponse
        if response?.wire == .endless, let maximum = request.maximumResponseBytes {
            throw WebServiceError.tooLarge(maximum, Request(request.request), nil)
        }
        if let response, !response.trailers.isEmpty { _ = try response.lastChunk() }  // as a server would write them
        let triple: MockDataTask.Result
        if let response {
            triple = response.result(for: request.request)
        } else {
            let (data, urlResponse, error) = result.dataTaskResult(request: request.request)
            triple = (data, urlResponse.map(ResponseHead.init), error)
        }
        return MockDataTask.Outcome(
            result: limited(triple, length: response?.data.count, to: request), trailers: response?.trailers ?? [:],
            delay: response?.delay ?? .zero)
    }

    /// Returns a result, or an error if its body exceeds the limit of the request.
    ///
    /// - Parameter length: The length that the head of the response specifies; `nil` for the length
    ///   of the body.
    private static func limited(_ result: MockDataTask.Result, length: Int?, to request: SentRequest)
        -> MockDataTask.Result
    {
        guard let maximum = request.maximumResponseBytes else { return result }
        let head = result.1
        let tooLarge: @Sendable () -> WebServiceError = {
            .tooLarge(
                maximum, Request(request.request),
                head.map { Response(data: Data(), head: $0, source: .mock) })
        }
        if let chunks = result.2 as? MockChunks {
            let (failure, produce) = (chunks.failure, chunks.produce)
            return (nil, head, MockChunks(maximum: maximum, tooLarge: tooLarge, failure: failure, produce: produce))
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
            dataTask(request: request) { delivery.finish($0, $1.map(ResponseHead.init), $2) }
        }
    }
}
