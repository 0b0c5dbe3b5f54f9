import WebServiceCore

/// A limit on the number of active items per host and in total, without side effects.
///
/// Items of one host start in first-in, first-out order; hosts are served in turn.
///
/// libcurl can also queue requests, but a request in its queue uses as much memory as an active
/// one.
struct Admission<Item> {
    /// The active and waiting items of one host.
    final class HostQueue {
        fileprivate var active = 0
        fileprivate var waiting = Queue<Item>()
        fileprivate var isReady = false
        /// The number of waiting items at which unwanted ones are removed.
        fileprivate var pruningCount = 64
        /// Whether requests share connections (HTTP/2, HTTP/3).
        var isMultiplexed = false
        /// The connection of the last item; it may have been closed.
        var connection: Connections.Connection?
        /// The number of smaller responses after which no large body is expected.
        private var largeBodies = 0

        /// Whether one of the last eight responses had a large body.
        var expectsLargeBody: Bool { largeBodies > 0 }

        func didReceiveBody(isLarge: Bool) {
            largeBodies = isLarge ? 8 : max(0, largeBodies - 1)
        }
    }

    private let maximumPerHost: Int
    private let maximum: Int
    private var active = 0
    private var queues: [Substring: HostQueue] = [:]
    /// The queues with waiting items and free capacity, in turn.
    private var ready = Queue<HostQueue>()
    /// The number of queues at which queues without items are removed.
    private var pruningCount = 1_000

    /// The number of concurrent streams that libcurl assumes for one multiplexed connection.
    private static var streamsPerConnection: Int { 100 }

    init(maximumPerHost: Int, maximum: Int) {
        self.maximumPerHost = maximumPerHost
        self.maximum = maximum
    }

    /// Appends an item to the queue of its host. ``next()`` returns the item when it may start.
    ///
    /// - Parameter isWanted: A closure that returns whether an item still has to start. It is
    ///   called rarely, so a queue may contain up to 64 unwanted items, or as many unwanted as
    ///   wanted ones.
    mutating func append(_ item: Item, to host: Substring, isWanted: (Item) -> Bool = { _ in true }) {
        let queue = queues[host] ?? makeQueue(host)
        if queue.waiting.count >= queue.pruningCount {
            queue.waiting.removeAll { !isWanted($0) }
            queue.pruningCount = max(64, queue.waiting.count * 2)
        }
        queue.waiting.append(item)
        makeReady(queue)
    }

    /// Returns the next item that may start, and the queue to pass to ``release(_:)`` at its end.
    mutating func next() -> (item: Item, queue: HostQueue)? {
        while active < maximum, let queue = ready.popFirst() {
            queue.isReady = false
            guard hasCapacity(queue), let item = queue.waiting.popFirst() else { continue }
            queue.active += 1
            active += 1
            makeReady(queue)
            return (item, queue)
        }
        return nil
    }

    /// Releases the capacity of an item that has ended.
    mutating func release(_ queue: HostQueue) {
        queue.active -= 1
        active -= 1
        makeReady(queue)
    }

    /// Removes and returns all waiting items.
    mutating func removeWaiting() -> [Item] {
        ready = Queue()
        var items: [Item] = []
        for queue in queues.values {
            queue.isReady = false
            while let item = queue.waiting.popFirst() { items.append(item) }
        }
        return items
    }

    /// Whether no item is active or waiting.
    var isEmpty: Bool { active == 0 && ready.isEmpty }

    /// Returns the connection of a host's last item; it may have been closed.
    func lastConnection(to host: Substring) -> Connections.Connection? { queues[host]?.connection }

    /// The number of hosts with a queue.
    var hostCount: Int { queues.count }

    private func hasCapacity(_ queue: HostQueue) -> Bool {
        queue.active < (queue.isMultiplexed ? max(maximumPerHost, Self.streamsPerConnection) : maximumPerHost)
    }

    private mutating func makeReady(_ queue: HostQueue) {
        guard !queue.isReady, !queue.waiting.isEmpty, hasCapacity(queue) else { return }
        queue.isReady = true
        ready.append(queue)
    }

    private mutating func makeQueue(_ host: Substring) -> HostQueue {
        if queues.count >= pruningCount {
            queues = queues.filter { $0.value.active > 0 || !$0.value.waiting.isEmpty }
            pruningCount = max(1_000, queues.count * 2)
        }
        let queue = HostQueue()
        queues[Substring(String(host))] = queue  // without the rest of the URL
        return queue
    }
}
