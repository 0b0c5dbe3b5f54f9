/// A priority queue with removable elements, implemented as a binary heap. The element with the
/// lowest rank is first.
///
/// Adding and removing take O(log n) time and, once the queue has grown, do not allocate.
package struct PriorityQueue<Element> {
    /// A token that identifies an element. The token of a removed element has no effect.
    package struct Token: Sendable, Hashable {
        fileprivate let slot: Int
        fileprivate let generation: Int
    }

    fileprivate struct Slot {
        var rank: UInt64
        var element: Element?
        var generation: Int
        var place: Int
    }

    private var slots: [Slot] = []
    private var free: [Int] = []
    private var heap: [Int] = []

    package init() {}

    /// The lowest rank; `nil` if the queue is empty.
    package var lowest: UInt64? { heap.first.map { slots[$0].rank } }

    var count: Int { heap.count }

    package mutating func add(_ element: Element, at rank: UInt64) -> Token {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(Slot(rank: 0, element: nil, generation: 0, place: 0)) }
        slots[slot].rank = rank
        slots[slot].element = element
        heap.append(slot)
        slots[slot].place = heap.count - 1
        siftUp(heap.count - 1)
        return Token(slot: slot, generation: slots[slot].generation)
    }

    /// - Returns: The element, to be released outside any lock; `nil` if it was already removed.
    @discardableResult
    package mutating func remove(_ token: Token) -> Element? {
        guard slots[token.slot].generation == token.generation, slots[token.slot].element != nil else { return nil }
        return take(at: slots[token.slot].place)
    }

    /// Removes and returns the element with the lowest rank.
    package mutating func popFirst() -> Element? { heap.isEmpty ? nil : take(at: 0) }

    /// Removes and returns the elements up to a rank, in the order of their ranks.
    package mutating func takeAll(upTo rank: UInt64) -> [Element] {
        var taken: [Element] = []
        while let lowest, lowest <= rank {
            if let element = popFirst() { taken.append(element) }
        }
        return taken
    }

    /// Removes the elements that a closure selects, in O(n log n) time. The closure is called with
    /// each element, in the order of the ranks.
    package mutating func removeAll(where isRemoved: (Element) -> Bool) {
        heap.sort { [slots] in slots[$0].rank < slots[$1].rank }  // a sorted array is a heap
        let sorted = heap
        heap.removeAll()
        for slot in sorted {
            if let element = slots[slot].element, isRemoved(element) {
                vacate(slot)
            } else {
                slots[slot].place = heap.count
                heap.append(slot)
            }
        }
    }

    private mutating func vacate(_ slot: Int) {
        slots[slot].element = nil
        slots[slot].generation += 1
        free.append(slot)
    }

    private mutating func take(at place: Int) -> Element? {
        let slot = heap[place]
        let last = heap.removeLast()
        if place < heap.count {
            heap[place] = last
            slots[last].place = place
            siftDown(place)
            siftUp(slots[last].place)
        }
        let element = slots[slot].element
        vacate(slot)
        return element
    }

    private mutating func siftUp(_ start: Int) {
        var place = start
        while place > 0, slots[heap[place]].rank < slots[heap[(place - 1) / 2]].rank {
            exchange(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    private mutating func siftDown(_ start: Int) {
        var place = start
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2]
            where child < heap.count && slots[heap[child]].rank < slots[heap[least]].rank {
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

extension PriorityQueue: Sendable where Element: Sendable {}
extension PriorityQueue.Slot: Sendable where Element: Sendable {}

/// A first-in, first-out queue.
package struct Queue<Element> {
    private var elements: [Element?] = []
    private var head = 0

    package init() {}

    package var count: Int { elements.count - head }
    package var isEmpty: Bool { head == elements.count }
    package var first: Element? { isEmpty ? nil : elements[head] }

    package mutating func append(_ element: Element) {
        elements.append(element)
    }

    package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let element = elements[head].take()
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: elements.capacity <= 64)
            head = 0
        } else if head > 64, head > elements.count / 2 {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Removes the elements that satisfy a condition.
    package mutating func removeAll(where condition: (Element) -> Bool) {
        elements = elements[head...].filter { $0.map { !condition($0) } ?? false }
        head = 0
    }
}

extension Queue: Sendable where Element: Sendable {}

/// A list that stores its first element in place. Most exchanges have one handler and one receiver,
/// whose lists then need no separate memory.
struct ShortList<Element> {
    private var first: Element?
    private var rest: [Element] = []

    var count: Int { first == nil ? 0 : rest.count + 1 }
    var isEmpty: Bool { first == nil }
    var last: Element? { rest.last ?? first }
    var all: [Element] { first.map { [$0] + rest } ?? [] }

    /// The element at a valid index.
    subscript(index: Int) -> Element {
        if index == 0, let first { first } else { rest[index - 1] }
    }

    mutating func append(_ element: Element) {
        if first == nil { first = element } else { rest.append(element) }
    }

    mutating func removeAll(where isRemoved: (Element) -> Bool) {
        rest.removeAll(where: isRemoved)
        guard let first, isRemoved(first) else { return }
        self.first = rest.first
        rest = Array(rest.dropFirst())
    }

    func allSatisfy(_ isTrue: (Element) -> Bool) -> Bool {
        first.map(isTrue) != false && rest.allSatisfy(isTrue)
    }
}

extension ShortList: Sendable where Element: Sendable {}
