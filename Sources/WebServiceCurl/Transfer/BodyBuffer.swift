import Foundation

/// The bytes of a body as they arrive. Large bodies are handed over without being copied, small ones leave the buffer for the next.
struct BodyBuffer: ~Copyable {
    private static let kept = BodyMemory.capacity(for: 1)

    private var bytes: UnsafeMutableRawPointer?
    private var capacity = 0
    private(set) var count = 0

    deinit {
        if let bytes { BodyMemory.shared.give(bytes, capacity) }
    }

    /// Makes room for a body of a length that the server names, which is believed up to 256 MiB; memory that is never written to costs nothing.
    mutating func reserve(_ length: Int64) {
        grow(to: Int(min(length, 256 << 20)))
    }

    /// - Returns: Whether there was memory for it.
    mutating func append(_ new: UnsafeRawBufferPointer) -> Bool {
        if count + new.count > capacity { grow(to: max(count + new.count, capacity &* 2)) }
        guard let bytes, count + new.count <= capacity, let start = new.baseAddress else { return new.isEmpty }
        (bytes + count).copyMemory(from: start, byteCount: new.count)
        count += new.count
        return true
    }

    /// Gives the body away; the buffer is empty then.
    mutating func take() -> Data {
        defer { count = 0 }
        guard let bytes, count > 0 else { return Data() }
        if capacity <= Self.kept { return Data(bytes: bytes, count: count) }
        self.bytes = nil
        defer { capacity = 0 }
        if capacity == BodyMemory.capacity(for: count), capacity != count {
            return Data(bytesNoCopy: bytes, count: count, deallocator: .custom { BodyMemory.shared.give($0, BodyMemory.capacity(for: $1)) })
        }
        let fitting = capacity - count > count / 8 ? realloc(bytes, count) ?? bytes : bytes
        return Data(bytesNoCopy: fitting, count: count, deallocator: .free)
    }

    /// Throws the body away.
    mutating func clear() {
        count = 0
        guard let bytes, capacity > Self.kept else { return }
        BodyMemory.shared.give(bytes, capacity)
        self.bytes = nil
        capacity = 0
    }

    private mutating func grow(to wanted: Int) {
        let wanted = BodyMemory.capacity(for: wanted)
        guard wanted > capacity else { return }
        if let bytes, capacity > Self.kept {
            guard let larger = realloc(bytes, wanted) else { return }
            self.bytes = larger
        } else {
            guard let larger = BodyMemory.shared.take(wanted) else { return }
            if let bytes {
                larger.copyMemory(from: bytes, byteCount: count)
                BodyMemory.shared.give(bytes, capacity)
            }
            bytes = larger
        }
        capacity = wanted
    }
}
