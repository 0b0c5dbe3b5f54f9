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
        /// Whose request it is: that of one account is never the same as another's.
        let account: [UInt8]?
        /// Where its answer will be stored.
        let storageKey: StorageKey?
        /// Begins the work. Called under the lock: it may only make a Swift task.
        let start: @Sendable (UInt64) -> Task<Void, Never>
        fileprivate var work: Task<Void, Never>?
        fileprivate(set) var waiters: [UInt64: Waiter] = [:]
        /// The flights that it begins behind.
        fileprivate var predecessors: Set<UInt64> = []
        /// Whether a request that was begun later has stored its answer in the same place.
        fileprivate(set) var isSuperseded = false

        init(
            id: UInt64, _ request: any ServiceRequest, key: RequestKey?, account: String?, storageKey: StorageKey?,
            start: @escaping @Sendable (UInt64) -> Task<Void, Never>
        ) {
            self.id = id
            type = Swift.type(of: request)
            self.request = RequestKey(request: request)
            self.key = key
            self.account = account.map { Array($0.utf8) }
            self.storageKey = storageKey
            self.start = start
        }

        fileprivate var hasBegun: Bool { predecessors.isEmpty }
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
        /// What came of it; read where the outcome is no error.
        let result: Result<any Sendable, any Error>
        let outcome: Outcome
        /// The last exchange of the endpoint; `nil` where it sent nothing.
        let exchange: SessionTask?
    }

    /// What became of a request that was to be performed.
    enum Entrance {
        /// It waits for the answer of this flight, its own or another's.
        case waits(RequestRegistry.Ticket)
        case duplicate
        /// The service is gone.
        case closed
    }

    private let state = Mutex(State())
    private static let lastID = Atomic<UInt64>(0)

    /// A number that no other request has in this process.
    static func makeID() -> UInt64 {
        lastID.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Looks for requests under way and decides what becomes of a new one, in one step.
    func enter(_ flight: Flight, _ mode: DuplicateMode, _ waiter: Waiter) -> Entrance {
        let (decision, replaced) = state.withLock { $0.enter(flight, mode, waiter) }
        cancel(replaced)
        switch decision {
        case .closed: return .closed
        case .duplicate: return .duplicate
        case .waits(let id): return .waits(Ticket(self, flight: id, waiter: flight.id))
        }
    }

    /// The work of a flight is done.
    ///
    /// - Returns: The flight with everybody who waited for it; `nil` when nobody did any more.
    func end(_ id: UInt64, isSuccess: Bool) -> Flight? {
        state.withLock { $0.end(id, isSuccess: isSuccess) }
    }

    fileprivate func leave(_ flight: UInt64, _ waiter: UInt64) {
        if let abandoned = state.withLock({ $0.leave(flight, waiter) }) { cancel([abandoned]) }
    }

    /// Whether one of the requests under way is so.
    func contains(_ isMeant: (Flight) -> Bool) -> Bool {
        state.withLock { $0.flights }.values.contains(where: isMeant)
    }

    /// Cancels the requests under way that are so.
    func cancel(_ isMeant: (Flight) -> Bool) {
        for flight in state.withLock({ $0.flights }).values where isMeant(flight) {
            for waiter in flight.waiters.values { waiter.task.cancel() }
        }
    }

    /// Cancels all, and those to come.
    func close() {
        let reads = state.withLock { state in
            state.isClosed = true
            return state.reads
        }
        cancel { _ in true }
        for read in reads.values { read.cancel() }
    }

    /// A storage is read: cancelled with everything else, and found by nothing.
    ///
    /// - Returns: Whether the service is still there.
    func beginRead(_ id: UInt64, _ task: SessionTask) -> Bool {
        state.withLock { state in
            if !state.isClosed { state.reads[id] = task }
            return !state.isClosed
        }
    }

    func endRead(_ id: UInt64) {
        let task = state.withLock { $0.reads.removeValue(forKey: id) }
        withExtendedLifetime(task) {}
    }

    /// Flights that nobody wants any more: to be cancelled outside the lock, with all who still wait for them.
    private func cancel(_ flights: [Flight]) {
        for flight in flights {
            flight.work?.cancel()
            for waiter in flight.waiters.values { waiter.task.cancel() }
        }
    }

    /// One waiter's place in a flight; to cancel it is to leave.
    final class Ticket: DataTask {
        private let registry: RequestRegistry
        private let flight: UInt64
        private let waiter: UInt64

        fileprivate init(_ registry: RequestRegistry, flight: UInt64, waiter: UInt64) {
            self.registry = registry
            self.flight = flight
            self.waiter = waiter
        }

        /// Whether the flight was begun for somebody else.
        var isJoined: Bool { flight != waiter }
        var state: DataTaskState { .running }
        func resume() {}
        func suspend() {}
        func cancel() { registry.leave(flight, waiter) }
    }
}

extension RequestRegistry {
    private struct State: Sendable {
        var flights: [UInt64: Flight] = [:]
        /// The tasks that read storages.
        var reads: [UInt64: SessionTask] = [:]
        var isClosed = false
        private var byRequest: [RequestKey: [UInt64]] = [:]
        private var byKey: [RequestKey: [UInt64]] = [:]
        private var byStorageKey: [StorageKey: [UInt64]] = [:]
        /// Flights that begin behind others.
        private var queued: Set<UInt64> = []

        enum Decision {
            case waits(UInt64)
            case duplicate, closed
        }

        /// - Returns: What becomes of the new flight, and the flights that it replaces.
        mutating func enter(_ flight: Flight, _ mode: DuplicateMode, _ waiter: Waiter) -> (Decision, replaced: [Flight]) {
            guard !isClosed else { return (.closed, []) }
            let same = mode == .allow ? [] : duplicates(of: flight)
            if mode == .reject, !same.isEmpty { return (.duplicate, []) }
            if mode == .join, let joined = same.last {
                guard flights[joined]?.type == flight.type else { return (.duplicate, []) }
                flights[joined]?.waiters[flight.id] = waiter
                return (.waits(joined), [])
            }
            let replaced = mode == .replace ? same.compactMap { remove($0) } : []
            var flight = flight
            flight.waiters[flight.id] = waiter
            if mode == .queue { flight.predecessors = Set(same) }
            insert(flight)
            begin(flight.id)
            return (.waits(flight.id), replaced)
        }

        mutating func end(_ id: UInt64, isSuccess: Bool) -> Flight? {
            guard let flight = remove(id) else { return nil }
            if isSuccess, let key = flight.storageKey {
                for older in byStorageKey[key] ?? [] where older < id { flights[older]?.isSuperseded = true }
            }
            return flight
        }

        /// - Returns: The flight, when nobody waits for it any more.
        mutating func leave(_ id: UInt64, _ waiter: UInt64) -> Flight? {
            guard flights[id]?.waiters.removeValue(forKey: waiter) != nil, flights[id]?.waiters.isEmpty == true else { return nil }
            return remove(id)
        }

        private func duplicates(of flight: Flight) -> [UInt64] {
            let same = if let key = flight.key { byKey[key] } else { flight.request.flatMap { byRequest[$0] } }
            return (same ?? []).filter { flights[$0]?.account == flight.account }
        }

        private mutating func insert(_ flight: Flight) {
            flights[flight.id] = flight
            if let request = flight.request { byRequest[request, default: []].append(flight.id) }
            if let key = flight.key { byKey[key, default: []].append(flight.id) }
            if let key = flight.storageKey { byStorageKey[key, default: []].append(flight.id) }
            if !flight.hasBegun { queued.insert(flight.id) }
        }

        private mutating func begin(_ id: UInt64) {
            guard let flight = flights[id], flight.hasBegun else { return }
            queued.remove(id)
            flights[id]?.work = flight.start(id)
        }

        private mutating func remove(_ id: UInt64) -> Flight? {
            guard let flight = flights.removeValue(forKey: id) else { return nil }
            queued.remove(id)
            if let request = flight.request { Self.drop(id, from: &byRequest, request) }
            if let key = flight.key { Self.drop(id, from: &byKey, key) }
            if let key = flight.storageKey { Self.drop(id, from: &byStorageKey, key) }
            for waiting in queued.sorted() where flights[waiting]?.predecessors.remove(id) != nil { begin(waiting) }
            return flight
        }

        private static func drop<Key: Hashable>(_ id: UInt64, from index: inout [Key: [UInt64]], _ key: Key) {
            index[key]?.removeAll { $0 == id }
            if index[key]?.isEmpty == true { index[key] = nil }
        }
    }
}
