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
            let reader = BodyReader(source)
            while true {
                let chunk = try Self.chunk(of: reader)
                if chunk.isEmpty { break }
                try await sink.take(encoder.encode(chunk))
            }
            try await sink.take(encoder.finish())
        }
    }

    private static func chunk(of reader: BodyReader) throws -> Data {
        var chunk = Data(count: 64 << 10)
        let count = try chunk.withUnsafeMutableBytes { try reader.read(into: $0) }
        return chunk.prefix(count)
    }
}
