import Foundation
import WebServiceCore

/// The head of a request as libcurl sends it.
struct SentHead {
    private static let end = Data("\r\n\r\n".utf8)

    private var bytes = Data()

    /// Adds bytes. Bytes after a complete head belong to the next head. After the head of a request
    /// for a tunnel, this is the head of the request itself. Otherwise, it is the head of the same
    /// request on another connection.
    mutating func add(_ part: UnsafeRawBufferPointer) {
        if bytes.suffix(Self.end.count) == Self.end { bytes.removeAll() }
        bytes.append(contentsOf: part)
    }

    /// The header fields in order, including those that libcurl has added; empty if only the
    /// request for a proxy tunnel was sent.
    var headers: Headers {
        guard !bytes.starts(with: Data("CONNECT ".utf8)) else { return [:] }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n").dropFirst()
        return Headers(
            lines.compactMap { line in
                guard let colon = line.firstIndex(of: ":") else { return nil }
                let value = line[line.index(after: colon)...].drop { $0 == " " }
                return (String(line[..<colon]), String(value))
            })
    }
}
