import Foundation
import WebServiceCurl

/// Records the numbers that the preloaded library counts, before each request.
///
/// @unchecked: requests are sent one after another, so no two threads use the recorder at the same
/// time.
final class CallRecorder: @unchecked Sendable {
    private typealias Counts = (allocations: UInt, bytes: UInt, locks: UInt)
    private typealias Read = @convention(c) (UnsafeMutableRawPointer?) -> Void

    private let readCounts: Read
    private let warmUp: Int
    // Recording does not allocate memory.
    private var counts: [Counts] = []

    /// - Parameters:
    ///   - warmUp: The number of requests that are not reported.
    ///   - count: The number of requests that are reported.
    init(warmUp: Int, count: Int) {
        guard let function = dlsym(nil, "counted_calls") else { exit(1) }
        readCounts = unsafeBitCast(function, to: Read.self)
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
        var current: Counts = (0, 0, 0)
        withUnsafeMutableBytes(of: &current) { readCounts($0.baseAddress) }
        counts.append(current)
    }

    /// Prints the allocations, their bytes and the locks of each request.
    func report() {
        begin()
        print()
        for (first, second) in zip(counts, counts.dropFirst()).dropFirst(warmUp) {
            print(second.allocations - first.allocations, second.bytes - first.bytes, second.locks - first.locks)
        }
    }
}
