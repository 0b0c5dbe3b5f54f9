import Foundation
import Synchronization
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The task of a ``CurlSession``: one exchange with its request and its receiver.
final class CurlTransfer: StreamTask {
    /// The values that an exchange needs. A cancellation before the exchange begins releases them
    /// immediately.
    private struct Content {
        let request: Result<EncodedRequest, any Error>
        let receiver: any BodyReceiver
        let session: CurlSession
    }

    private struct State {
        var phase: TaskPhase<Content>
        /// Whether the loop has begun the exchange and completes it.
        var hasBegun = false
        /// The task that determines the route.
        var routing: Task<Void, Never>?
        var route = CurlRoute()
    }

    /// The handle that executes the exchange; `nil` before and after.
    ///
    /// nonisolated(unsafe): only the thread that has the loop's turn accesses it.
    nonisolated(unsafe) var handle: CurlHandle?

    private let loop: CurlLoop
    private let shared: Lock<State>

    init(
        _ request: any URLRequestEncodable, on session: CurlSession, loop: CurlLoop, receiver: any BodyReceiver
    ) {
        self.loop = loop
        let request = Result {
            let request = try EncodedRequest.encoding(request)
            guard !request.hasBodyStream else {
                throw WebServiceError(
                    .encoding, "CurlSession does not support an httpBodyStream; use a Request.Body",
                    request: request.source)
            }
            return request
        }
        shared = Lock(State(phase: .suspended(Content(request: request, receiver: receiver, session: session))))
    }

    var state: DataTaskState { shared.withLock { $0.phase.state } }

    func resume() {
        guard let content = shared.withLock({ $0.phase.resume() }) else { return }
        do {
            let request = try content.request.get()
            let configuration = content.session.configuration
            guard configuration.hasRoutes else {
                let fitsOneSend = request.fitsOneSend && !content.receiver.mayPause
                return try loop.submit(self, request, fitsOneSend: fitsOneSend)
            }
            findRoute(of: request, configuration)
        } catch {
            refuse(error)
        }
    }

    /// Calls the closures of the configuration, then submits the request.
    private func findRoute(of request: EncodedRequest, _ configuration: CurlSession.Configuration) {
        let routing = Task(executorPreference: loop.executor) { [self] in
            do {
                let route = try await configuration.route(for: request)
                shared.withLock { $0.route = route }
                try loop.submit(self, request)
            } catch {
                refuse(error)
            }
        }
        let isNeeded = shared.withLock { state in
            if state.phase.content != nil { state.routing = routing }
            return state.phase.content != nil
        }
        if !isNeeded { routing.cancel() }
    }

    /// Has no effect. A task that has not been resumed sends nothing, and a resumed task cannot be
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

    /// Continues the request body. This method may be called on any thread.
    func sendMore() {
        loop.sendMore(self)
    }

    /// Completes the transfer with an error, unless its exchange has begun.
    ///
    /// - Returns: Whether the transfer is complete.
    @discardableResult
    func refuse(_ error: any Error) -> Bool {
        let (refused, state, routing) = shared.withLock { state in
            (state.hasBegun ? .completed : state.phase.complete(), state.phase.state, state.routing.take())
        }
        routing?.cancel()
        refused.content?.receiver.didComplete(.failure(error), metrics: nil)
        return state == .completed
    }

    // MARK: For the thread that has the loop's turn

    /// Whether the transfer is complete.
    var isComplete: Bool { state == .completed }

    /// Begins the exchange.
    ///
    /// - Returns: `nil` if the transfer is complete. Otherwise the caller calls ``complete(_:_:)``,
    ///   once.
    func begin() -> (request: EncodedRequest, receiver: any BodyReceiver, route: CurlRoute)? {
        shared.withLock { state in
            guard case .running(let content) = state.phase, case .success(let request) = content.request else {
                return nil
            }
            state.hasBegun = true
            state.routing = nil
            return (request, content.receiver, state.route)
        }
    }

    /// Completes an exchange that has begun.
    func complete(_ result: Result<Headers, any Error>, _ metrics: TransportMetrics?) {
        let completed = shared.withLock { $0.phase.complete() }
        completed.content?.receiver.didComplete(result, metrics: metrics)
    }
}

extension EncodedRequest {
    /// Whether one call can send the whole request.
    fileprivate var fitsOneSend: Bool {
        stream == nil && bodySource == nil && body?.count ?? 0 <= 8 << 10 && source.options.expectsContinue == nil
    }

    /// The scheme, host and port, as written in the URL.
    var host: Substring {
        var slashes = 0
        let end = url.utf8.firstIndex { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes == 3 || byte == UInt8(ascii: "?")
        }
        return url[..<(end ?? url.endIndex)]
    }
}
