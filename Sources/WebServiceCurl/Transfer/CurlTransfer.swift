import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The task of a ``CurlSession``: one exchange with its request and its receiver.
final class CurlTransfer: StreamTask {
    /// What an exchange needs.
    struct Submission: Sendable {
        let request: EncodedRequest
        /// Retained until the transfer completes.
        let session: CurlSession
        let receiver: any BodyReceiver
    }

    private enum Phase {
        case created(Result<Submission, any Error>, any BodyReceiver)
        /// The exchange has not begun. A cancellation releases it at once; the loop then receives
        /// an empty transfer.
        case waiting(Submission)
        /// The loop has the exchange, and completes it.
        case running
        case complete
    }

    private let loop: CurlLoop
    private let phase: Mutex<Phase>

    init(
        _ request: any URLRequestEncodable, on session: CurlSession, loop: CurlLoop, receiver: any BodyReceiver
    ) {
        self.loop = loop
        let submission = Result {
            let request = try EncodedRequest.encoding(request)
            guard !request.hasBodyStream else {
                throw WebServiceError(
                    .encoding, "CurlSession does not support body streams; pass the body as bytes",
                    request: request.source)
            }
            return Submission(request: request, session: session, receiver: receiver)
        }
        phase = Mutex(.created(submission, receiver))
    }

    var state: DataTaskState {
        phase.withLock { phase in
            switch phase {
            case .created: .suspended
            case .waiting, .running: .running
            case .complete: .completed
            }
        }
    }

    func resume() {
        let begun = phase.withLock { phase -> Result<Submission, any Error>? in
            guard case .created(let submission, _) = phase else { return nil }
            if case .success(let submission) = submission { phase = .waiting(submission) }
            return submission
        }
        do {
            if let submission = try begun?.get() { try loop.submit(self, submission.request) }
        } catch {
            refuse(error)
        }
    }

    /// Has no effect. A task that has not been resumed sends nothing, and a running one cannot be
    /// paused.
    func suspend() {}

    func cancel() {
        if !refuse(URLError(.cancelled)) { loop.cancel(self) }
    }

    /// Continues an exchange that ``CurlHandle/receiveBody(_:)`` has paused.
    ///
    /// The thread of the loop calls ``CurlHandle/unpause()``.
    func receiveMore() {
        loop.receiveMore(self)
    }

    /// Continues the request body. May be called on any thread.
    func sendMore() {
        loop.sendMore(self)
    }

    /// Completes the transfer with an error, unless its exchange has begun.
    ///
    /// - Returns: Whether the transfer is complete.
    @discardableResult
    func refuse(_ error: any Error) -> Bool {
        let (receiver, isComplete) = phase.withLock { phase -> ((any BodyReceiver)?, Bool) in
            switch phase {
            case .created(_, let receiver):
                phase = .complete
                return (receiver, true)
            case .waiting(let submission):
                phase = .complete
                return (submission.receiver, true)
            case .running: return (nil, false)
            case .complete: return (nil, true)
            }
        }
        receiver?.didComplete(.failure(error), metrics: nil)
        return isComplete
    }

    // MARK: For the loop's thread

    /// A Boolean value that indicates whether the transfer is complete.
    var isComplete: Bool { phase.withLock { if case .complete = $0 { true } else { false } } }

    /// Begins the exchange.
    ///
    /// - Returns: `nil` if the transfer is complete. Otherwise the caller calls
    ///   ``complete(_:_:_:)``, once.
    func begin() -> Submission? {
        phase.withLock { phase in
            guard case .waiting(let submission) = phase else { return nil }
            phase = .running
            return submission
        }
    }

    /// Completes an exchange that has begun.
    func complete(_ submission: Submission, _ result: Result<Headers, any Error>, _ metrics: TransportMetrics?) {
        phase.withLock { $0 = .complete }
        submission.receiver.didComplete(result, metrics: metrics)
    }
}
