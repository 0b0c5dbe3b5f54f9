/// An object that is notified at a scheduled instant.
package protocol AlarmTarget: AnyObject, Sendable {
    /// Notifies the target. This method is called once, on any thread, unless the alarm is
    /// cancelled first.
    func ring()
}

/// A priority queue of alarms, earliest first: a binary heap with removable entries.
///
/// It is a pure value that represents instants as numbers. Adding and removing take O(log n) time
/// and, once the queue has grown, do not allocate.
package struct AlarmQueue {
    /// A token that identifies an entry. The token of a removed entry has no effect.
    package struct Token: Sendable, Hashable {
        fileprivate let slot: Int
        fileprivate let generation: Int
    }

    private struct Slot {
        var instant: UInt64
        var target: (any AlarmTarget)?
        var generation: Int
        var place: Int
    }

    private var slots: [Slot] = []
    private var free: [Int] = []
    private var heap: [Int] = []

    package init() {}

    /// The instant of the earliest entry.
    package var earliest: UInt64? { heap.first.map { slots[$0].instant } }

    var count: Int { heap.count }

    package mutating func add(at instant: UInt64, _ target: any AlarmTarget) -> Token {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(Slot(instant: 0, target: nil, generation: 0, place: 0)) }
        slots[slot].instant = instant
        slots[slot].target = target
        heap.append(slot)
        slots[slot].place = heap.count - 1
        siftUp(heap.count - 1)
        return Token(slot: slot, generation: slots[slot].generation)
    }

    /// Removes an entry.
    ///
    /// - Returns: The target, to be released outside any lock; `nil` if the entry was already
    ///   removed.
    @discardableResult
    package mutating func remove(_ token: Token) -> (any AlarmTarget)? {
        guard slots[token.slot].generation == token.generation, slots[token.slot].target != nil else { return nil }
        return take(at: slots[token.slot].place)
    }

    /// Removes and returns the targets that are due, in the order of their instants.
    package mutating func takeDue(at now: UInt64) -> [any AlarmTarget] {
        var due: [any AlarmTarget] = []
        while let earliest, earliest <= now {
            if let target = take(at: 0) { due.append(target) }
        }
        return due
    }

    private mutating func take(at place: Int) -> (any AlarmTarget)? {
        let slot = heap[place]
        let last = heap.removeLast()
        if place < heap.count {
            heap[place] = last
            slots[last].place = place
            siftDown(place)
            siftUp(slots[last].place)
        }
        let target = slots[slot].target
        slots[slot].target = nil
        slots[slot].generation += 1
        free.append(slot)
        return target
    }

    private mutating func siftUp(_ start: Int) {
        var place = start
        while place > 0, slots[heap[place]].instant < slots[heap[(place - 1) / 2]].instant {
            exchange(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    private mutating func siftDown(_ start: Int) {
        var place = start
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2]
            where child < heap.count && slots[heap[child]].instant < slots[heap[least]].instant {
                least = child
            }
            if least == place { return }
            exchange(place, least)
            place = least
        }
    }

    private mutating func exchange(_ first: Int, _ second: Int) {
        heap.swapAt(first, second)
        slots[heap[first]].place = first
        slots[heap[second]].place = second
    }
}
