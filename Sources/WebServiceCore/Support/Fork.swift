import Foundation
import Synchronization

/// The detection of forks of the process. A forked process has only the thread that forked it.
package enum Fork {
    private static let forks = Atomic<Int>(0)
    private static let isCounting: Bool = pthread_atfork(nil, nil) { Fork.forks.add(1, ordering: .relaxed) } == 0

    /// The number of forks that led to this process since the first access to this property. A fork
    /// changes the number only in the forked process.
    package static var count: Int { isCounting ? forks.load(ordering: .relaxed) : 0 }
}

/// A value that is created again in a forked process. There, a lock of the parent may never be
/// released, a queue has no threads, and a connection belongs to the parent. The value of the
/// parent is neither used nor released in the forked process.
package final class PerProcess<Value: Sendable>: Sendable {
    private final class Box: Sendable {
        let forks = Fork.count
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private let original: Box
    private let own = Mutex<Box?>(nil)
    private let make: @Sendable (_ isForked: Bool) -> Value

    /// - Parameter make: A closure that creates the value. It is called again in a forked process
    ///   when the value is first used there. A lock is then held, so the closure must not use this
    ///   object or call custom code.
    package init(_ make: @escaping @Sendable (_ isForked: Bool) -> Value) {
        self.make = make
        original = Box(make(false))
    }

    /// Whether the process was forked from the one that created this object.
    package var isForked: Bool { original.forks != Fork.count }

    package var value: Value {
        let count = Fork.count
        if count == original.forks { return original.value }
        return own.withLock { own in
            if let own, own.forks == count { return own.value }
            if let inherited = own { _ = Unmanaged.passRetained(inherited) }
            let box = Box(make(true))
            own = box
            return box.value
        }
    }

    deinit {
        for box in [original, own.withLock(\.self)] {
            if let box, box.forks != Fork.count { _ = Unmanaged.passRetained(box) }
        }
    }
}
