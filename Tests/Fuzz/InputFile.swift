import Foundation

/// A file in shared memory that contains the current input, even after the process has trapped.
struct InputFile {
    private static let headerLength = 16
    private static let length = headerLength + 2 * Mutator.maximumLength

    private let memory: UnsafeMutableRawPointer

    /// Maps the file at a path and creates it if it does not exist.
    init(path: String) throws {
        let descriptor = open(path, O_RDWR | O_CREAT, 0o600)
        guard descriptor >= 0, ftruncate(descriptor, off_t(Self.length)) == 0,
            let memory = mmap(nil, Self.length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), memory != MAP_FAILED
        else { throw Finding(text: "\(path) cannot be mapped: \(String(cString: strerror(errno)))") }
        close(descriptor)
        self.memory = memory
    }

    /// The number of inputs so far.
    var count: UInt64 { memory.load(as: UInt64.self) }

    /// The current input.
    var input: [UInt8] {
        let length = min(Int(memory.load(fromByteOffset: 8, as: UInt64.self)), Self.length - Self.headerLength)
        return Array(UnsafeRawBufferPointer(start: memory + Self.headerLength, count: length))
    }

    func begin(_ input: [UInt8]) {
        let input = input.prefix(Self.length - Self.headerLength)
        memory.storeBytes(of: UInt64(input.count), toByteOffset: 8, as: UInt64.self)
        input.withUnsafeBytes {
            (memory + Self.headerLength).copyMemory(
                from: $0.baseAddress ?? UnsafeRawPointer(memory), byteCount: $0.count)
        }
        memory.storeBytes(of: count + 1, as: UInt64.self)
    }
}

/// Returns the processor time of the calling thread in seconds, independent of the machine's load.
func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
