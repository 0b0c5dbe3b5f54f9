package import Foundation
package import WebServiceCore

/// A parser of the response to a handshake, whose bytes arrive in pieces of any size.
///
/// The body of a refused handshake has a specified length, is chunked, or ends with the connection
/// (RFC 9112, section 6.3).
package struct HandshakeResponse {
    package enum Event {
        case interim(ResponseHead)
        case head(ResponseHead)
        case body(Data)
        /// The body is complete.
        case end
    }

    private enum Phase {
        case head
        case body(remaining: Int)
        case bodyUntilEnd
        case chunkLine
        case chunk(remaining: Int)
        case chunkEnd
        case trailers
        case over
    }

    /// The maximum sizes of a head, and of a line of a chunked body, in bytes.
    private static let maximumHeadLength = 256 << 10
    private static let maximumLineLength = 4 << 10

    private let url: String
    private var phase = Phase.head
    private var bytes: [UInt8] = []
    /// The start of the unparsed bytes, and the end of the part of them that contains no line feed.
    private var position = 0
    private var scanned = 0
    private var headStart = 0
    private var lineCount = 0

    /// - Parameter url: The URL of the request.
    package init(url: String) {
        self.url = url
    }

    package mutating func append(_ data: Data) {
        let start = if case .head = phase { headStart } else { position }
        bytes.removeSubrange(..<start)
        (position, scanned, headStart) = (position - start, max(scanned - start, 0), 0)
        bytes.append(contentsOf: data)
    }

    /// The bytes that follow the head of a response with status 101.
    package var rest: Data { Data(bytes[position...]) }

    /// Returns the next event; `nil` if more bytes are needed.
    ///
    /// - Throws: `URLError.badServerResponse` if the bytes are not a response.
    package mutating func next() throws -> Event? {
        while true {
            switch phase {
            case .head:
                guard let head = try nextHead() else { return nil }
                if head.status != 101, head.status < 200 { return .interim(head) }
                phase = head.status == 101 ? .over : try Self.body(of: head)
                return .head(head)
            case .body(let count):
                if count == 0 { phase = .over; return .end }
                guard let data = take(count) else { return nil }
                phase = .body(remaining: count - data.count)
                return .body(data)
            case .bodyUntilEnd:
                return take(.max).map { .body($0) }
            case .chunkLine:
                guard let line = try nextLine(Self.maximumLineLength) else { return nil }
                guard let size = ASCII.number(line.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 }, radix: 16) else {
                    throw Self.malformed("a chunk does not begin with its size")
                }
                phase = size == 0 ? .trailers : .chunk(remaining: size)
            case .chunk(let count):
                guard let data = take(count) else { return nil }
                phase = data.count == count ? .chunkEnd : .chunk(remaining: count - data.count)
                return .body(data)
            case .chunkEnd:
                guard let line = try nextLine(Self.maximumLineLength) else { return nil }
                guard line.isEmpty else { throw Self.malformed("a chunk is not followed by CRLF") }
                phase = .chunkLine
            case .trailers:
                guard let line = try nextLine(Self.maximumLineLength) else { return nil }
                lineCount += 1
                guard lineCount <= 1_000 else { throw Self.malformed("it has too many trailer fields") }
                if line.isEmpty { phase = .over; return .end }
            case .over: return nil
            }
        }
    }

    /// Ends the response, because the connection has ended.
    ///
    /// - Throws: `URLError.networkConnectionLost` if the response is not complete.
    package mutating func finish() throws -> Event? {
        switch phase {
        case .over: return nil
        case .bodyUntilEnd:
            phase = .over
            return .end
        default: throw URLError(.networkConnectionLost)
        }
    }

    private mutating func nextHead() throws -> ResponseHead? {
        while true {
            guard let line = try nextLine(Self.maximumHeadLength - (position - headStart)) else { return nil }
            guard !line.contains(0) else { throw Self.malformed("its head contains NUL") }
            guard line.isEmpty else { continue }
            defer { headStart = position }
            guard let head = ResponseHead(bytes: Array(bytes[headStart..<position]), url: url) else {
                throw Self.malformed("it does not begin with a status line")
            }
            return head
        }
    }

    private static func body(of head: ResponseHead) throws -> Phase {
        if head.status == 204 || head.status == 304 { return .body(remaining: 0) }
        let codings = head.values(for: "Transfer-Encoding")
        if let coding = codings.last {
            guard codings.count == 1, coding.equalsIgnoringASCIICase("chunked") else {
                throw malformed("its transfer coding is not chunked")
            }
            return .chunkLine
        }
        let lengths = Set(head.values(for: .contentLength))
        guard let text = lengths.first else { return .bodyUntilEnd }
        guard lengths.count == 1, let length = ASCII.number(text.utf8) else {
            throw malformed("its Content-Length is not a number")
        }
        return .body(remaining: length)
    }

    private mutating func take(_ maximum: Int) -> Data? {
        let count = min(maximum, bytes.count - position)
        guard count > 0 else { return nil }
        let data = Data(bytes[position..<position + count])
        position += count
        return data
    }

    /// Returns the next line without its line ending; `nil` if it is incomplete.
    private mutating func nextLine(_ limit: Int) throws -> ArraySlice<UInt8>? {
        let end = bytes[max(scanned, position)...].firstIndex(of: 0x0A)
        scanned = end.map { $0 + 1 } ?? bytes.count
        guard scanned - position <= limit else { throw Self.malformed("its head or a line is too long") }
        guard let end else { return nil }
        let line = bytes[position..<end]
        position = end + 1
        return line.last == 0x0D ? line.dropLast() : line
    }

    private static func malformed(_ reason: String) -> URLError {
        let message = "the response to the handshake is malformed: \(reason)"
        return URLError(.badServerResponse, userInfo: [NSLocalizedDescriptionKey: message])
    }
}
