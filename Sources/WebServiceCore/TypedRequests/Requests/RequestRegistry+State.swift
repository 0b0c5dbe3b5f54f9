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
            _ flight: Flight, _ searches: [Search], _ mode: DuplicateMode, _ waiter: Waiter
        ) -> (entrance: Entrance, replaced: [Flight]) {
            let same = mode == .allow ? [] : searches.last?.found.flatMap { lines[$0]?.flights } ?? []
            if mode == .reject, !same.isEmpty { return (.duplicate, []) }
            if mode == .join, let joined = same.last {
                guard flights[joined]?.type == flight.type else { return (.duplicate, []) }
                flights[joined]?.waiters[flight.id] = waiter
                return (.waits(joined), [])
            }
            // Later flights are removed first, so that removing one does not start the next.
            let replaced = mode == .replace ? same.reversed().compactMap { remove($0) } : []
            let last = mode == .queue ? same.last : nil
            insert(flight, searches, waiter, isQueued: last != nil)
            return (.starts(after: last), replaced)
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
            flight.places = searches.map { place(flight.id, $0) }
            flight.waiters[flight.id] = waiter
            flight.turn = isQueued ? Once<Bool>() : nil
            flights[flight.id] = flight
            if let key = flight.storageKey { byStorageKey[key, default: []].append(flight.id) }
        }

        /// - Returns: The number of the equal line, or of a new one if there is none.
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
