package import Foundation

/// A body that a sequence produces while it is sent.
package final class StreamedBody: Sendable {
    /// A receiver of the bytes that a sequence produces.
    struct Sink {
        let take: (Data) async throws -> Void

        /// Passes on all elements of a sequence.
        func take<Chunks: AsyncSequence>(_ chunks: Chunks) async throws where Chunks.Element == Data {
            for try await chunk in chunks where !chunk.isEmpty { try await take(chunk) }
        }
    }

    /// The number of bytes; `nil` if it is unknown.
    package let length: Int64?
    /// A Boolean value that indicates whether the sequence can be opened more than once.
    package let isReplayable: Bool

    private let open: @Sendable (Sink) async throws -> Void
    private let wasOpened = OnceFlag()

    init(length: Int64?, isReplayable: Bool, _ open: @escaping @Sendable (Sink) async throws -> Void) {
        self.length = length
        self.isReplayable = isReplayable
        self.open = open
    }

    /// A Boolean value that indicates whether the sequence can be opened now.
    package var canBeOpened: Bool { isReplayable || !wasOpened.isSet }

    /// Opens the sequence and passes on its elements, none of which is empty.
    ///
    /// - Parameter owner: The name of the sequence's owner in error messages.
    /// - Throws: ``WebServiceError/Code/encoding`` if the number of bytes is not ``length``, before
    ///   the first surplus byte is passed on; ``WebServiceError/Code/bodyNotReplayable`` if the
    ///   sequence cannot be opened again; and the errors of the sequence and of `take`.
    package func produce(of owner: String = "the body", _ take: @escaping (Data) async throws -> Void) async throws {
        guard wasOpened.set() || isReplayable else {
            throw WebServiceError(
                .bodyNotReplayable,
                "the body can be read only once; pass stream(length:) a closure that returns a new sequence")
        }
        var count: Int64 = 0
        try await open(
            Sink { [length] chunk in
                count += Int64(chunk.count)
                if let length, count > length { throw Self.wrongLength("more", owner) }
                try await take(chunk)
            })
        if let length, count < length { throw Self.wrongLength("fewer", owner) }
    }

    private static func wrongLength(_ comparison: String, _ owner: String) -> WebServiceError {
        WebServiceError(
            .encoding,
            "the sequence of \(owner) produced \(comparison) bytes than its length; pass the exact length or nil")
    }
}
