package import Foundation

/// A body as a sequence of bytes in memory and files, with its total size.
///
/// A ``BodyReader`` reads the bytes.
package struct BodySource: Sendable {
    package enum Piece: Sendable {
        case bytes(Data)
        case file(File)

        var count: Int {
            switch self {
            case .bytes(let data): data.count
            case .file(let file): file.status.size
            }
        }
    }

    /// A regular file, with the status it had when the request was encoded.
    package struct File: Sendable {
        package let path: String
        /// What the file belongs to, for error messages, such as "the body".
        let owner: String
        let status: FileStatus
    }

    package let pieces: [Piece]

    /// The size of the body in bytes.
    package let count: Int

    /// Creates a body of bytes in memory.
    package init(_ data: Data) {
        pieces = [.bytes(data)]
        count = data.count
    }

    /// Creates a body of the content of a file.
    init(file url: URL) throws(WebServiceError) {
        let file = try File(url, owner: "the body")
        pieces = [.file(file)]
        count = file.status.size
    }

    private init(pieces: [Piece], count: Int) {
        self.pieces = pieces
        self.count = count
    }

    /// The whole body if it consists only of bytes in memory; otherwise `nil`.
    package var bytes: Data? {
        guard pieces.count == 1, case .bytes(let data)? = pieces.first else { return nil }
        return data
    }

    static let tooLong = WebServiceError(
        .encoding, "the size of the multipart body exceeds the range of Int; send fewer or shorter parts")

    /// A builder of a body. Consecutive bytes become one piece.
    struct Pieces {
        private var pieces: [Piece] = []
        private var pending = Data()

        /// - Parameter count: The number of bytes that follow, if the body contains no files.
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
                if overflows { throw BodySource.tooLong }
                count = sum
            }
            return BodySource(pieces: pieces, count: count)
        }
    }
}
