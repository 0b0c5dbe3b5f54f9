import Foundation
package import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A gate that decides when the requests of a ``MockSession`` reach its stubs, and what the clients
/// receive.
package protocol ExchangeGate: AnyObject, Sendable {
    /// Receives a request when it is sent, on the sending thread. The method must return
    /// immediately.
    func receive(_ exchange: any GatedExchange)

    /// Returns the connection that the client uses in place of one that a handshake has opened.
    func connection(_ connection: any ByteConnection, of exchange: any GatedExchange) -> any ByteConnection
}

/// A request that waits at an ``ExchangeGate``.
///
/// The gate lets the stubs process it any number of times, and delivers one result.
package protocol GatedExchange: AnyObject, Sendable {
    var request: ReceivedRequest { get }

    /// Whether the client no longer waits for the result, for example because it has cancelled the
    /// request or the timeout has passed.
    var isOver: Bool { get }

    /// Lets the stubs process the request.
    ///
    /// - Parameter then: A closure that is called once with the result of the stub, either on the
    ///   same thread or later in the background. The result of a request that no stub matches is an
    ///   error.
    func process(_ then: @escaping @Sendable (any MockableDataTaskResult) -> Void)

    /// Delivers a result to the client, after its delay.
    ///
    /// - Parameter didArrive: A closure that is called at most once, on any thread, when the client
    ///   receives a response or an error.
    func deliver(_ result: any MockableDataTaskResult, _ didArrive: @escaping @Sendable (GatedDelivery) -> Void)
}

/// The status and the error that a client receives.
package struct GatedDelivery: Sendable {
    package var status: Int?
    package var error: (any Error)?

    package init(status: Int? = nil, error: (any Error)? = nil) { (self.status, self.error) = (status, error) }
}

extension MockSession {
    /// Lets the stubs process a gated request.
    fileprivate func process(
        _ sent: SentRequest, cancelledWith task: MockDataTask?,
        _ then: @escaping @Sendable (any MockableDataTaskResult) -> Void
    ) {
        let arrival = stubTable.receive(sent)
        do {
            switch try reply(to: sent, arrival) {
            case (_, .result(let result)): then(result)
            case (_, .later(let handler)):
                let work = Task(executorPreference: clock.executor) { [clock] in
                    let result: MockResponse
                    do { result = try await handler() } catch { result = .error(error) }
                    clock.async { then(result) }
                }
                task?.cancelAtEnd(work)
            case (let request, nil): throw noStub(for: request, arrival)
            }
        } catch {
            then(MockResponse.error(error))
        }
    }
}

/// A request of a data task or a stream.
final class GatedRequest: GatedExchange {
    let request: ReceivedRequest
    private let sent: SentRequest
    private let task: MockDataTask
    /// The instant of the timeout.
    private let end: UInt64
    private let session: MockSession

    init(_ sent: SentRequest, of task: MockDataTask, over session: MockSession) {
        (self.sent, self.task, self.session) = (sent.preparing(), task, session)
        end = session.clock.now.addingSaturated(sent.timeout)
        request = self.sent.received
    }

    var isOver: Bool { task.state != .running }

    func process(_ then: @escaping @Sendable (any MockableDataTaskResult) -> Void) {
        session.process(sent, cancelledWith: task, then)
    }

    func deliver(_ result: any MockableDataTaskResult, _ didArrive: @escaping @Sendable (GatedDelivery) -> Void) {
        var outcome: MockDataTask.Outcome
        do { outcome = try MockSession.outcome(of: result, to: sent) } catch {
            outcome = MockDataTask.Outcome(result: (nil, nil, error))
        }
        // At the same instant, the timeout precedes the response.
        if session.clock.now.addingSaturated(outcome.delay) >= end {
            didArrive(GatedDelivery(error: URLError(.timedOut)))
        } else {
            let chunks = outcome.result.2 as? MockChunks
            let error = chunks == nil ? outcome.result.2 : chunks?.failure
            let status = outcome.result.1.flatMap { error == nil && $0.isHTTP ? $0.status : nil }
            outcome.didArrive = { didArrive(GatedDelivery(status: status, error: error)) }
        }
        task.proceed(outcome)
    }
}

/// The handshake of a connection.
final class GatedConnection: GatedExchange {
    let request: ReceivedRequest
    private let sent: SentRequest
    private let encoded: EncodedRequest
    private let session: MockSession
    private let response = Once<MockResponse?>()
    private let isEnded = Mutex(false)

    init(_ sent: SentRequest, to request: EncodedRequest, over session: MockSession) {
        (self.sent, encoded, self.session) = (sent, request, session)
        self.request = sent.received
    }

    var isOver: Bool { isEnded.withLock { $0 } }

    func process(_ then: @escaping @Sendable (any MockableDataTaskResult) -> Void) {
        session.process(sent, cancelledWith: nil, then)
    }

    func deliver(_ result: any MockableDataTaskResult, _ didArrive: @escaping @Sendable (GatedDelivery) -> Void) {
        let response = result as? MockResponse ?? MockResponse(statusCode: 500)
        guard response.wire != .noResponse else { return }
        didArrive(
            GatedDelivery(status: response.failure == nil ? response.statusCode : nil, error: response.failure))
        self.response.set(response)
    }

    /// Waits for the result, and opens the connection.
    func connection() async throws -> any ByteConnection {
        defer { isEnded.withLock { $0 = true } }
        guard let response = await response.value(orIfCancelled: nil) else { throw URLError(.cancelled) }
        let connection = try await session.connection(to: encoded, with: response)
        return session.gate?.connection(connection, of: self) ?? connection
    }
}
