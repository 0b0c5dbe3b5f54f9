import Foundation
import Synchronization
import WebServiceCore

/// A decoder for a body with two content codings, such as `gzip, gzip` if a proxy compresses a
/// compressed body again.
final class DecoderPair: ContentDecoder {
    private struct State {
        /// The output of the first decoder that the second decoder has not decoded yet.
        var middle = Data()
        /// The number of bytes that the first decoder may still return.
        var allowance = 1 << 20
    }

    private let first: any ContentDecoder
    private let second: any ContentDecoder
    private let state = Lock(State())

    /// The number of bytes after which the first decoder returns.
    private static let pieceSize = 32 << 10
    /// The maximum ratio of decoded to encoded bytes for the first decoder. Compressed bytes can
    /// hardly be compressed again, and the ratios of both decoders multiply.
    private static let maximumRatio = 64

    /// - Parameters:
    ///   - first: The decoder of the coding that was applied last.
    ///   - second: The decoder of the coding that was applied first.
    init(_ first: any ContentDecoder, _ second: any ContentDecoder) {
        self.first = first
        self.second = second
    }

    func decodeBytes(
        _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        try state.withLock { state in
            var (consumed, decoded) = (0, 0)
            while true {
                let used = try state.middle.withUnsafeBytes { middle in
                    try second.decodeBytes(middle, limit: limit - decoded) { output in
                        decoded += output.count
                        try append(output)
                    }
                }
                state.middle = used == state.middle.count ? Data() : state.middle.dropFirst(used)
                guard decoded < limit, state.middle.isEmpty else { return consumed }
                let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
                let count = try first.decodeBytes(rest, limit: Self.pieceSize) { state.middle.append(contentsOf: $0) }
                consumed += count
                state.allowance += Self.maximumRatio * count - state.middle.count
                guard state.allowance >= 0 else {
                    throw CurlError.error(
                        .cannotDecodeContentData,
                        "the body has two content codings, and decoding the first one made it more than "
                            + "\(Self.maximumRatio) times as long")
                }
                if state.middle.isEmpty { return consumed }
            }
        }
    }

    func finish() throws {
        try first.finish()
        try second.finish()
    }
}
