import Foundation
import WebServiceCurl

/// Records the numbers that the preloaded library counts, before each request.
///
/// @unchecked: requests are sent one after another, so no two threads use the recorder at the same
/// time.
final class CallRecorder: @unchecked Sendable {
    private typealias Counts = (allocations: UInt, bytes: UInt, locks: UInt)
    private typealias Read = @convention(c) (UnsafeMutableRawPointer?) -> Void

    private let readCounts = function("counted_calls")
    private let readSizes = function("counted_sizes")
    private let warmUp: Int
    // Recording does not allocate memory.
    private var counts: [Counts] = []
    private var sizesBefore = [UInt](repeating: 0, count: 4097)
    private var sizesAfter = [UInt](repeating: 0, count: 4097)

    /// - Parameters:
    ///   - warmUp: The number of requests that are not reported.
    ///   - count: The number of requests that are reported.
    init(warmUp: Int, count: Int) {
        self.warmUp = warmUp
        counts.reserveCapacity(warmUp + count + 1)
        print(getpid(), "libcurl", CurlSession.library.version)
        fflush(nil)
    }

    /// Waits until standard input permits the next request, and marks its start.
    ///
    /// The system call `getppid` is the mark in a trace.
    func begin() {
        var byte = UInt8(ascii: ".")
        guard write(1, &byte, 1) == 1, read(0, &byte, 1) == 1 else { exit(1) }
        _ = getppid()
        guard let readCounts else { return }
        if counts.count == warmUp { sizesBefore.withUnsafeMutableBytes { readSizes?($0.baseAddress) } }
        var current: Counts = (0, 0, 0)
        withUnsafeMutableBytes(of: &current) { readCounts($0.baseAddress) }
        counts.append(current)
    }

    /// Prints the allocations, their bytes and the locks of each request, and then the sizes of all
    /// allocations with their numbers.
    func report() {
        begin()
        sizesAfter.withUnsafeMutableBytes { readSizes?($0.baseAddress) }
        print()
        for (first, second) in zip(counts, counts.dropFirst()).dropFirst(warmUp) {
            print(second.allocations - first.allocations, second.bytes - first.bytes, second.locks - first.locks)
        }
        for (size, (before, after)) in zip(sizesBefore, sizesAfter).enumerated() where after > before {
            print("size", size, after - before)
        }
    }

    /// Returns a function of the preloaded library; `nil` without the library, in a process that is
    /// traced.
    private static func function(_ name: String) -> Read? {
        dlsym(nil, name).map { unsafeBitCast($0, to: Read.self) }
    }
}
