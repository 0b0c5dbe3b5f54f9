import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The bytes of a request body that a sequence produces.
@Suite("Bytes of a sequence", .permit)
struct BodyFeedTests {
    /// Returns the next bytes; `nil` if there are none yet.
    private func read(_ feed: BodyFeed) throws -> String? {
        var room = [UInt8](repeating: 0, count: 100)
        let count = try room.withUnsafeMutableBytes { try feed.read(into: $0) }
        return count.map { String(decoding: room[..<$0], as: UTF8.self) }
    }

    @Test("The last byte of a body of known length is returned only after the sequence has ended")
    func lastByte() async throws {
        let (chunks, continuation) = AsyncStream<Data>.makeStream()
        let more = Collected<Void>()
        let feed = BodyFeed(StreamedBody(length: 4, isReplayable: false) { try await $0.take(chunks) }) { more.add(()) }
        feed.start()
        #expect(try read(feed) == nil)
        continuation.yield(Data("beer".utf8))
        await more.wait()
        #expect(try read(feed) == "bee")
        #expect(try read(feed) == nil)
        continuation.finish()
        await more.wait(for: 2)
        #expect(try read(feed) == "r")
        #expect(try read(feed) == "")
    }
}
