import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// A recorder of the last exchanges of services, within limits. It notifies the pages of changes.
final class ExchangeStore: Observer {
    fileprivate enum Phase {
        case recording
        /// The feeds are delivering the last changes.
        case ending
        case closed
    }

    fileprivate struct State {
        /// The exchanges by number.
        var exchanges: [Int: RecordedExchange] = [:]
        /// The numbers by exchange identifier.
        var numbers: [UInt64: Int] = [:]
        var identifiers: [Int: UInt64] = [:]
        /// The number of the oldest exchange.
        var oldest = 1
        /// The number of the next exchange.
        var next = 1
        var size = 0
        /// The number of changes so far.
        var version = 0
        var phase = Phase.recording
        /// The number of feeds with open pages.
        var readers = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter = 0
    }

    /// The changes since the position of a feed.
    struct Changes {
        let version: Int
        /// The number of the oldest exchange. Exchanges with lower numbers were removed.
        let oldest: Int
        /// The exchanges whose rows have changed, with the oldest first.
        var exchanges: [RecordedExchange]
        /// The next exchanges whose details have changed, and the position after them.
        var details: [RecordedExchange]
        var detailsEnd: Int
        /// Whether the store is closed. If so, there will be no further changes.
        let isLast: Bool
    }

    let redaction: Redaction
    /// Whether the page shows bodies that cannot be redacted.
    let showsBinaryBodies: Bool
    /// Sends a request with the observed service; `nil` if there is no such service.
    let send: (@Sendable (Request) -> Void)?
    private let maximumExchanges: Int
    private let bodyLimit: Int
    private let memoryLimit: Int
    private let state = Mutex(State())
    private let allDelivered = DispatchSemaphore(value: 0)
    /// The approximate number of bytes of exchanges whose details are delivered in one batch, and
    /// the maximum difference of the first and last version in a batch.
    private static let (batchSize, batchCount) = (64 << 10, 200)

    init(
        maximumExchanges: Int, bodyLimit: Int, memoryLimit: Int, redaction: Redaction, showsBinaryBodies: Bool = false,
        send: (@Sendable (Request) -> Void)? = nil
    ) {
        self.maximumExchanges = max(maximumExchanges, 1)
        self.bodyLimit = max(bodyLimit, 0)
        self.memoryLimit = memoryLimit
        self.redaction = redaction
        self.showsBinaryBodies = showsBinaryBodies
        self.send = send
    }

    // MARK: Recording

    var streamedBodyLimit: Int { bodyLimit }

    func observe(_ event: ExchangeEvent) { observe(event, of: nil) }

    /// Records an event of an exchange.
    ///
    /// - Parameter service: The name of the service; `nil` if it has none.
    func observe(_ event: ExchangeEvent, of service: String?) {
        guard !isClosed else { return }
        let change = change(event)
        let (waiters, removed) = state.withLock { state in
            guard state.phase == .recording, let number = state.number(of: event) else {
                return ([] as [CheckedContinuation<Void, Never>], [] as [RecordedExchange])
            }
            state.version += 1
            let known = state.exchanges.removeValue(forKey: number)  // prevents a copy when it is changed
            state.size -= known?.size ?? 0
            let parent = event.exchange.parent.flatMap { state.numbers[$0] }
            var exchange = known ?? RecordedExchange(event.exchange, number: number, parent: parent, service: service)
            if let change { exchange.apply(change, at: event.time, limit: bodyLimit) }
            if let id = event.related { exchange.related[id] = state.numbers[id] }
            if known == nil, let parent, let request = exchange.request { state.show(request, in: parent) }
            exchange.version = state.version
            if exchange.changesDetails(change, at: event.time) { exchange.detailsVersion = state.version }
            state.size += exchange.size
            state.exchanges[number] = exchange
            return (state.takeWaiters(), removeOldest(&state))
        }
        for waiter in waiters { waiter.resume() }
        withExtendedLifetime(removed) {}  // deallocated outside the lock
    }

    private var isClosed: Bool { state.withLock { $0.phase != .recording } }

    private func change(_ event: ExchangeEvent) -> RecordedChange? {
        switch event.kind {
        case .created, .interimHeadReceived: return nil
        case .attemptStarted(let number, let request):
            return .attempt(RecordedAttempt(number, request, start: event.time, bodyLimit: bodyLimit))
        case .headReceived(let head):
            return .response(RecordedResponse(head, RecordedBody(Data(), limit: 0), isStreamed: true))
        case .bodyReceived(let bytes):
            return .body(RecordedBody(bytes, limit: bodyLimit))
        case .message(let message, let isReceived):
            return .message(
                RecordedMessages.Message(message, isReceived: isReceived, at: event.date, limit: bodyLimit))
        case .attemptEnded(_, .success(let response), let metrics):
            return .attemptEnd(RecordedResponse(response, limit: bodyLimit), nil, metrics)
        case .attemptEnded(_, .failure(let error), let metrics):
            return .attemptEnd(response(of: error), RecordedFailure(error), metrics)
        case .recorded(let event):
            return .event(event, event.error.flatMap(RecordedFailure.init(endedBy:)))
        case .ended(let summary):
            let isStreamed = summary.isStreamed
            let timeline = summary.timeline
            let explanation = String(timeline.explain().prefix(RecordedExchange.maximumExplanation))
            switch summary.result {
            case .success(let response):
                return .end(
                    RecordedResponse(response, isStreamed: isStreamed, limit: bodyLimit), nil, isStreamed: isStreamed,
                    timeline, explanation: explanation)
            case .failure(let error):
                return .end(
                    response(of: error), RecordedFailure(error), isStreamed: isStreamed, nil,
                    explanation: explanation)
            }
        }
    }

    private func response(of error: any Error) -> RecordedResponse? {
        guard let error = error as? WebServiceError, let head = error.response?.head else { return nil }
        return RecordedResponse(
            head, RecordedBody(error.body ?? Data(), limit: bodyLimit), isStreamed: false)
    }

    /// Removes the oldest exchanges while a limit is exceeded.
    private func removeOldest(_ state: inout State) -> [RecordedExchange] {
        var removed: [RecordedExchange] = []
        while state.exchanges.count > maximumExchanges || state.size > memoryLimit && state.exchanges.count > 1 {
            if let exchange = state.exchanges.removeValue(forKey: state.oldest) {
                state.size -= exchange.size
                removed.append(exchange)
            }
            if let identifier = state.identifiers.removeValue(forKey: state.oldest) { state.numbers[identifier] = nil }
            state.oldest += 1
        }
        return removed
    }

    /// Ends the recording, waits until the pages have received the last changes, and releases all
    /// exchanges.
    ///
    /// - Parameter timeout: The maximum duration of the wait, in case a page does not read.
    func close(timeout: DispatchTimeInterval = .seconds(1)) {
        let (waiters, waits) = state.withLock { state in
            guard state.phase == .recording else { return ([] as [CheckedContinuation<Void, Never>], false) }
            state.phase = .ending
            return (state.takeWaiters(), state.readers > 0)
        }
        for waiter in waiters { waiter.resume() }
        if waits { _ = allDelivered.wait(timeout: .now() + timeout) }
        let (old, feeds) = state.withLock { state in
            let feeds = state.takeWaiters()
            let old = state
            state = State(phase: .closed, readers: old.readers)
            return (old, feeds)
        }
        for feed in feeds { feed.resume() }
        withExtendedLifetime(old) {}  // deallocated outside the lock
    }

    /// The registration of a feed, which lasts until this object is deallocated. A page closes its
    /// feed when it has received the last changes.
    final class Reader: Sendable {
        private let store: ExchangeStore

        init(of store: ExchangeStore) {
            self.store = store
            store.state.withLock { $0.readers += 1 }
        }

        deinit {
            let isLast = store.state.withLock { state in
                state.readers -= 1
                return state.readers == 0 && state.phase == .ending
            }
            if isLast { store.allDelivered.signal() }
        }
    }

    // MARK: Reading

    /// Whether a page is waiting for changes.
    var hasWaiters: Bool { state.withLock { !$0.waiters.isEmpty } }

    /// Returns all exchanges, with the oldest first.
    func exchanges() -> [RecordedExchange] {
        state.withLock { Array($0.exchanges.values) }.sorted { $0.number < $1.number }
    }

    func exchange(_ number: Int) -> RecordedExchange? {
        state.withLock { $0.exchanges[number] }
    }

    /// Returns the changes since a position.
    func changes(after position: ChangeFeed.Position) -> Changes {
        let details = { (exchange: RecordedExchange, isLast: Bool) in
            isLast ? exchange.version : exchange.detailsVersion
        }
        var changes = state.withLock { state in
            // A page of an earlier run may specify a version that does not exist yet.
            let position = max(position.rows, position.details) > state.version ? ChangeFeed.Position() : position
            // At the end, the bytes that were received last are also delivered.
            let isLast = state.phase != .recording
            let next = state.exchanges.values.lazy.map { details($0, isLast) }.filter { $0 > position.details }.min()
            let end = (next ?? 0) + Self.batchCount
            return Changes(
                version: state.version, oldest: state.oldest,
                exchanges: state.exchanges.values.filter { $0.version > position.rows },
                details: next == nil
                    ? [] : state.exchanges.values.filter { (position.details + 1...end).contains(details($0, isLast)) },
                detailsEnd: min(end, state.version), isLast: isLast)
        }
        changes.exchanges.sort { $0.number < $1.number }
        changes.details.sort { details($0, changes.isLast) < details($1, changes.isLast) }
        var size = 0
        let count = changes.details.firstIndex { exchange in
            defer { size += exchange.size }
            return size >= Self.batchSize
        }
        if let count {
            changes.details.removeSubrange(count...)
            changes.detailsEnd = changes.details.last.map { details($0, changes.isLast) } ?? changes.detailsEnd
        }
        return changes
    }

    /// Waits until the store has a newer version or begins to close, or until the Swift task is
    /// cancelled.
    func waitForChange(after version: Int) async {
        await wait { $0.phase == .recording && $0.version == version }
    }

    /// Waits until the store is closed, or until the Swift task is cancelled.
    func waitForEnd() async {
        await wait { $0.phase != .closed }
    }

    private func wait(while condition: @Sendable (borrowing State) -> Bool) async {
        let number = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    // The cancellation handler waits for the lock, so it cannot run between this
                    // check and its effect.
                    guard condition(state), !Task.isCancelled else { return false }
                    state.waiters[number] = continuation
                    return true
                }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}

extension ExchangeStore.State {
    /// Returns the number of an event's exchange, or `nil` if the exchange was removed or not
    /// recorded from its start.
    fileprivate mutating func number(of event: ExchangeEvent) -> Int? {
        let identifier = event.exchange.id
        if let number = numbers[identifier] { return number }
        guard case .created = event.kind else { return nil }
        defer { next += 1 }
        (numbers[identifier], identifiers[next]) = (next, identifier)
        return next
    }

    /// Shows the first request that is sent for an exchange that has no request of its own.
    fileprivate mutating func show(_ request: (method: String, url: String), in number: Int) {
        guard exchanges[number]?.request == nil else { return }
        exchanges[number]?.request = request
        exchanges[number]?.version = version
        exchanges[number]?.detailsVersion = version
    }

    fileprivate mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
        defer { waiters = [:] }
        return Array(waiters.values)
    }
}

extension ExchangeEvent {
    /// The identifier of the exchange that a recorded event refers to.
    fileprivate var related: UInt64? { if case .recorded(let event) = kind { event.related } else { nil } }
}

/// An observer that records exchanges under the name of their service.
struct NamedObserver: Observer {
    let name: String
    let store: ExchangeStore

    var streamedBodyLimit: Int { store.streamedBodyLimit }

    func observe(_ event: ExchangeEvent) { store.observe(event, of: name) }
}
