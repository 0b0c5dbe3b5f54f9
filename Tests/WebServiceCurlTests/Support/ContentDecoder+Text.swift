import Foundation
import Testing
import WebServiceCore

extension ContentDecoder {
    /// Returns the decoded string, or `nil` if the bytes are invalid or truncated.
    func text(_ bytes: Data, pieces: Int) throws -> String? {
        var text = Data()
        var rest = bytes[...]
        do {
            while !rest.isEmpty {
                let piece = Data(rest.prefix(pieces))
                rest = rest.dropFirst(pieces)
                let used = try piece.withUnsafeBytes {
                    try decodeBytes($0, limit: .max) { text.append(contentsOf: $0) }
                }
                #expect(used == piece.count)
            }
            try finish()
        } catch let error as URLError where error.code == .cannotDecodeContentData {
            return nil
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes bytes with a limit of 1,000, and checks that no call returns much more.
    ///
    /// - Returns: The number of decoded bytes and of calls.
    func countInPieces(of bytes: Data) throws -> (count: Int, calls: Int) {
        var (rest, count, calls) = (bytes[...], 0, 0)
        var isFull = true
        while !rest.isEmpty || isFull {
            var decoded = 0
            let used = try rest.withUnsafeBytes {
                try decodeBytes($0, limit: 1_000) { piece in decoded += piece.count }
            }
            rest = rest.dropFirst(used)
            (count, calls, isFull) = (count + decoded, calls + 1, decoded >= 1_000)
            #expect(decoded <= 64 << 10)
        }
        try finish()
        return (count, calls)
    }
}
