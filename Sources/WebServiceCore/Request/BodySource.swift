package import Foundation

/// A body as bytes in memory and files between them: what it consists of, and how long it is. A ``BodyReader`` reads it.
package struct BodySource: Sendable {
    enum Piece: Sendable {
        case bytes(Data)
        case file(File)

        var count: Int {
            switch self {
            case .bytes(let data): data.count
            case .file(let file): file.status.size
            }
        }
    }

    /// A regular file, as it was when the request was encoded.
    struct File: Sendable {
        let path: String
        /// What messages call that to which it belongs.
        let owner: String
        let status: FileStatus
    }

    let pieces: [Piece]

    /// How long the body is, in bytes.
    package let count: Int

    /// Makes a body of bytes in memory.
    package init(_ data: Data) {
        pieces = [.bytes(data)]
        count = data.count
    }

    private init(pieces: [Piece], count: Int) {
        self.pieces = pieces
        self.count = count
    }

    /// All bytes, where no file is among them.
    var bytes: Data? {
        guard pieces.count == 1, case .bytes(let data)? = pieces.first else { return nil }
        return data
    }

    /// Puts a source together; bytes that follow one another become one piece.
    struct Pieces {
        private var pieces: [Piece] = []
        private var pending = Data()

        /// - Parameter count: How many bytes are to come, where no file is among them.
        mutating func reserve(_ count: Int) {
            pending.reserveCapacity(count)
        }

        mutating func append(_ bytes: ArraySlice<UInt8>) {
            pending.append(contentsOf: bytes)
        }

        mutating func append(_ data: Data) {
            pending.append(data)
        }

        mutating func append(_ file: File) {
            flush()
            pieces.append(.file(file))
        }

        private mutating func flush() {
            if !pending.isEmpty { pieces.append(.bytes(pending)) }
            pending = Data()
        }

        consuming func source() throws(WebServiceError) -> BodySource {
            flush()
            var count = 0
            for piece in pieces {
                let (sum, overflows) = count.addingReportingOverflow(piece.count)
                if overflows { throw WebServiceError(.encoding, "the multipart body is longer than can be counted") }
                count = sum
            }
            return BodySource(pieces: pieces, count: count)
        }
    }
}
