import WebServiceCore

/// Who may go and who has to wait: so many at a time for each host, so many in all, in the order in which they came, hosts in turn. Pure.
///
/// libcurl could hold requests back itself, but a request that it holds costs it as much memory as one that runs.
struct Admission<Item> {
    /// The requests to one host.
    final class Line {
        fileprivate var active = 0
        fileprivate var waiting = Queue<Item>()
        fileprivate var isReady = false
        /// Whether the host speaks HTTP/2, so that requests share connections.
        var isMultiplexed = false
    }

    private let maximumPerHost: Int
    private let maximum: Int
    private var active = 0
    private var lines: [String: Line] = [:]
    /// Lines with somebody waiting and room for them, in turn.
    private var ready = Queue<Line>()
    /// With how many lines those of hosts without requests are removed.
    private var pruningCount = 1_000

    /// Streams of one HTTP/2 connection, as libcurl counts.
    private static var streams: Int { 100 }

    init(maximumPerHost: Int, maximum: Int) {
        self.maximumPerHost = maximumPerHost
        self.maximum = maximum
    }

    /// Puts an item into the line of its host. ``next()`` says when it goes.
    mutating func enter(_ item: Item, to host: String) {
        let line = lines[host] ?? makeLine(host)
        line.waiting.append(item)
        makeReady(line)
    }

    /// The next item that may go, with the line to hand to ``leave(_:)`` when it is done.
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

    /// An item is done.
    mutating func leave(_ line: Line) {
        line.active -= 1
        active -= 1
        makeReady(line)
    }

    /// Everybody who waits, who will not go any more.
    mutating func removeWaiting() -> [Item] {
        ready = Queue()
        var items: [Item] = []
        for line in lines.values {
            line.isReady = false
            while let item = line.waiting.popFirst() { items.append(item) }
        }
        return items
    }

    /// Whether nobody goes and nobody waits.
    var isEmpty: Bool { active == 0 && ready.isEmpty }

    /// How many hosts there are lines for.
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
