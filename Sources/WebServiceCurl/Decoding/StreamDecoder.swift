import Foundation
import Synchronization
import WebServiceCore

/// The state of a decoding library for one body.
protocol DecodingStream: ~Copyable {
    associatedtype Library: Sendable

    /// The coding, for errors.
    static var coding: ContentCoding { get }

    /// - Returns: `nil` if the library cannot allocate its state.
    init?(_ library: Library)

    /// Decodes as many bytes as there is room for.
    ///
    /// - Parameter input: The encoded bytes; on return, those that remain.
    /// - Returns: The number of decoded bytes, and whether the body may end here; `nil` if the
    ///   encoded bytes are invalid. In that case, earlier calls have usually returned all valid
    ///   bytes before the invalid ones.
    mutating func step(
        _ input: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isEnd: Bool)?

    /// Prepares for bytes after the end, such as another gzip member.
    ///
    /// - Parameter input: The bytes after the end, at least one; on return, those that remain.
    /// - Returns: `false` if the bytes are invalid.
    mutating func continueAfterEnd(_ input: inout UnsafeRawBufferPointer) -> Bool
}

/// A decoder that uses a system library to decode a content coding.
///
/// Unlike libcurl, the decoder rejects a truncated body.
final class StreamDecoder<Stream: DecodingStream & ~Copyable>: ContentDecoder {
    private enum Phase { case unused, unfinished, complete }

    /// @unchecked: this value alone owns its memory and the state of the library.
    private struct State: ~Copyable, @unchecked Sendable {
        var stream: Stream
        var phase = Phase.unused
        /// Whether the library may hold further output for the bytes that it has received.
        var hasPendingOutput = false
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)

        init?(_ library: Stream.Library) {
            guard let stream = Stream(library) else { return nil }
            self.stream = stream
        }

        deinit {
            room.deallocate()
        }
    }

    private let state: Lock<State>

    /// - Returns: `nil` if the library cannot allocate its state.
    init?(_ library: Stream.Library) {
        guard let state = State(library) else { return nil }
        self.state = Lock(state)
    }

    func decodeBytes(
        _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        try state.withLock { try Self.decode(bytes, limit: limit, with: &$0, append: append) }
    }

    private static func decode(
        _ bytes: UnsafeRawBufferPointer, limit: Int, with state: inout State,
        append: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        guard !bytes.isEmpty || state.hasPendingOutput else { return 0 }
        state.hasPendingOutput = false
        var input = bytes
        var decoded = 0
        repeat {
            if state.phase == .complete {
                guard state.stream.continueAfterEnd(&input) else { throw error("has bytes after its end") }
                if input.isEmpty { break }
            }
            guard let (count, isEnd) = state.stream.step(&input, into: state.room) else { throw error("is invalid") }
            state.phase = isEnd ? .complete : .unfinished
            if count > 0 { try append(UnsafeRawBufferPointer(rebasing: state.room[..<count])) }
            decoded += count
            state.hasPendingOutput = count == state.room.count && !isEnd
        } while decoded < limit && (!input.isEmpty || state.hasPendingOutput)
        return bytes.count - input.count
    }

    func finish() throws {
        guard state.withLock({ $0.phase != .unfinished }) else { throw Self.error("is truncated") }
    }

    private static func error(_ complaint: String) -> URLError {
        CurlError.error(
            .cannotDecodeContentData, "the body with the content coding \(Stream.coding.rawValue) \(complaint)")
    }
}
