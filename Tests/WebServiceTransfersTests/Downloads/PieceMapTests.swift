import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("Pieces of a file", .permit)
struct PieceMapTests {
    private static let mebibyte: Int64 = 1 << 20

    @Test(
        "pieces cover the file without overlap",
        arguments: [
            1, 8 * mebibyte - 1, 8 * mebibyte, 8 * mebibyte + 1, 200 * mebibyte, 8_192 * mebibyte, 1 << 40, .max,
        ] as [Int64])
    func cover(total: Int64) {
        let map = PieceMap(total: total)
        var next: Int64 = 0
        for index in 0..<map.count {
            #expect(map.range(index).lowerBound == next)
            next = map.range(index).upperBound &+ 1
        }
        #expect(next == total)
        #expect(map.isValid)
        #expect(map.count <= 1_024)
        #expect(map.completeBytes == 0)
    }

    @Test("complete pieces are counted, also after encoding")
    func complete() throws {
        var map = PieceMap(total: 20 * Self.mebibyte)
        map.complete(2)
        #expect((0..<map.count).map(map.isComplete) == [false, false, true])
        #expect(map.completeBytes == 4 * Self.mebibyte)
        map.complete(0)
        map.complete(99)
        #expect(map.completeBytes == 12 * Self.mebibyte)
        #expect(!map.isComplete(99))
        var state = DownloadState(url: "https://h/a", headers: ["ETag": "\"1\""], total: map.total)
        state.pieces = map
        #expect(DownloadState(encoded: try #require(state.encoded)) == state)
    }

    @Test("the largest map fits into a state")
    func largest() throws {
        var map = PieceMap(total: .max)
        for index in 0..<map.count { map.complete(index) }
        var state = DownloadState(url: "https://h/a", total: map.total)
        state.pieces = map
        #expect(try #require(state.encoded).count <= DownloadState.maximumLength)
    }
}
