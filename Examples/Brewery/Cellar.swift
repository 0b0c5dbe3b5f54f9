import Synchronization

/// The data of the server.
final class Cellar: Sendable {
    private struct State {
        var nextID = 4
        var visits = 0
        var brewers = [
            Brewer(id: 1, name: "Long Trail", state: "vermont"),
            Brewer(id: 2, name: "Brooklyn", state: "new york"),
            Brewer(id: 3, name: "Sixpoint", state: "new york"),
        ]
    }

    private let state = Mutex(State())

    func list(state name: String?) -> [Brewer] {
        state.withLock { state in state.brewers.filter { name == nil || $0.state == name } }
    }

    func brewer(_ id: Int) -> Brewer? {
        state.withLock { state in state.brewers.first { $0.id == id } }
    }

    /// Returns a part of a list of 45 brewers.
    func archive(from offset: Int, limit: Int) -> [Brewer] {
        (0..<45).filter { $0 >= offset }.prefix(max(0, limit)).map {
            Brewer(id: 1000 + $0, name: "Brewer of \(1900 + $0)", state: "vermont")
        }
    }

    /// Returns `true` for every second call.
    func isServed() -> Bool {
        state.withLock { state in
            state.visits += 1
            return state.visits % 2 == 0
        }
    }

    func add(_ brewer: Brewer) -> Brewer {
        state.withLock { state in
            var brewer = brewer
            brewer.id = state.nextID
            state.nextID += 1
            state.brewers.append(brewer)
            return brewer
        }
    }

    func rename(_ id: Int, to name: String) -> Brewer? {
        state.withLock { state in
            guard let index = state.brewers.firstIndex(where: { $0.id == id }) else { return nil }
            state.brewers[index].name = name
            return state.brewers[index]
        }
    }

    func remove(_ id: Int) -> Brewer? {
        state.withLock { state in
            state.brewers.firstIndex { $0.id == id }.map { state.brewers.remove(at: $0) }
        }
    }
}
