/// Things to do at given moments, earliest first: a binary heap whose entries can be removed. Pure; time is a number.
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
        var work: (@Sendable () -> Void)?
        var generation: Int
        var place: Int
    }

    private var slots: [Slot] = []
    private var free: [Int] = []
    private var heap: [Int] = []

    /// The moment of the earliest entry.
    var earliest: UInt64? { heap.first.map { slots[$0].moment } }

    var count: Int { heap.count }

    mutating func add(at moment: UInt64, _ work: @escaping @Sendable () -> Void) -> Token {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(Slot(moment: 0, work: nil, generation: 0, place: 0)) }
        slots[slot].moment = moment
        slots[slot].work = work
        heap.append(slot)
        slots[slot].place = heap.count - 1
        siftUp(heap.count - 1)
        return Token(slot: slot, generation: slots[slot].generation)
    }

    mutating func remove(_ token: Token) {
        guard slots[token.slot].generation == token.generation, slots[token.slot].work != nil else { return }
        _ = take(at: slots[token.slot].place)
    }

    /// Takes out what is due, in the order of the moments.
    mutating func takeDue(at now: UInt64) -> [@Sendable () -> Void] {
        var due: [@Sendable () -> Void] = []
        while let earliest, earliest <= now {
            if let work = take(at: 0) { due.append(work) }
        }
        return due
    }

    private mutating func take(at place: Int) -> (@Sendable () -> Void)? {
        let slot = heap[place]
        let last = heap.removeLast()
        if place < heap.count {
            heap[place] = last
            slots[last].place = place
            siftDown(place)
            siftUp(slots[last].place)
        }
        let work = slots[slot].work
        slots[slot].work = nil
        slots[slot].generation += 1
        free.append(slot)
        return work
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
