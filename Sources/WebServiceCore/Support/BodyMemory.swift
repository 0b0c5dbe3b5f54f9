import Foundation

/// A pool of memory for bodies.
///
/// Without reuse, the system provides new pages for each body, which costs more than filling them.
/// Sizes up to 1 MiB are multiples of 16 KiB to limit unused memory. The pool retains at most 16
/// MiB.
final class BodyMemory: Sendable {
    static let shared = BodyMemory()

    private static let unit = 16 << 10
    private static let largest = 1 << 20
    private static let limit = 16 << 20

    private struct State {
        /// The addresses of free memory, indexed by the number of units.
        var free = [[UInt]](repeating: [], count: largest / unit + 1)
        var kept = 0
    }

    private let state = Mutex(State())

    /// Returns the size of the memory for a body of the given length.
    static func capacity(for length: Int) -> Int {
        length > largest ? length : max(1, (length + unit - 1) / unit) * unit
    }

    /// The system reuses the memory of small bodies itself.
    private static func isPooled(_ capacity: Int) -> Bool { capacity > unit && capacity <= largest }

    /// Returns memory of a ``capacity(for:)``; `nil` if none is available.
    func take(_ capacity: Int) -> UnsafeMutableRawPointer? {
        guard Self.isPooled(capacity) else { return malloc(capacity) }
        let known = state.withLock { state -> UInt? in
            guard let address = state.free[capacity / Self.unit].popLast() else { return nil }
            state.kept -= capacity
            return address
        }
        return known.flatMap { UnsafeMutableRawPointer(bitPattern: $0) } ?? malloc(capacity)
    }

    /// Returns memory to the pool.
    func give(_ memory: UnsafeMutableRawPointer, _ capacity: Int) {
        guard Self.isPooled(capacity) else { return free(memory) }
        let isKept = state.withLock { state in
            guard state.kept + capacity <= Self.limit else { return false }
            state.free[capacity / Self.unit].append(UInt(bitPattern: memory))
            state.kept += capacity
            return true
        }
        if !isKept { free(memory) }
    }
}
