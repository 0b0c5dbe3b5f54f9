package import Foundation
import WebServiceCore
package import WebServiceMocking

/// A parser of HTTP/1.1 requests (RFC 9112), whose bytes arrive in pieces of any size.
///
/// The parser is strict: every line must end with CRLF. It performs no I/O, examines each byte
/// once, and allocates memory for a body only as its bytes arrive.
package struct RequestParser {
    /// The maximum sizes in bytes. The response to a larger request has status 400, 413, 414 or
    /// 431.
    package struct Limits {
        /// The request line, including its line ending.
        var requestLine = 64 << 10
        /// The header section or the trailer section, including line endings.
        var headers = 256 << 10
        /// The body as received, including chunk framing.
        var body = 256 << 20
        /// The first line of a chunk, including its extensions and line ending.
        var chunkLine = 4 << 10
    }

    /// The result of parsing the bytes received so far.
    package enum Event: Hashable {
        /// The client waits for a response with status 100 before it sends the body. This event is
        /// reported once per request.
        case continueExpected
        /// A complete request.
        case request(ReceivedRequest)
        /// The bytes are not a valid request.
        ///
        /// The rest of the connection cannot be parsed, so every further call reports the same
        /// violation.
        case violation(RequestHead.Violation)
    }

    private enum Phase {
        case requestLine
        case headers(start: Int)
        case body(end: Int)
        case chunkLine
        case chunk(end: Int)
        case trailers(start: Int)
        case failed(RequestHead.Violation)
    }

    private let connection: Int
    private let limits: Limits
    private var phase = Phase.requestLine
    private var head = RequestHead()
    private var body = Data()
    /// The bytes since the beginning of the request. Positions are offsets into this buffer.
    private var buffer: [UInt8] = []
    private var position = 0
    /// The end of the range from `position` that contains no line feed.
    private var scanned = 0
    private var bodyStart = 0
    private var hasSkippedLine = false

    /// - Parameter connection: The number that the requests report as their connection.
    package init(connection: Int = 1, limits: Limits = Limits()) {
        self.connection = connection
        self.limits = limits
    }

    /// Appends received bytes. Call ``next()`` afterwards until it returns `nil`.
    package mutating func append(_ bytes: some Collection<UInt8>) {
        buffer.append(contentsOf: bytes)
    }

    /// The bytes that follow the requests returned so far.
    package var rest: Data { Data(buffer[position...]) }

    /// Returns the next event, or `nil` if more bytes are needed.
    package mutating func next() -> Event? {
        do throws(RequestHead.Violation) {
            while true {
                switch try step() {
                case .goOn: continue
                case .wait: return nil
                case .event(let event): return event
                }
            }
        } catch {
            phase = .failed(error)
            buffer = []
            return .violation(error)
        }
    }

    /// The header of a request with a body, until ``takePendingHead()`` removes it.
    private(set) var pendingHead: RequestHead?

    /// The number of bytes of an incomplete body that have arrived; `nil` before the body.
    var bodyByteCount: Int? {
        switch phase {
        case .body, .chunkLine, .chunk, .trailers: max(buffer.count - bodyStart, 0)
        case .requestLine, .headers, .failed: nil
        }
    }

    /// Returns ``pendingHead``, once per request.
    mutating func takePendingHead() -> RequestHead? { pendingHead.take() }

    private enum Step {
        case goOn, wait
        case event(Event)
    }

    private mutating func step() throws(RequestHead.Violation) -> Step {
        switch phase {
        case .requestLine:
            guard let line = try nextLine(limit: limits.requestLine, status: 414) else { return .wait }
            if line.isEmpty, !hasSkippedLine {  // an empty line before a request is ignored (RFC 9112, section 2.2)
                hasSkippedLine = true
                removeRead()
                return .goOn
            }
            try head.readRequestLine(line)
            phase = .headers(start: position)
        case .headers(let start):
            guard let line = try nextLine(limit: limits.headers - (position - start), status: 431) else { return .wait }
            if line.isEmpty { return try beginBody() }
            try head.readField(line)
        case .body(let end):
            guard buffer.count >= end else { return .wait }
            body = Data(buffer[position..<end])
            position = end
            return .event(.request(takeRequest()))
        case .chunkLine:
            guard let line = try nextLine(limit: limits.chunkLine, status: 400) else { return .wait }
            try beginChunk(line)
        case .chunk(let end):
            guard buffer.count >= end + 2 else { return .wait }
            guard buffer[end] == UInt8(ascii: "\r"), buffer[end + 1] == UInt8(ascii: "\n") else {
                throw RequestHead.Violation(status: 400, reason: "a chunk is not followed by CRLF")
            }
            body.append(contentsOf: buffer[position..<end])
            position = end + 2
            phase = .chunkLine
        case .trailers(let start):
            guard let line = try nextLine(limit: limits.headers - (position - start), status: 431) else { return .wait }
            if line.isEmpty { return .event(.request(takeRequest())) }
            var trailer = RequestHead()  // validated but not merged into the header fields (RFC 9110, section 6.5.1)
            try trailer.readField(line)
        case .failed(let violation):
            throw violation
        }
        return .goOn
    }

    private mutating func beginBody() throws(RequestHead.Violation) -> Step {
        bodyStart = position
        switch try head.framing() {
        case .chunked:
            pendingHead = head
            phase = .chunkLine
        case .length(let length):
            if length > 0 { pendingHead = head }
            guard length <= limits.body else {
                throw RequestHead.Violation(status: 413, reason: "the body is larger than \(limits.body) bytes")
            }
            phase = .body(end: position + length)
            if length == 0 { return .goOn }
        }
        return head.expectsContinue && buffer.count == position ? .event(.continueExpected) : .goOn
    }

    private mutating func beginChunk(_ line: ArraySlice<UInt8>) throws(RequestHead.Violation) {
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        guard let size = ASCII.number(digits, radix: 16), ASCII.isFieldValue(line) else {
            throw RequestHead.Violation(status: 400, reason: "a chunk does not begin with its size")
        }
        guard size <= limits.body - min(position - bodyStart, limits.body) else {
            throw RequestHead.Violation(status: 413, reason: "the body is larger than \(limits.body) bytes")
        }
        phase = size == 0 ? .trailers(start: position) : .chunk(end: position + size)
    }

    /// Returns the next line without its CRLF, or `nil` if the line is incomplete.
    private mutating func nextLine(limit: Int, status: Int) throws(RequestHead.Violation) -> ArraySlice<UInt8>? {
        let end = buffer[max(scanned, position)...].firstIndex(of: UInt8(ascii: "\n"))
        scanned = end.map { $0 + 1 } ?? buffer.count
        guard scanned - position <= limit else {
            throw RequestHead.Violation(status: status, reason: "a line, the header or the trailer is too long")
        }
        guard let end else { return nil }
        guard end > position, buffer[end - 1] == UInt8(ascii: "\r") else {
            throw RequestHead.Violation(status: 400, reason: "a line does not end with CRLF")
        }
        let line = buffer[position..<(end - 1)]
        position = scanned
        return line
    }

    private mutating func takeRequest() -> ReceivedRequest {
        let request = ReceivedRequest(
            head: head, body: body, rawBytes: Data(buffer[..<position]), connection: connection)
        head = RequestHead()
        body = Data()
        phase = .requestLine
        hasSkippedLine = false
        removeRead()
        return request
    }

    private mutating func removeRead() {
        buffer.removeSubrange(..<position)
        position = 0
        scanned = 0
    }
}
