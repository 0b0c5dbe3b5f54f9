extension RequestRegistry {
    /// The flights in progress, the lines that contain them, and the tasks that read storages.
    struct State: Sendable {
        var flights: [UInt64: Flight] = [:]
        /// The tasks that read storages.
        var reads: [UInt64: SessionTask] = [:]
        /// The turns of flights that may start.
        var turns: [Once<Bool>] = []
        /// Empty lines, released outside the lock.
        var spent: [Line] = []
        /// The lines by number, with the flights of each in the order in which they started.
        private var lines: [UInt64: (line: Line, hash: Int, flights: [UInt64])] = [:]
        private var linesByHash: [Int: [UInt64]] = [:]
        private var lastLine: UInt64 = 0
        private var byStorageKey: [StorageKey: [UInt64]] = [:]

        /// Returns the lines that have the same hash and have not been compared yet; empty if the
        /// equal line is known.
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
            case .reject where !equal.isEmpty: return (.duplicate, [])
            case .join:
                if let last = equal.last { return (join(last, flight, waiter), []) }
            case .replace:
                // Later flights are removed first, so that removing one does not start the next.
                replaced = equal.reversed().compactMap { remove($0) }
            case .allow, .reject, .queue: break
            }
            let last = mode == .queue ? equal.last : nil
            insert(flight, searches, waiter, isQueued: last != nil)
            return (.starts(after: last), replaced)
        }

        /// Adds the waiter of a new flight to a flight in progress.
        private mutating func join(_ id: UInt64, _ flight: Flight, _ waiter: Waiter) -> Entrance {
            guard flights[id]?.type == flight.type else { return .duplicate }
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

        /// - Returns: The flight, if no waiter remains.
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

        /// Appends a flight to the equal line, or to a new one if there is none.
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

        /// Removes a flight from a line, which lets the following one start or removes the line.
        private mutating func leaveLine(_ number: UInt64, _ id: UInt64) {
            lines[number]?.flights.removeAll { $0 == id }
            if let first = lines[number]?.flights.first { giveTurn(to: first, in: number) } else { removeLine(number) }
        }

        /// Lets a flight start if it is queued in this line, and not only found in it.
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
