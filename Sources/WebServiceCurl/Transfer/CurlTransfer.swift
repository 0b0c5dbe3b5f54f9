import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The task of a ``CurlSession``: one exchange with its request and its receiver.
final class CurlTransfer: StreamTask {
    private enum Phase {
        case created(any URLRequestEncodable, CurlSession, any BodyReceiver)
        case encoding(any BodyReceiver)
        /// The request is in flight.
        ///
        /// It is released, together with its receiver, when the transfer completes, even if the
        /// transfer is still in a queue of the loop.
        case running(EncodedRequest, CurlSession, any BodyReceiver)
        case complete
    }

    private let loop: CurlLoop
    private let phase: Mutex<Phase>

    init(
        _ request: any URLRequestEncodable, on session: CurlSession, loop: CurlLoop, receiver: any BodyReceiver
    ) {
        self.loop = loop
        phase = Mutex(.created(request, session, receiver))
    }

    var state: DataTaskState {
        phase.withLock { phase in
            switch phase {
            case .created: .suspended
            case .encoding, .running: .running
            case .complete: .completed
            }
        }
    }

    /// The request to send; `nil` if the transfer is not running.
    var submission: CurlLoop.Submission? {
        phase.withLock { phase in
            guard case .running(let request, let session, let receiver) = phase else { return nil }
            return CurlLoop.Submission(transfer: self, request: request, session: session, receiver: receiver)
        }
    }

    func resume() {
        let begun = phase.withLock { phase -> (any URLRequestEncodable, CurlSession)? in
            guard case .created(let request, let session, let receiver) = phase else { return nil }
            phase = .encoding(receiver)
            return (request, session)
        }
        guard let (request, session) = begun else { return }
        do {
            let request = try EncodedRequest.encoding(request)
            guard !request.hasBodyStream else {
                throw WebServiceError(
                    .encoding, "CurlSession does not support body streams; pass the body as bytes",
                    request: request.source)
            }
            let isWanted = phase.withLock { phase in
                guard case .encoding(let receiver) = phase else { return false }
                phase = .running(request, session, receiver)
                return true
            }
            if isWanted { try loop.submit(self, request.source) }
        } catch {
            finish(.failure(error), nil)
        }
    }

    /// Has no effect. A task that has not been resumed sends nothing, and a running one cannot be
    /// paused.
    func suspend() {}

    func cancel() {
        let wasCreated = phase.withLock { phase -> Bool? in
            switch phase {
            case .created: true
            case .encoding, .running: false
            case .complete: nil
            }
        }
        switch wasCreated {
        case true?: finish(.failure(URLError(.cancelled)), nil)
        case false?: loop.cancel(self)
        case nil: break
        }
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

    /// Completes the transfer. Only the first call has an effect. May be called on any thread.
    func finish(_ result: Result<Headers, any Error>, _ metrics: TransportMetrics?) {
        let last = phase.withLock { phase in
            defer { phase = .complete }
            return phase
        }
        switch last {
        case .created(_, _, let receiver), .encoding(let receiver), .running(_, _, let receiver):
            receiver.didComplete(result, metrics: metrics)
        case .complete: break
        }
    }
}
