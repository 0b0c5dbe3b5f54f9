import Foundation
import WebServiceCore

/// Memory for bodies that is used again: the system gives fresh pages for each body otherwise, which costs more than filling them.
///
/// It comes in multiples of 16 KiB up to 1 MiB, so that what a body does not need is little, and no more than 16 MiB is kept.
final class BodyMemory: Sendable {
    static let shared = BodyMemory()

    private static let unit = 16 << 10
    private static let largest = 1 << 20
    private static let limit = 16 << 20

    private struct State {
        /// Addresses, by the number of units.
        var free = [[UInt]](repeating: [], count: largest / unit + 1)
        var kept = 0
    }

    private let state = Mutex(State())

    /// How much memory a body of a length is given.
    static func capacity(for length: Int) -> Int {
        length > largest ? length : max(1, (length + unit - 1) / unit) * unit
    }

    /// Memory of a ``capacity(for:)``; `nil` when there is none.
    func take(_ capacity: Int) -> UnsafeMutableRawPointer? {
        guard capacity <= Self.largest else { return malloc(capacity) }
        let known = state.withLock { state -> UInt? in
            guard let address = state.free[capacity / Self.unit].popLast() else { return nil }
            state.kept -= capacity
            return address
        }
        return known.flatMap { UnsafeMutableRawPointer(bitPattern: $0) } ?? malloc(capacity)
    }

    /// Takes memory back.
    func give(_ memory: UnsafeMutableRawPointer, _ capacity: Int) {
        let isKept = state.withLock { state in
            guard capacity <= Self.largest, state.kept + capacity <= Self.limit else { return false }
            state.free[capacity / Self.unit].append(UInt(bitPattern: memory))
            state.kept += capacity
            return true
        }
        if !isKept { free(memory) }
    }
}
