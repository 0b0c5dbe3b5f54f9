import Foundation

extension WebService {
    /// The clock of the service.
    package var taskClock: TaskClock { core.clock }

    /// Returns a task for a request whose response has status 101, after which its connection
    /// uses another protocol (RFC 9110, section 7.8).
    ///
    /// The value is a streamed response without bytes. The session ends the response together with
    /// the connection. Until then, the service lists the response as in flight.
    ///
    /// - Parameter session: A closure that receives the service's session and returns the session
    ///   for the request.
    package func upgrade(
        _ request: Request, over session: @escaping @Sendable (any Session) -> any StreamingSession
    ) -> TypedTask<StreamedResponse> {
        let task = SessionTask(core, request, over: session)
        task.streamBody(bufferSize: 1)
        task.configure {
            $0.options.isStreamed = true
            $0.options[UpgradeTag.self] = true
        }
        return task.typed(accepting: .these([101])) { StreamedResponse($0) }
    }
}

/// The tag of a request that opens a connection for another protocol.
package enum UpgradeTag: RequestTagKey {
    package static let defaultValue = false
}

extension StreamedResponse {
    /// A closure that notifies the observers of messages; `nil` if there are no observers. The
    /// closure does not retain the body.
    package var messageReporter: (@Sendable (WebSocketMessage, _ isReceived: Bool) -> Void)? {
        guard let events = body.tail?.events else { return nil }
        return { events.report($0, isReceived: $1) }
    }

    /// Adds an event to the timeline and reports it to the observers.
    package func record(_ kind: Timeline.Kind, _ detail: String, closure: WebSocketClosure?) {
        body.tail?.record(kind, detail, error: closure)
    }
}

extension Reconnections {
    package convenience init(of request: Request, in service: WebService, _ policy: ServerSentEvent.Reconnection) {
        self.init(service.core, request, policy) {}
    }
}
