/// A list that stores its first element in place. Most exchanges have one handler and one receiver,
/// whose lists then need no memory of their own.
struct ShortList<Element> {
    private var first: Element?
    private var rest: [Element] = []

    var count: Int { first == nil ? 0 : rest.count + 1 }
    var isEmpty: Bool { first == nil }
    var last: Element? { rest.last ?? first }
    var all: [Element] { [first].compactMap(\.self) + rest }

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
