/// What is told when its moment has come.
package protocol AlarmTarget: AnyObject, Sendable {
    /// Called once, on any thread, unless the alarm was cancelled before.
    func ring()
}

/// Whom to tell at which moment, earliest first: a binary heap whose entries can be removed. Pure; time is a number.
///
/// Adding and removing cost O(log n) and, once the queue has grown, no allocation.
struct AlarmQueue {
    /// Names one entry; a token whose entry is gone is harmless.
    struct Token: Sendable, Hashable {
        fileprivate let slot: Int
        fileprivate let generation: Int
    }

    private struct Slot {
        var moment: UInt64
        var target: (any AlarmTarget)?
        var generation: Int
        var place: Int
    }

    private var slots: [Slot] = []
    private var free: [Int] = []
    private var heap: [Int] = []

    /// The moment of the earliest entry.
    var earliest: UInt64? { heap.first.map { slots[$0].moment } }

    var count: Int { heap.count }

    mutating func add(at moment: UInt64, _ target: any AlarmTarget) -> Token {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(Slot(moment: 0, target: nil, generation: 0, place: 0)) }
        slots[slot].moment = moment
        slots[slot].target = target
        heap.append(slot)
        slots[slot].place = heap.count - 1
        siftUp(heap.count - 1)
        return Token(slot: slot, generation: slots[slot].generation)
    }

    /// - Returns: The target, to be freed outside any lock; `nil` when the entry is gone.
    @discardableResult
    mutating func remove(_ token: Token) -> (any AlarmTarget)? {
        guard slots[token.slot].generation == token.generation, slots[token.slot].target != nil else { return nil }
        return take(at: slots[token.slot].place)
    }

    /// Takes out what is due, in the order of the moments.
    mutating func takeDue(at now: UInt64) -> [any AlarmTarget] {
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
        while place > 0, slots[heap[place]].moment < slots[heap[(place - 1) / 2]].moment {
            exchange(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    private mutating func siftDown(_ start: Int) {
        var place = start
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < heap.count && slots[heap[child]].moment < slots[heap[least]].moment {
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
