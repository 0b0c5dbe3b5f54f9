import Foundation

/// A buffer for the bytes of a body. The body takes over the buffer's memory, usually without a
/// copy.
///
/// @unchecked: the memory belongs to this value alone.
struct BodyBuffer: ~Copyable, @unchecked Sendable {
    /// The initial capacity for a body of unknown length, in bytes.
    private static let firstCapacity = 2 << 10

    private var bytes: UnsafeMutableRawPointer?
    private var capacity = 0
    private(set) var count = 0
    var isEmpty: Bool { count == 0 }

    deinit {
        if let bytes { BodyMemory.shared.give(bytes, capacity) }
    }

    /// Reserves memory for a body of the length specified by the server, up to 256 MiB.
    ///
    /// Memory that is never written to costs nothing.
    mutating func reserve(_ length: Int64) {
        grow(to: Int(min(length, 256 << 20)))
    }

    /// Appends a copy of bytes.
    ///
    /// - Returns: `false` if the memory cannot be allocated.
    mutating func append(_ new: UnsafeRawBufferPointer) -> Bool {
        if count + new.count > capacity { grow(to: max(count + new.count, capacity &* 2, Self.firstCapacity)) }
        guard let bytes, count + new.count <= capacity, let start = new.baseAddress else { return new.isEmpty }
        (bytes + count).copyMemory(from: start, byteCount: new.count)
        count += new.count
        return true
    }

    /// Returns the body and empties the buffer.
    mutating func take() -> Data {
        guard let bytes, count > 0 else { return Data() }
        defer { (self.bytes, capacity, count) = (nil, 0, 0) }
        if BodyMemory.isPooled(capacity), capacity == BodyMemory.capacity(for: count) {
            return Data(
                bytesNoCopy: bytes, count: count,
                deallocator: .custom { BodyMemory.shared.give($0, BodyMemory.capacity(for: $1)) })
        }
        let fitting = capacity - count > count / 8 ? realloc(bytes, count) ?? bytes : bytes
        return Data(bytesNoCopy: fitting, count: count, deallocator: .free)
    }

    /// Discards the body and releases its memory.
    mutating func clear() {
        if let bytes { BodyMemory.shared.give(bytes, capacity) }
        (bytes, capacity, count) = (nil, 0, 0)
    }

    private mutating func grow(to wanted: Int) {
        let wanted = BodyMemory.capacity(for: wanted)
        guard wanted > capacity else { return }
        if BodyMemory.isPooled(wanted), !BodyMemory.isPooled(capacity) {
            guard let larger = BodyMemory.shared.take(wanted) else { return }
            if let bytes {
                larger.copyMemory(from: bytes, byteCount: count)
                BodyMemory.shared.give(bytes, capacity)
            }
            bytes = larger
        } else {
            guard let larger = realloc(bytes, wanted) else { return }
            bytes = larger
        }
        capacity = wanted
    }
}

/// A pool of memory for bodies.
///
/// The system would provide new pages for each large body, which takes longer than filling them.
/// The system reuses smaller blocks itself, so the pool manages only sizes of more than 16 KiB, up
/// to 1 MiB. All sizes are multiples of 16 KiB, which limits the unused memory. The pool retains at
/// most 16 MiB.
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
        length > largest || length <= unit ? length : (length + unit - 1) / unit * unit
    }

    /// Returns whether the pool manages memory of this size.
    static func isPooled(_ capacity: Int) -> Bool { capacity > unit && capacity <= largest }

    /// Returns memory of a size that ``capacity(for:)`` returned; `nil` if none is available.
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
