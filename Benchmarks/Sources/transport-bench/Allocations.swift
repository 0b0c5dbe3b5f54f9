import Foundation

/// The allocations of a client, in a process that preloads `scripts/lib/count-calls.c`.
struct Allocations: Codable, Sendable {
    var perRequest: Double
    /// The bytes that these allocations request.
    var bytesPerRequest: Double

    struct NotCounted: Error, CustomStringConvertible {
        let description = "the library that counts allocations is not preloaded"
    }

    /// Counts the allocations of a client as the difference of a short and a long run, so that
    /// opening the client and its connections is not included.
    static func count(_ variant: Variant, _ load: Load) async throws -> Allocations {
        var short = load
        short.seconds = load.seconds / 5
        _ = try await run(variant, short)
        let (few, many) = (try await run(variant, short), try await run(variant, load))
        let requests = Double(max(1, many.requests - few.requests))
        return Allocations(
            perRequest: (many.allocations - few.allocations) / requests,
            bytesPerRequest: (many.bytes - few.bytes) / requests)
    }

    private typealias Counts = (allocations: Double, bytes: Double)

    private static func run(
        _ variant: Variant, _ load: Load
    ) async throws -> (requests: Int, allocations: Double, bytes: Double) {
        let before = try counts()
        let requests = try await variant.run(load)
        let after = try counts()
        return (requests, after.allocations - before.allocations, after.bytes - before.bytes)
    }

    private static func counts() throws -> Counts {
        guard let symbol = dlsym(nil, "counted_calls") else { throw NotCounted() }
        var counts: (UInt, UInt, UInt) = (0, 0, 0)
        withUnsafeMutableBytes(of: &counts) {
            unsafeBitCast(symbol, to: (@convention(c) (UnsafeMutableRawPointer?) -> Void).self)($0.baseAddress)
        }
        return (Double(counts.0), Double(counts.1))
    }
}
