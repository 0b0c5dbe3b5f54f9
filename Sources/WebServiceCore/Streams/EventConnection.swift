import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The iteration over an event stream, including its reconnections.
struct EventConnection: ElementReader {
    private let service: ServiceCore
    private let substitution: SessionSubstitution?
    private let request: Request
    private let reconnects: Bool
    private let terminator: (@Sendable (ServerSentEvent) -> Bool)?
    private var parser: ServerSentEventParser
    /// The last event ID in ``status``.
    private var lastEventID: String
    private var bytes: ResponseBody.AsyncIterator?
    /// The task of the first connection; `nil` after it was used.
    private var first: SessionTask?
    /// The instant at which the first task was started. This instant determines whether closing the
    /// session has cancelled later tasks.
    private var start: UInt64?
    /// The last reconnection time that the stream set; `nil` if it has not set one.
    private var reconnectionTime: Duration?
    /// Whether a response with an event stream was received.
    private var wasOpen = false
    /// The response of the last connection if its status was not accepted.
    private var refusal: Response?
    private var isOver = false
    private let reconnections: Reconnections
    private let status: EventStreamStatus

    init(
        _ task: SessionTask, _ reconnection: ServerSentEvent.Reconnection, _ status: EventStreamStatus,
        maximumSize: Int, until terminator: (@Sendable (ServerSentEvent) -> Bool)?
    ) {
        (service, substitution) = (task.service, task.substitution)
        request = task.request
        first = task
        reconnections = Reconnections(task.service, task.request, reconnection) { status.end() }
        reconnects = reconnection.delays != nil
        self.status = status
        self.terminator = terminator
        lastEventID = status.lastEventID
        parser = ServerSentEventParser(
            lastEventID: lastEventID, fieldID: Request.isUnchangedFieldValue(lastEventID) ? lastEventID : "",
            maximumSize: maximumSize)
    }

    /// The outcome of a connection or of a part of it.
    private enum Step {
        case event(ServerSentEvent)
        case end
        /// The connection has ended, because of an error or because the server closed it.
        case lost((any Error)?, isTransient: Bool, refusal: Response? = nil)
    }

    mutating func next() async throws -> ServerSentEvent? {
        guard let executor = service.clock.work else { return try await nextEvent() }
        return try await withTaskExecutorPreference(executor) { try await nextEvent() }
    }

    private mutating func nextEvent() async throws -> ServerSentEvent? {
        try reconnections.begin()
        while !isOver {
            switch try await step() {
            case .event(let event):
                reconnections.didDeliver()
                if terminator?(event) == true {
                    bytes?.finish()
                    end()
                }
                return event
            case .end:
                end()
                if terminator != nil, wasOpen { throw Self.endedEarly(nil, request) }
            case .lost(let error, let isTransient, let refusal):
                bytes = nil
                reconnectionTime = parser.reconnectionTime ?? reconnectionTime
                parser = parser.continued()
                guard
                    let delay = reconnections.delay(
                        after: error, isTransient: isTransient, refusal: refusal, reconnectionTime)
                else {
                    end()
                    if terminator != nil, isTransient, wasOpen { throw Self.endedEarly(error, request) }
                    if let error { throw error }
                    return nil
                }
                status.set(.waiting(delay, after: error))
                try await reconnections.sleep(for: delay)
            }
        }
        return nil
    }

    private mutating func end() {
        isOver = true
        bytes = nil
        status.end()
    }

    private mutating func step() async throws -> Step {
        do {
            if bytes == nil {
                guard let body = try await open() else { return .end }
                // A cancellation does not reach the connection before the service has listed it.
                try reconnections.checkNotCancelled()
                bytes = body.makeAsyncIterator()
            }
            while true {
                let event = try parser.next()
                if parser.lastEventID != lastEventID {
                    lastEventID = parser.lastEventID
                    status.set(lastEventID: lastEventID)
                }
                if let event { return .event(event) }
                guard let chunk = try await bytes?.next() else { return .lost(nil, isTransient: true) }
                parser.append(chunk)
            }
        } catch let error as WebServiceError
            where reconnects && [.unacceptableStatus, .unexpectedContentType].contains(error.code)
        {
            return .lost(error, isTransient: error.transientStatus != nil)
        } catch let error as URLError where error.code != .cancelled {
            return .lost(error, isTransient: true)
        } catch {
            // An error mapper has replaced the error of the status.
            guard reconnects, let refusal = refusal.take() else { throw error }
            return .lost(error, isTransient: TransientFailure.statuses.contains(refusal.status), refusal: refusal)
        }
    }

    /// Opens a connection to the event stream.
    ///
    /// - Returns: The body; `nil` if the server ends the stream with status 204.
    private mutating func open() async throws -> ResponseBody? {
        refusal = nil
        if reconnects, !request.content.isReplayable {
            throw WebServiceError.bodyNotReplayable(request)
        }
        let task = first.take() ?? SessionTask(service, request, over: substitution)
        if let start { task.systemStart = start }
        defer { start = task.systemStart }
        task.configure { request in
            // No other media type is accepted, so an `Accept` field of the service, such as one for
            // JSON, must not apply.
            if request.headers[.accept]?.contains("text/event-stream") != true {
                request.headers[.accept] = "text/event-stream"
            }
            if request.headers[.cacheControl] == nil { request.headers[.cacheControl] = "no-store" }
            if !parser.fieldID.isEmpty { request.headers["Last-Event-ID"] = parser.fieldID }
        }
        status.set(.connecting)
        let head = task.stream()
        let response: StreamedResponse
        do { response = try await head.value } catch {
            refusal = (try? await head.response).flatMap { (200..<300).contains($0.status) ? nil : $0 }
            throw error
        }
        guard response.status != 204 else { return nil }
        let type = response.response.header(.contentType)
        guard MediaType.matches(type ?? "", pattern: "text/event-stream") else {
            throw WebServiceError(
                .unexpectedContentType,
                "the response has \(MediaType.text(type)) instead of text/event-stream; check the URL",
                request: request, response: response.response)
        }
        parser.onComment = status.onComment
        status.set(.open(response.response))
        wasOpen = true
        return response.body
    }

    private static func endedEarly(_ error: (any Error)?, _ request: Request) -> WebServiceError {
        WebServiceError(
            .streamEndedEarly, "the event stream ended before its terminating event; send the request again",
            request: request,
            underlying: error)
    }
}
