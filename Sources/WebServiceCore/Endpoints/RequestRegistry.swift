import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The typed requests of one service that are under way, and everybody who waits for their answers.
final class RequestRegistry: Sendable {
    /// One request under way.
    struct Flight: Sendable {
        let id: UInt64
        let type: any ServiceRequest.Type
        /// The request, where it can be compared.
        let request: RequestKey?
        let key: RequestKey?
        /// Where its answer will be stored.
        let storageKey: StorageKey?
        /// Makes the work, which waits for its turn where there is one. Called under the lock: it may only make a Swift task.
        let start: @Sendable (_ turn: Decision?) -> Task<Void, Never>
        /// Where equal ones are looked for; the last one decides about duplicates.
        fileprivate let lines: [Line]
        /// The numbers of the lines that it stands in while it is in flight, in the same order.
        fileprivate var places: [UInt64] = []
        fileprivate var work: Task<Void, Never>?
        /// Its turn to begin; `nil` when it has come.
        fileprivate var turn: Decision?
        fileprivate(set) var waiters: [UInt64: Waiter] = [:]
        /// Whether a request that was begun later has an answer for the same place.
        fileprivate(set) var isSuperseded = false

        init(
            id: UInt64, _ request: any ServiceRequest, key: RequestKey?, account: String?, storageKey: StorageKey?,
            start: @escaping @Sendable (_ turn: Decision?) -> Task<Void, Never>
        ) {
            self.id = id
            type = Swift.type(of: request)
            self.request = RequestKey(request: request)
            self.key = key
            self.storageKey = storageKey
            self.start = start
            let account = account.map { Array($0.utf8) }
            lines = [(self.request, false), (key, true)].compactMap { base, isKey in base.map { Line(isKey: isKey, account: account, base: $0) } }
        }
    }

    /// Those that are the same stand in one line: of one account, because the request of one is never the same as another's.
    fileprivate struct Line: Hashable {
        let isKey: Bool
        let account: [UInt8]?
        let base: RequestKey
    }

    /// The search for the line that equals one of a new flight. Requests and keys are hashed and
    /// compared here, outside the lock, because that is custom code.
    fileprivate struct Search: Sendable {
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

    /// Somebody who waits for the answer of a flight.
    struct Waiter: Sendable {
        let task: SessionTask
        /// Hands the answer over; tells whether it was taken, and not too late.
        let deliver: @Sendable (Delivery) -> Bool
    }

    /// The answer to one flight.
    struct Delivery: Sendable {
        /// The flight's.
        let id: UInt64
        /// The value; read where the response is no error.
        let result: Result<any Sendable, any Error>
        let response: Result<Response, any Error>
        /// The last exchange of the endpoint; `nil` where it sent nothing.
        let exchange: SessionTask?
    }

    /// What became of a request that was to be performed.
    enum Entrance {
        /// It waits for the answer of this flight, its own or another's.
        case waits(UInt64)
        case duplicate
    }

    private let state = Mutex(State())
    private static let lastID = Atomic<UInt64>(0)

    /// A number that no other request has in this process.
    static func makeID() -> UInt64 {
        lastID.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Looks for requests under way and decides what becomes of a new one, in one step.
    func enter(_ flight: Flight, _ mode: DuplicateMode, _ waiter: Waiter) -> Entrance {
        var searches = flight.lines.map(Search.init)
        while true {
            let (entered, candidates) = change { [searches] state in
                let candidates = searches.map { state.candidates(for: $0) }
                return (candidates.allSatisfy(\.isEmpty) ? state.enter(flight, searches, mode, waiter) : nil, candidates)
            }
            if let entered {
                cancel(entered.replaced)
                return entered.entrance
            }
            // Each pass compares lines that were not there before, so a pass that is repeated is
            // one in which another request was faster.
            for index in searches.indices { searches[index].compare(candidates[index]) }
        }
    }

    /// The work of a flight is done.
    ///
    /// - Parameter store: Called under the lock, so that no later flight comes between: it may only make a Swift task.
    /// - Returns: The flight with everybody who waited for it; `nil` when nobody did any more.
    func end(_ id: UInt64, isSuccess: Bool, _ store: (Flight) -> Void) -> Flight? {
        change { $0.end(id, isSuccess: isSuccess, store) }
    }

    fileprivate func leave(_ flight: UInt64, _ waiter: UInt64) {
        if let abandoned = change({ $0.leave(flight, waiter) }) { cancel([abandoned]) }
    }

    /// Lets those begin whose turn has come by the change.
    private func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, turns, spent) = state.withLock { state in
            defer {
                state.turns = []
                state.spent = []
            }
            return (body(&state), state.turns, state.spent)
        }
        withExtendedLifetime(spent) {}
        for turn in turns { turn.make(true) }
        return result
    }

    /// Whether one of the requests under way is so.
    func contains(_ isMeant: (Flight) -> Bool) -> Bool {
        state.withLock { $0.flights }.values.contains(where: isMeant)
    }

    /// Cancels the requests under way that are so, those begun last first, so that none begins behind one that is cancelled.
    func cancel(_ isMeant: (Flight) -> Bool) {
        for flight in state.withLock({ $0.flights }).values.filter(isMeant).sorted(by: { $0.id > $1.id }) {
            for waiter in flight.waiters.values { waiter.task.cancel() }
        }
    }

    /// Cancels everything in flight: the service is deallocated. A task that is resumed later is
    /// not affected, so that a request of a temporary service can be awaited.
    func close() {
        let reads = state.withLock { $0.reads }
        cancel { _ in true }
        for read in reads.values { read.cancel() }
    }

    /// A storage is read: cancelled with everything else, and found by nothing.
    func beginRead(_ id: UInt64, _ task: SessionTask) {
        state.withLock { $0.reads[id] = task }
    }

    func endRead(_ id: UInt64) {
        let task = state.withLock { $0.reads.removeValue(forKey: id) }
        withExtendedLifetime(task) {}
    }

    /// Flights that nobody wants any more: to be cancelled outside the lock, with all who still wait for them.
    private func cancel(_ flights: [Flight]) {
        for flight in flights {
            flight.turn?.make(false)
            flight.work?.cancel()
            for waiter in flight.waiters.values { waiter.task.cancel() }
        }
    }

    /// One waiter's place in a flight; to cancel it is to leave.
    struct Ticket: Cancellable {
        let registry: RequestRegistry
        let flight: UInt64
        let waiter: UInt64

        func cancel() { registry.leave(flight, waiter) }
    }
}

extension RequestRegistry {
    private struct State: Sendable {
        var flights: [UInt64: Flight] = [:]
        /// The tasks that read storages.
        var reads: [UInt64: SessionTask] = [:]
        /// Of flights whose turn has come.
        var turns: [Decision] = []
        /// Lines in which nothing stands any more, to be freed outside the lock.
        var spent: [Line] = []
        /// The lines by their numbers, and the flights in each, in the order in which they began.
        private var lines: [UInt64: (line: Line, hash: Int, flights: [UInt64])] = [:]
        private var linesByHash: [Int: [UInt64]] = [:]
        private var lastLine: UInt64 = 0
        private var byStorageKey: [StorageKey: [UInt64]] = [:]

        /// The lines that may be the one searched for and were not compared yet; empty where it is
        /// known.
        func candidates(for search: Search) -> [(number: UInt64, line: Line)] {
            if let found = search.found, lines[found] != nil { return [] }
            return (linesByHash[search.hash] ?? []).compactMap { number in
                search.compared.contains(number) ? nil : lines[number].map { (number, $0.line) }
            }
        }

        /// - Returns: What becomes of the new flight, and the flights that it replaces.
        mutating func enter(
            _ flight: Flight, _ searches: [Search], _ mode: DuplicateMode, _ waiter: Waiter
        ) -> (entrance: Entrance, replaced: [Flight]) {
            let same = mode == .allow ? [] : searches.last?.found.flatMap { lines[$0]?.flights } ?? []
            if mode == .reject, !same.isEmpty { return (.duplicate, []) }
            if mode == .join, let joined = same.last {
                guard flights[joined]?.type == flight.type else { return (.duplicate, []) }
                flights[joined]?.waiters[flight.id] = waiter
                return (.waits(joined), [])
            }
            // Those begun last first, so that none of them begins behind another.
            let replaced = mode == .replace ? same.reversed().compactMap { remove($0) } : []
            insert(flight, searches, waiter, isQueued: mode == .queue && !same.isEmpty)
            return (.waits(flight.id), replaced)
        }

        mutating func end(_ id: UInt64, isSuccess: Bool, _ store: (Flight) -> Void) -> Flight? {
            guard let flight = remove(id) else { return nil }
            if isSuccess, let key = flight.storageKey {
                for older in byStorageKey[key] ?? [] where older < id { flights[older]?.isSuperseded = true }
                if !flight.isSuperseded { store(flight) }
            }
            return flight
        }

        /// - Returns: The flight, when nobody waits for it any more.
        mutating func leave(_ id: UInt64, _ waiter: UInt64) -> Flight? {
            guard flights[id]?.waiters.removeValue(forKey: waiter) != nil, flights[id]?.waiters.isEmpty == true else { return nil }
            return remove(id)
        }

        private mutating func insert(_ flight: Flight, _ searches: [Search], _ waiter: Waiter, isQueued: Bool) {
            var flight = flight
            flight.places = searches.map { place(flight.id, $0) }
            flight.waiters[flight.id] = waiter
            flight.turn = isQueued ? Decision() : nil
            flight.work = flight.start(flight.turn)
            flights[flight.id] = flight
            if let key = flight.storageKey { byStorageKey[key, default: []].append(flight.id) }
        }

        /// - Returns: The number of the line, which is a new one where none is equal.
        private mutating func place(_ id: UInt64, _ search: Search) -> UInt64 {
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
            for number in flight.places {
                lines[number]?.flights.removeAll { $0 == id }
                guard let first = lines[number]?.flights.first else {
                    guard let (line, hash, _) = lines.removeValue(forKey: number) else { continue }
                    Self.drop(number, from: &linesByHash, hash)
                    spent.append(line)
                    continue
                }
                guard flights[first]?.places.last == number, let turn = flights[first]?.turn.take() else { continue }
                turns.append(turn)
            }
            return flight
        }

        private static func drop<Key: Hashable>(_ id: UInt64, from index: inout [Key: [UInt64]], _ key: Key) {
            index[key]?.removeAll { $0 == id }
            if index[key]?.isEmpty == true { index[key] = nil }
        }
    }
}
