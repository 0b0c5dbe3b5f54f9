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
}
