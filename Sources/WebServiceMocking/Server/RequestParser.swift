import Foundation
import WebServiceCore

/// Reads requests of HTTP/1.1 (RFC 9112) from bytes that arrive in pieces of any size; strict: every line ends with CRLF, nothing is repaired.
///
/// A value without I/O. Each byte is looked at once, and no memory is taken for a body before its bytes are there.
struct RequestParser {
    /// Up to how many bytes are accepted; one more is answered with 414, 431 or 413.
    struct Limits {
        /// The request line, with its end.
        var requestLine = 64 << 10
        /// The header section, and likewise the trailer section, with the ends of the lines.
        var headers = 256 << 10
        /// The body as it arrives, so with what frames its chunks.
        var body = 256 << 20
        /// A line that begins a chunk, with its extensions and its end.
        var chunkLine = 4 << 10
    }

    /// What the bytes so far amount to.
    enum Event: Hashable {
        /// The client waits for a 100 before it sends the body. Told once for each request.
        case continueExpected
        /// A whole request.
        case request(ReceivedRequest)
        /// Not a request. Nothing that follows on the connection can be understood, so this is told again from then on.
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
    /// What arrived since the request began; positions count from there.
    private var buffer: [UInt8] = []
    private var position = 0
    /// There is no line feed between `position` and here, where this is the larger one.
    private var scanned = 0
    private var bodyStart = 0
    private var hasSkippedLine = false

    /// - Parameter connection: The number that the requests bear.
    init(connection: Int = 1, limits: Limits = Limits()) {
        self.connection = connection
        self.limits = limits
    }

    /// Takes bytes as they arrive; call ``next()`` until it gives `nil` afterwards.
    mutating func append(_ bytes: some Collection<UInt8>) {
        buffer.append(contentsOf: bytes)
    }

    /// What comes next; `nil` when more bytes are needed.
    mutating func next() -> Event? {
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

    private enum Step {
        case goOn, wait
        case event(Event)
    }

    private mutating func step() throws(RequestHead.Violation) -> Step {
        switch phase {
        case .requestLine:
            guard let line = try nextLine(limit: limits.requestLine, status: 414) else { return .wait }
            if line.isEmpty, !hasSkippedLine {  // one empty line before a request is ignored (RFC 9112, section 2.2)
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
                throw RequestHead.Violation(status: 400, reason: "a chunk is not followed by the end of the line")
            }
            body.append(contentsOf: buffer[position..<end])
            position = end + 2
            phase = .chunkLine
        case .trailers(let start):
            guard let line = try nextLine(limit: limits.headers - (position - start), status: 431) else { return .wait }
            if line.isEmpty { return .event(.request(takeRequest())) }
            var trailer = RequestHead()  // checked, and not merged into the header fields (RFC 9110, section 6.5.1)
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
            phase = .chunkLine
        case .length(let length):
            guard length <= limits.body else { throw RequestHead.Violation(status: 413, reason: "the body is larger than \(limits.body) bytes") }
            phase = .body(end: position + length)
            if length == 0 { return .goOn }
        }
        return head.expectsContinue && buffer.count == position ? .event(.continueExpected) : .goOn
    }

    private mutating func beginChunk(_ line: ArraySlice<UInt8>) throws(RequestHead.Violation) {
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        guard let size = HTTPBytes.number(digits, radix: 16), HTTPBytes.isFieldValue(line) else {
            throw RequestHead.Violation(status: 400, reason: "a chunk does not begin with its size")
        }
        guard size <= limits.body - min(position - bodyStart, limits.body) else {
            throw RequestHead.Violation(status: 413, reason: "the body is larger than \(limits.body) bytes")
        }
        phase = size == 0 ? .trailers(start: position) : .chunk(end: position + size)
    }

    /// The next line without its CRLF; `nil` when its end is not there yet.
    private mutating func nextLine(limit: Int, status: Int) throws(RequestHead.Violation) -> ArraySlice<UInt8>? {
        let end = buffer[max(scanned, position)...].firstIndex(of: UInt8(ascii: "\n"))
        scanned = end.map { $0 + 1 } ?? buffer.count
        guard scanned - position <= limit else { throw RequestHead.Violation(status: status, reason: "a line or section is too long") }
        guard let end else { return nil }
        guard end > position, buffer[end - 1] == UInt8(ascii: "\r") else {
            throw RequestHead.Violation(status: 400, reason: "a line ends without a carriage return")
        }
        let line = buffer[position..<(end - 1)]
        position = scanned
        return line
    }

    private mutating func takeRequest() -> ReceivedRequest {
        let request = ReceivedRequest(head: head, body: body, rawBytes: Data(buffer[..<position]), connection: connection)
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
