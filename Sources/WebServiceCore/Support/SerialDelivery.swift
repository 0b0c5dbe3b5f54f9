/// A queue of values that one caller at a time delivers in order: all values, or only the newest.
///
/// This value is part of a state that a lock protects. The caller that ``begin()`` selects delivers
/// the values that ``next()`` returns, outside the lock, until ``next()`` returns `nil`.
package struct SerialDelivery<Value> {
    private var waiting = Queue<Value>()
    private var isDelivering = false
    /// Whether no further value is accepted.
    private(set) var isOver = false
    /// Whether the delivery is over and every value was delivered.
    var isFinished: Bool { isOver && !isDelivering }

    package init() {}

    /// Appends a value, unless the delivery is over.
    ///
    /// - Parameter replacesOthers: Whether the value replaces the pending values.
    package mutating func append(_ value: Value, replacesOthers: Bool = false) {
        guard !isOver else { return }
        if replacesOthers { waiting = Queue() }
        waiting.append(value)
    }

    /// - Returns: Whether the caller must deliver the pending values.
    package mutating func begin() -> Bool {
        guard !isDelivering, !waiting.isEmpty else { return false }
        isDelivering = true
        return true
    }

    /// Returns the next value for the caller that delivers.
    package mutating func next() -> Value? {
        let value = waiting.popFirst()
        isDelivering = value != nil
        return value
    }

    /// Stops accepting values.
    ///
    /// - Returns: The values that no caller delivers, to be released outside the lock; `nil` while
    ///   a delivery is in progress.
    mutating func end() -> Queue<Value>? {
        isOver = true
        guard !isDelivering else { return nil }
        defer { waiting = Queue() }
        return waiting
    }
}
