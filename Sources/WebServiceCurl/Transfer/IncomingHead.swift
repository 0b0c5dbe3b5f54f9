import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The header and trailer sections of a response, received line by line.
///
/// An error thrown by a method ends the exchange.
struct IncomingHead: ~Copyable {
    private let maximumBytes: Int
    private var request: EncodedRequest?
    private var receiver: (any BodyReceiver)?
    /// Whether the response may be an HTTP/2 or HTTP/3 response.
    private(set) var mayBeHTTP2 = false
    private var lines: [UInt8] = []
    private var trailerLines: [UInt8] = []
    private var lineBytes = 0
    private var head: ResponseHead?
    private var framing = Framing()

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    /// Whether the header is complete.
    var isComplete: Bool { head != nil }

    /// Whether the next line is the status line of a response that cannot be HTTP/2 or HTTP/3.
    var awaitsPlainStatus: Bool { head == nil && lines.isEmpty && !mayBeHTTP2 }

    /// Whether the body after a complete header is chunked.
    var isChunked: Bool { head?.status != 204 && framing.isChunked }

    /// The status of a complete header.
    var status: Int? { head?.status }

    /// The number of bytes that follow a complete header; `nil` if it is unknown.
    var bodyLength: Int64? { head?.status == 204 ? 0 : framing.contentLength }

    /// Whether the body ends with the TLS connection.
    ///
    /// Only TLS can then distinguish a complete body from a truncated one.
    var endsWithConnection: Bool {
        guard let head, let request, request.method != .HEAD, head.status != 204, head.status != 304 else {
            return false
        }
        return framing.isOpenEnded && request.url.utf8.starts(with: "https:".utf8) && lines.starts(with: "HTTP/1".utf8)
    }

    /// The names of the content codings received so far.
    var codings: [String] { framing.codings }

    /// The trailer fields received so far.
    var trailers: Headers { trailerLines.isEmpty ? [:] : ResponseHead.headers(of: [0x0A] + trailerLines) }

    /// Prepares for the response to a request.
    ///
    /// - Parameter mayBeHTTP2: Whether the response may be an HTTP/2 or HTTP/3 response.
    mutating func begin(for request: EncodedRequest, _ receiver: any BodyReceiver, mayBeHTTP2: Bool) {
        self.mayBeHTTP2 = mayBeHTTP2
        self.request = request
        self.receiver = receiver
        lines.reserveCapacity(512)
    }

    /// Prepares for the next response.
    mutating func clear() {
        request = nil
        receiver = nil
        lines.removeAll(keepingCapacity: lines.capacity <= 4 << 10)
        trailerLines = []
        lineBytes = 0
        head = nil
        framing = Framing()
    }

    /// Receives one line of the header or of a trailer, including its line break.
    mutating func receive(line: UnsafeRawBufferPointer) throws {
        lineBytes += line.count
        guard lineBytes <= maximumBytes else {
            throw WebServiceError(
                .responseTooLarge,
                "the response header fields exceed \(maximumBytes) bytes; increase maximumHeaderBytes")
        }
        // With libcurl 8.23, a connection that is closed before the last line feed ends the header.
        guard line.last == 0x0A else {
            throw CurlError.error(
                .networkConnectionLost, "the connection was closed before the response head was complete")
        }
        guard head == nil else { return try receive(trailerLine: line) }
        let isFirst = lines.isEmpty
        lines.append(contentsOf: line)
        if try Self.endsSection(line) { return try finish() }
        if isFirst {
            framing.observe(statusLine: line, mayBeHTTP2: mayBeHTTP2)
        } else {
            framing.observe(line)
        }
    }

    private mutating func receive(trailerLine line: UnsafeRawBufferPointer) throws {
        if try Self.endsSection(line) { return }
        if let violation = Framing.violation(ofTrailer: line, isFirst: trailerLines.isEmpty) {
            throw CurlError.error(.badServerResponse, "the response trailer is invalid: \(violation)")
        }
        trailerLines.append(contentsOf: line)
    }

    /// Returns whether a line is empty.
    ///
    /// - Throws: `URLError.badServerResponse` if a CR begins a longer line. libcurl ends the header
    ///   before such a line.
    private static func endsSection(_ line: UnsafeRawBufferPointer) throws -> Bool {
        guard line.first == 0x0D else { return line.first == 0x0A }
        guard line.count == 2 else {
            throw CurlError.error(.badServerResponse, "the response has a line that begins with a CR")
        }
        return true
    }

    private mutating func finish() throws {
        guard let request, let received = ResponseHead(bytes: lines, url: request.url), received.status != 101 else {
            throw CurlError.error(.badServerResponse, "the response has a malformed status line or status 101")
        }
        framing.finish()
        if let violation = framing.violation {
            throw CurlError.error(.badServerResponse, "the response header is invalid: \(violation)")
        }
        if received.status < 200 {
            lines.removeAll(keepingCapacity: true)
            framing = Framing()
            try receiver?.didReceive(interim: received)
            return
        }
        head = received
        let decoder = ContentCodings.system.decoder(of: framing.codings)
        let hasKnownLength = framing.codings.isEmpty || decoder != nil
        try receiver?.didReceive(received, length: hasKnownLength ? framing.contentLength : nil, decoder: decoder)
    }
}
