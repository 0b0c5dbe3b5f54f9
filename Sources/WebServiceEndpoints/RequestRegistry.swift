import Foundation
import WebServiceCore
import WebServiceStorage

/// The typed requests of one service that are in flight, and the tasks that wait for their
/// responses.
final class RequestRegistry: Sendable {
    /// A request in flight.
    struct Flight: Sendable {
        let id: UInt64
        let type: any ServiceRequest.Type
        /// The request as a key; `nil` if the request is not `Hashable`.
        let request: RequestKey?
        let key: RequestKey?
        /// The storage key of the response.
        let storageKey: StorageKey?
        /// Starts the Swift task that executes the request. A queued request first waits for its
        /// turn.
        let start: @Sendable (_ turn: Once<Bool>?) -> Task<Void, Never>
        /// The lines in which equal flights are looked up. The last line determines the duplicates.
        let lines: [Line]
        /// The numbers of the lines that contain the flight while it is in flight, in the order of
        /// `lines`.
        var places: [UInt64] = []
        var work: Task<Void, Never>?
        /// The signal that the flight may start; `nil` if the flight need not wait.
        var turn: Once<Bool>?
        var waiters: [UInt64: Waiter] = [:]
        /// Whether a request that was started later has succeeded for the same storage key.
        var isSuperseded = false

        init(
            id: UInt64, _ request: any ServiceRequest, key: RequestKey?, account: String?, storageKey: StorageKey?,
            start: @escaping @Sendable (_ turn: Once<Bool>?) -> Task<Void, Never>
        ) {
            self.id = id
            type = Swift.type(of: request)
            self.request = RequestKey(request: request)
            self.key = key
            self.storageKey = storageKey
            self.start = start
            let account = account.map { Array($0.utf8) }
            lines = [(self.request, false), (key, true)].compactMap { base, isKey in
                base.map { Line(isKey: isKey, account: account, base: $0) }
            }
        }
    }

    /// The property that equal flights share. It includes the account, because requests of
    /// different accounts are never equal.
    struct Line: Hashable {
        let isKey: Bool
        let account: [UInt8]?
        let base: RequestKey
    }

    /// The search for the line that is equal to a line of a new flight. Requests and keys are
    /// hashed and compared here, outside the lock, because their `==` and `hash(into:)` are custom
    /// code.
    struct Search: Sendable {
        let line: Line
        let hash: Int
        private(set) var found: UInt64?
        private(set) var compared: Set<UInt64> = []

        init(_ line: Line) {
            self.line = line
            hash = line.hashValue
        }

        mutating func compare(_ candidates: [(number: UInt64, line: Line)]) {
            for candidate in candidates {
                compared.insert(candidate.number)
                if candidate.line == line { found = candidate.number }
            }
        }
    }

    /// A task that waits for the response of a flight.
    struct Waiter: Sendable {
        let task: SessionTask
        /// Delivers the response, and returns whether the task accepted it as its result.
        let deliver: @Sendable (Delivery) -> Bool
    }

    /// The response of one flight.
    struct Delivery: Sendable {
        /// The identifier of the flight.
        let id: UInt64
        /// The value, or the error of the request.
        let result: Result<any Sendable, any Error>
        let response: Result<Response, any Error>
        /// The endpoint's exchange that ended last; `nil` if the endpoint sent no request.
        let exchange: FlightRecorder.Sent?
    }

    /// The result of entering a request.
    enum Entrance {
        /// The request waits for the response of a new flight, which the caller must start.
        ///
        /// The flight starts when all equal flights have ended. The identifier is that of the last
        /// equal flight; `nil` if the flight need not wait.
        case starts(after: UInt64?)
        /// The request waits for the response of the flight with this identifier, which is in
        /// progress.
        case waits(UInt64)
        /// An equal request is in flight. It may have another type if it has the same key.
        case duplicate(isOfSameType: Bool)
    }

    private let state = Mutex(State())

    /// Looks for equal requests in flight and enters the new request, atomically.
    func enter(_ flight: Flight, _ mode: DuplicateMode, _ waiter: Waiter) -> Entrance {
        var searches = flight.lines.map(Search.init)
        while true {
            let (entered, candidates) = change { [searches] state in
                let candidates = searches.map { state.candidates(for: $0) }
                return (
                    candidates.allSatisfy(\.isEmpty) ? state.enter(flight, searches, mode, waiter: waiter) : nil,
                    candidates
                )
            }
            if let entered {
                cancel(entered.replaced)
                return entered.entrance
            }
            // Each pass compares only the lines that have been added since the last pass, so
            // another pass is needed only if another request entered in the meantime.
            for index in searches.indices { searches[index].compare(candidates[index]) }
        }
    }

    /// Starts a flight that was entered. Does nothing if the flight has been abandoned in the
    /// meantime.
    func start(_ flight: Flight) {
        guard let entered = state.withLock({ $0.flights[flight.id] }) else { return }
        let work = flight.start(entered.turn)
        let isInProgress = state.withLock { state in
            state.flights[flight.id]?.work = work
            return state.flights[flight.id] != nil
        }
        // If the flight was abandoned before its work was stored, the work is cancelled here.
        if !isInProgress { work.cancel() }
    }

    /// Ends a flight.
    ///
    /// - Parameter store: Called while the lock is held, so that no later flight can intervene. It
    ///   may only create a Swift task.
    /// - Returns: The flight with its waiters; `nil` if all waiters have left.
    func end(_ id: UInt64, isSuccess: Bool, _ store: (Flight) -> Void) -> Flight? {
        change { $0.end(id, isSuccess: isSuccess, store) }
    }

    private func leave(_ flight: UInt64, _ waiter: UInt64) {
        if let abandoned = change({ $0.leave(flight, waiter) }) { cancel([abandoned]) }
    }

    /// Changes the state, and starts the flights whose turn has come.
    private func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, turns, spent) = state.withLock { state in
            defer {
                state.turns = []
                state.spent = []
            }
            return (body(&state), state.turns, state.spent)
        }
        withExtendedLifetime(spent) {}
        for turn in turns { turn.set(true) }
        return result
    }

    /// Returns whether a request in flight satisfies the predicate.
    func contains(_ isMeant: (Flight) -> Bool) -> Bool {
        state.withLock { $0.flights }.values.contains(where: isMeant)
    }

    /// Cancels the requests in flight that satisfy the predicate. Later requests are cancelled
    /// first, so a queued request does not start when the one before it is cancelled.
    func cancel(_ isMeant: (Flight) -> Bool) {
        for flight in state.withLock({ $0.flights }).values.filter(isMeant).sorted(by: { $0.id > $1.id }) {
            for waiter in flight.waiters.values { waiter.task.cancel() }
        }
    }

    /// Cancels the typed requests in flight when the service is deallocated. Tasks that are resumed
    /// later are not affected, so a request of a temporary service can be awaited.
    func close() {
        let reads = state.withLock { $0.reads }
        cancel { $0.type != SharedRequest.self }
        for read in reads.values { read.cancel() }
    }

    /// Registers a storage read. ``close()`` cancels it, but no lookup finds it.
    func beginRead(_ id: UInt64, _ task: SessionTask) {
        state.withLock { $0.reads[id] = task }
    }

    func endRead(_ id: UInt64) {
        let task = state.withLock { $0.reads.removeValue(forKey: id) }
        withExtendedLifetime(task) {}
    }

    /// Cancels abandoned or replaced flights and their remaining waiters. Must be called outside
    /// the lock.
    private func cancel(_ flights: [Flight]) {
        for flight in flights {
            flight.turn?.set(false)
            flight.work?.cancel()
            for waiter in flight.waiters.values { waiter.task.cancel() }
        }
    }

    /// The membership of a waiter in a flight. Cancelling the ticket removes the waiter from the
    /// flight.
    struct Ticket: Cancellable {
        let registry: RequestRegistry
        let flight: UInt64
        let waiter: UInt64

        func cancel() { registry.leave(flight, waiter) }
    }
}

extension RequestRegistry {
    /// The flights in progress, the lines that contain them, and the tasks that read from storages.
    struct State: Sendable {
        var flights: [UInt64: Flight] = [:]
        /// The tasks that read from storages.
        var reads: [UInt64: SessionTask] = [:]
        /// The turns of the flights that may now start.
        var turns: [Once<Bool>] = []
        /// Lines that have become empty. They are released outside the lock.
        var spent: [Line] = []
        /// The lines by number. The flights of each line are in the order in which they were
        /// entered.
        private var lines: [UInt64: (line: Line, hash: Int, flights: [UInt64])] = [:]
        private var linesByHash: [Int: [UInt64]] = [:]
        private var lastLine: UInt64 = 0
        private var byStorageKey: [StorageKey: [UInt64]] = [:]

        /// Returns the lines that have the same hash and have not been compared yet. Returns none
        /// if the equal line is known.
        func candidates(for search: Search) -> [(number: UInt64, line: Line)] {
            if let found = search.found, lines[found] != nil { return [] }
            return (linesByHash[search.hash] ?? []).compactMap { number in
                search.compared.contains(number) ? nil : lines[number].map { (number, $0.line) }
            }
        }

        /// - Returns: The result for the new flight, and the flights that it replaces.
        mutating func enter(
            _ flight: Flight, _ searches: [Search], _ mode: DuplicateMode, waiter: Waiter
        ) -> (entrance: Entrance, replaced: [Flight]) {
            let equal = searches.last?.found.flatMap { lines[$0]?.flights } ?? []
            var replaced: [Flight] = []
            switch mode {
            case .reject:
                if let last = equal.last {
                    return (.duplicate(isOfSameType: flights[last]?.type == flight.type), [])
                }
            case .join:
                if let last = equal.last { return (join(last, flight, waiter), []) }
            case .replace:
                // Later flights are removed first, so that removing one does not start the next.
                replaced = equal.reversed().compactMap { remove($0) }
            case .allow, .queue: break
            }
            let last = mode == .queue ? equal.last : nil
            insert(flight, searches, waiter, isQueued: last != nil)
            return (.starts(after: last), replaced)
        }

        /// Adds the waiter of a new flight to a flight in progress.
        private mutating func join(_ id: UInt64, _ flight: Flight, _ waiter: Waiter) -> Entrance {
            guard flights[id]?.type == flight.type else { return .duplicate(isOfSameType: false) }
            flights[id]?.waiters[flight.id] = waiter
            return .waits(id)
        }

        mutating func end(_ id: UInt64, isSuccess: Bool, _ store: (Flight) -> Void) -> Flight? {
            guard let flight = remove(id) else { return nil }
            if isSuccess, let key = flight.storageKey {
                for older in byStorageKey[key] ?? [] where older < id { flights[older]?.isSuperseded = true }
                if !flight.isSuperseded { store(flight) }
            }
            return flight
        }

        /// - Returns: The flight if no waiter remains; otherwise `nil`.
        mutating func leave(_ id: UInt64, _ waiter: UInt64) -> Flight? {
            guard flights[id]?.waiters.removeValue(forKey: waiter) != nil, flights[id]?.waiters.isEmpty == true else {
                return nil
            }
            return remove(id)
        }

        private mutating func insert(_ flight: Flight, _ searches: [Search], _ waiter: Waiter, isQueued: Bool) {
            var flight = flight
            flight.places = searches.map { enterLine(flight.id, $0) }
            flight.waiters[flight.id] = waiter
            flight.turn = isQueued ? Once<Bool>() : nil
            flights[flight.id] = flight
            if let key = flight.storageKey { byStorageKey[key, default: []].append(flight.id) }
        }

        /// Appends a flight to the equal line, or to a new line if there is no equal one.
        ///
        /// - Returns: The number of the line.
        private mutating func enterLine(_ id: UInt64, _ search: Search) -> UInt64 {
            if let found = search.found, lines[found] != nil {
                lines[found]?.flights.append(id)
                return found
            }
            lastLine += 1
            lines[lastLine] = (search.line, search.hash, [id])
            linesByHash[search.hash, default: []].append(lastLine)
            return lastLine
        }

        private mutating func remove(_ id: UInt64) -> Flight? {
            guard let flight = flights.removeValue(forKey: id) else { return nil }
            if let key = flight.storageKey { Self.drop(id, from: &byStorageKey, key) }
            for number in flight.places { leaveLine(number, id) }
            return flight
        }

        /// Removes a flight from a line. The next flight may then start; if there is none, the line
        /// is removed.
        private mutating func leaveLine(_ number: UInt64, _ id: UInt64) {
            lines[number]?.flights.removeAll { $0 == id }
            if let first = lines[number]?.flights.first { giveTurn(to: first, in: number) } else { removeLine(number) }
        }

        /// Lets a flight start if it is queued in this line. A flight may also be in a line only
        /// for lookups.
        private mutating func giveTurn(to id: UInt64, in number: UInt64) {
            guard flights[id]?.places.last == number, let turn = flights[id]?.turn.take() else { return }
            turns.append(turn)
        }

        private mutating func removeLine(_ number: UInt64) {
            guard let (line, hash, _) = lines.removeValue(forKey: number) else { return }
            Self.drop(number, from: &linesByHash, hash)
            spent.append(line)
        }

        private static func drop<Key: Hashable>(_ id: UInt64, from index: inout [Key: [UInt64]], _ key: Key) {
            index[key]?.removeAll { $0 == id }
            if index[key]?.isEmpty == true { index[key] = nil }
        }
    }
}

/// A key of any type, or a request that is used as its own key. Two keys are equal if they have the
/// same type and `==` returns `true`.
///
/// `==` and `hash(into:)` are custom code and run without a lock, so they may use the service.
package final class RequestKey: Sendable, Hashable {
    let base: any Hashable & Sendable

    package init(_ base: any Hashable & Sendable) {
        self.base = base
    }

    /// - Returns: `nil` if the request is not `Hashable`.
    convenience init?(request: any ServiceRequest) {
        guard let request = request as? any ServiceRequest & Hashable else { return nil }
        self.init(request)
    }

    package var type: ObjectIdentifier { ObjectIdentifier(Swift.type(of: base)) }

    package static func == (left: RequestKey, right: RequestKey) -> Bool {
        left.type == right.type && equals(left.base, right.base)
    }

    private static func equals<Key: Hashable>(_ left: Key, _ right: any Hashable) -> Bool {
        left == right as? Key
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        base.hash(into: &hasher)
    }
}

extension TypedResult {
    /// Stores the result of a flight and completes the task.
    ///
    /// - Returns: Whether this is the first result of the task.
    func take(_ delivery: RequestRegistry.Delivery, _ task: SessionTask, isJoined: Bool) -> Bool {
        set(
            delivery.result.flatMap { value in
                (value as? Value).map { .success($0) }
                    ?? .failure(
                        WebServiceError(
                            .unexpectedOutput,
                            "the shared value is not of type \(Value.self); give the two requests different keys"))
            })
        if let exchange = delivery.exchange { task.takeOver(exchange.log) }
        return task.complete(
            delivery.response.map { response in
                var response = response
                if isJoined { response.source = .joined }
                return response
            })
    }
}
