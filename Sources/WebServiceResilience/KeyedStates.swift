/// States by key. Idle states are removed when the number of keys has doubled.
struct KeyedStates<Value: Sendable>: Sendable {
    private(set) var values: [String: Value] = [:]
    /// The number of keys at which idle states are removed.
    private var limit = 64

    /// Changes a state, which is created if it does not exist.
    ///
    /// - Parameter isIdle: A closure that returns whether a state may be removed.
    mutating func update<Result>(
        _ key: String, _ initial: @autoclosure () -> Value, isIdle: (Value) -> Bool, _ body: (inout Value) -> Result
    ) -> Result {
        if values.count >= limit, values[key] == nil {
            values = values.filter { !isIdle($0.value) }
            limit = max(64, values.count * 2)
        }
        return body(&values[key, default: initial()])
    }
}
