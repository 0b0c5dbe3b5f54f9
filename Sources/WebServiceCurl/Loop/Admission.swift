import WebServiceCore

/// Limits the number of active items per host and in total, without side effects.
///
/// Items of one host start in first-in, first-out order; hosts are served in turn.
///
/// libcurl can queue requests as well, but a queued request uses as much memory there as an active
/// one.
struct Admission<Item> {
    /// The active and waiting items of one host.
    final class Line {
        fileprivate var active = 0
        fileprivate var waiting = Queue<Item>()
        fileprivate var isReady = false
        /// A Boolean value that indicates whether requests share connections (HTTP/2).
        var isMultiplexed = false
    }

    private let maximumPerHost: Int
    private let maximum: Int
    private var active = 0
    private var lines: [String: Line] = [:]
    /// The lines with waiting items and free capacity, in turn.
    private var ready = Queue<Line>()
    /// The number of lines at which lines without items are removed.
    private var pruningCount = 1_000

    /// The concurrent streams of one HTTP/2 connection, as assumed by libcurl.
    private static var streams: Int { 100 }

    init(maximumPerHost: Int, maximum: Int) {
        self.maximumPerHost = maximumPerHost
        self.maximum = maximum
    }

    /// Appends an item to the line of its host. ``next()`` returns it when it may start.
    mutating func enter(_ item: Item, to host: String) {
        let line = lines[host] ?? makeLine(host)
        line.waiting.append(item)
        makeReady(line)
    }

    /// Returns the next item that may start, and the line to pass to ``leave(_:)`` at its end.
    mutating func next() -> (item: Item, line: Line)? {
        while active < maximum, let line = ready.popFirst() {
            line.isReady = false
            guard hasRoom(line), let item = line.waiting.popFirst() else { continue }
            line.active += 1
            active += 1
            makeReady(line)
            return (item, line)
        }
        return nil
    }

    /// Releases the capacity of an item that has ended.
    mutating func leave(_ line: Line) {
        line.active -= 1
        active -= 1
        makeReady(line)
    }

    /// Removes and returns all waiting items.
    mutating func removeWaiting() -> [Item] {
        ready = Queue()
        var items: [Item] = []
        for line in lines.values {
            line.isReady = false
            while let item = line.waiting.popFirst() { items.append(item) }
        }
        return items
    }

    /// A Boolean value that indicates whether no item is active or waiting.
    var isEmpty: Bool { active == 0 && ready.isEmpty }

    /// The number of hosts with a line.
    var hostCount: Int { lines.count }

    private func hasRoom(_ line: Line) -> Bool {
        line.active < (line.isMultiplexed ? max(maximumPerHost, Self.streams) : maximumPerHost)
    }

    private mutating func makeReady(_ line: Line) {
        guard !line.isReady, !line.waiting.isEmpty, hasRoom(line) else { return }
        line.isReady = true
        ready.append(line)
    }

    private mutating func makeLine(_ host: String) -> Line {
        if lines.count >= pruningCount {
            lines = lines.filter { $0.value.active > 0 || !$0.value.waiting.isEmpty }
            pruningCount = max(1_000, lines.count * 2)
        }
        let line = Line()
        lines[host] = line
        return line
    }
}
