package import Foundation

/// A body that a sequence produces while the body is sent.
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
    /// Whether the sequence can be opened more than once.
    package let isReplayable: Bool

    private let open: @Sendable (Sink) async throws -> Void
    private let wasOpened = OnceFlag()

    init(length: Int64?, isReplayable: Bool, _ open: @escaping @Sendable (Sink) async throws -> Void) {
        self.length = length
        self.isReplayable = isReplayable
        self.open = open
    }

    /// Whether the sequence can be opened now.
    package var canBeOpened: Bool { isReplayable || !wasOpened.isSet }

    /// Opens the sequence and passes on its elements, none of which is empty.
    ///
    /// - Parameter owner: The name of the sequence's owner in error messages.
    /// - Throws: ``WebServiceError/Code/encoding`` if the number of bytes differs from ``length``,
    ///   before any surplus byte is passed on; ``WebServiceError/Code/bodyNotReplayable`` if the
    ///   sequence cannot be opened again; and the errors of the sequence and of `take`.
    package func produce(of owner: String = "the body", _ take: @escaping (Data) async throws -> Void) async throws {
        guard wasOpened.set() || isReplayable else {
            throw WebServiceError(
                .bodyNotReplayable,
                "the body can be read only once; to send it again, call stream(length:) with a closure that returns a "
                    + "new sequence")
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
            "the sequence of \(owner) produced \(comparison) bytes than the given length; pass the exact length or nil")
    }
}

extension StreamedBody {
    /// Returns all bytes, for a session that cannot send them while they are produced.
    ///
    /// A body of more than 1 MiB is written to an unlinked temporary file, which is mapped into
    /// memory.
    func collected() async throws -> Data {
        var pending = Data()
        var file: UnlinkedFile?
        do {
            try await produce { chunk in
                try Task.checkCancellation()
                pending.append(chunk)
                guard pending.count > 1 << 20 else { return }
                let spilled = try file ?? UnlinkedFile()
                file = spilled
                try spilled.descriptor.append(pending)
                pending = Data()
            }
            guard let file else { return pending }
            try file.descriptor.append(pending)
            return try TemporaryFile.mapping(file, count: file.descriptor.status().size)
        } catch let failure as SystemFailure {
            throw failure.error(.encoding, "the body could not be written to a temporary file")
        }
    }
}

extension StreamedBody {
    /// Returns the body with the content coding gzip (RFC 9110, section 8.4.1.3).
    ///
    /// The receiver can decode each element when it arrives.
    func compressed() -> StreamedBody {
        StreamedBody(length: nil, isReplayable: isReplayable) { [self] sink in
            let encoder = try GzipEncoder()
            try await produce { try await sink.take(encoder.encode($0)) }
            try await sink.take(encoder.finish())
        }
    }

    /// Creates a body of bytes and files with the content coding gzip.
    convenience init(compressing source: BodySource) {
        self.init(length: nil, isReplayable: true) { sink in
            let encoder = try GzipEncoder()
            try await StreamedBody.Sink { try await sink.take(encoder.encode($0)) }.take(source)
            try await sink.take(encoder.finish())
        }
    }
}

extension StreamedBody.Sink {
    /// Passes on the bytes of a body, in pieces of 64 KiB.
    func take(_ source: BodySource) async throws {
        let reader = BodyReader(source)
        while true {
            var chunk = Data(count: min(64 << 10, source.count - reader.offset))
            let count = try chunk.withUnsafeMutableBytes { try reader.read(into: $0) }
            if count == 0 { return }
            try await take(chunk.prefix(count))
        }
    }
}
