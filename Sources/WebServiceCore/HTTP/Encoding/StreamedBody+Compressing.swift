import Foundation

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
