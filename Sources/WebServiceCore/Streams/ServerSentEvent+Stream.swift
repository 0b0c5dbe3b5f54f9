extension ServerSentEvent {
    /// The state of an event stream's connection.
    public enum ConnectionState: Sendable {
        /// A request is being sent, and no response has arrived yet.
        case connecting
        /// The response has arrived; its body is the event stream.
        case open(Response)
        /// The connection has ended, and the next one is opened after a delay.
        ///
        /// The error is `nil` if the server closed the connection.
        case waiting(Duration, after: (any Error)?)
    }

    /// The events of an event stream, or their decoded data.
    ///
    /// ``SessionTask/events(_:lastEventID:maximumSize:until:)-2jzad`` returns such a stream. It can
    /// be iterated over only once; leaving the loop closes the connection. Events that precede an
    /// error are delivered before the error is thrown.
    public struct Stream<Element: Sendable>: AsyncSequence, Sendable {
        let status: EventStreamStatus
        private let elements: BodySequence<Element>

        init(_ status: EventStreamStatus, _ elements: BodySequence<Element>) {
            self.status = status
            self.elements = elements
        }

        /// Returns an iterator over the elements.
        ///
        /// The iterator throws the errors of the exchange and of ``ResponseBody``, and the errors
        /// that are documented for the method that created the stream. After an error, the iterator
        /// returns `nil`.
        public func makeAsyncIterator() -> some AsyncIteratorProtocol<Element, any Error> & Sendable {
            elements.makeAsyncIterator()
        }

        /// Adds a closure that receives the response of every connection, before its first event.
        ///
        /// The reader of the events calls the closure. Call this method before the iteration.
        public func onOpen(_ handler: @escaping @Sendable (Response) -> Void) -> Self {
            status.add(onOpen: handler)
            return self
        }

        /// Adds a closure that receives the text of every comment, in order with the events.
        ///
        /// Servers send comments to keep a connection open. The reader of the events calls the
        /// closure. Call this method before the iteration.
        public func onComment(_ handler: @escaping @Sendable (String) -> Void) -> Self {
            status.add(onComment: handler)
            return self
        }

        /// A sequence of the states of the connection: the current state, and the new state after
        /// every change.
        ///
        /// A slow reader receives the latest state. The sequence ends with the event stream. Every
        /// access returns a new sequence.
        public var states: AsyncStream<ConnectionState> { status.states }

        /// The last event ID of the stream; empty if there is none.
        ///
        /// The ID changes before an event with an ID is delivered. An event with an ID but no data
        /// is not delivered but also changes the ID. To continue the stream in another process,
        /// store the ID and pass it as `lastEventID`.
        public var lastEventID: String { status.lastEventID }
    }
}

/// The state of an event stream for code other than its reader.
final class EventStreamStatus: Sendable {
    private struct State {
        var connection: ServerSentEvent.ConnectionState?
        var lastEventID: String
        var isOver = false
        var observers = ChangeObservers<ServerSentEvent.ConnectionState>()
        var onOpen: [@Sendable (Response) -> Void] = []
        var onComment: [@Sendable (String) -> Void] = []
    }

    private let value: Mutex<State>

    init(lastEventID: String) {
        value = Mutex(State(lastEventID: lastEventID))
    }

    deinit { end() }

    var lastEventID: String { value.withLock { $0.lastEventID } }

    var states: AsyncStream<ServerSentEvent.ConnectionState> {
        let states = ChangeObservers.changes { [weak self] body in
            self?.value.withLock { body(&$0.observers, $0.isOver ? nil : $0.connection) }
        }
        if value.withLock(\.isOver) { finish() }
        return states
    }

    func add(onOpen handler: @escaping @Sendable (Response) -> Void) {
        value.withLock { $0.onOpen.append(handler) }
    }

    func add(onComment handler: @escaping @Sendable (String) -> Void) {
        value.withLock { $0.onComment.append(handler) }
    }

    /// The closure that receives the comments; `nil` if there is none.
    var onComment: (@Sendable (String) -> Void)? {
        let handlers = value.withLock { $0.onComment }
        guard !handlers.isEmpty else { return nil }
        return { text in
            for handler in handlers { handler(text) }
        }
    }

    func set(_ connection: ServerSentEvent.ConnectionState) {
        let (observers, handlers) = value.withLock { state in
            state.connection = connection
            return (state.observers.all, state.onOpen)
        }
        if case .open(let response) = connection {
            for handler in handlers { handler(response) }
        }
        for observer in observers { observer.yield(connection) }
    }

    func set(lastEventID: String) { value.withLock { $0.lastEventID = lastEventID } }

    /// Ends the sequences of states.
    func end() {
        value.withLock { $0.isOver = true }
        finish()
    }

    private func finish() {
        for observer in value.withLock(\.observers.all) { observer.finish() }
    }
}
