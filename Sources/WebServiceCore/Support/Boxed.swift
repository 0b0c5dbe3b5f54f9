/// An optional value on the heap, for a large value that is copied more often than it is read.
@propertyWrapper package struct Boxed<Value: Sendable>: Sendable {
    private final class Box: Sendable {
        let value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    private var box: Box?

    package init(wrappedValue: Value?) {
        box = wrappedValue.map(Box.init)
    }

    package var wrappedValue: Value? {
        get { box?.value }
        set { box = newValue.map(Box.init) }
    }

    /// The wrapper itself. Assigning it to another property shares the stored value.
    package var projectedValue: Boxed {
        get { self }
        set { self = newValue }
    }
}
