import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An answer while it arrives: its head line by line, then its body. What it throws ends the exchange.
struct IncomingAnswer: ~Copyable {
    private let maximumHeaderBytes: Int
    private let zlib: ccurl_zlib?
    private var request: EncodedRequest?
    private var lines: [UInt8] = []
    private var lineBytes = 0
    private var head: ResponseHead?
    private var framing = Framing()
    private var inflater: Inflater?
    private var body = BodyBuffer()

    init(maximumHeaderBytes: Int, zlib: ccurl_zlib?) {
        self.maximumHeaderBytes = maximumHeaderBytes
        self.zlib = zlib
    }

    /// Whether the head is there.
    var hasHead: Bool { head != nil }

    /// Bytes of the body that have arrived, after decompression.
    var bodyCount: Int { body.count }

    /// Whether the body ends where the connection ends, so that nothing but TLS can tell a whole body from one that was cut.
    var endsWithConnection: Bool {
        guard let head, let request, request.method != .HEAD, head.status != 204, head.status != 304 else { return false }
        return framing.isOpenEnded && request.url.utf8.starts(with: "https:".utf8) && !lines.starts(with: "HTTP/2".utf8)
    }

    /// How long the body will be; `nil` where it is not known.
    var bodyLength: Int64? { framing.isEncoded ? nil : framing.contentLength }

    mutating func begin(for request: EncodedRequest) {
        self.request = request
    }

    /// Makes ready for the next answer.
    mutating func clear() {
        request = nil
        lines.removeAll(keepingCapacity: lines.capacity <= 4 << 10)
        lineBytes = 0
        head = nil
        framing = Framing()
        inflater = nil
        body.clear()
    }

    /// One line of a head, with the bytes that end it; or of the trailer behind a chunked body.
    mutating func receive(line: UnsafeRawBufferPointer) throws {
        lineBytes += line.count
        guard lineBytes <= maximumHeaderBytes else {
            throw WebServiceError(.responseTooLarge, "the header fields of the response are longer than \(maximumHeaderBytes) bytes")
        }
        guard head == nil else { return }
        let isFirst = lines.isEmpty
        lines.append(contentsOf: line)
        if line.first == 0x0D || line.first == 0x0A { return try finishHead() }
        if isFirst {
            framing.observe(statusLine: line, isSecure: request?.url.utf8.starts(with: "https:".utf8) == true)
        } else {
            framing.observe(line)
        }
    }

    private mutating func finishHead() throws {
        guard let request, let received = ResponseHead(bytes: lines, url: request.url), received.status != 101 else {
            throw CurlError.error(.badServerResponse, "the answer's first line is not that of an HTTP response")
        }
        framing.finish()
        if let violation = framing.violation { throw CurlError.error(.badServerResponse, "the answer cannot be believed: \(violation)") }
        if received.status < 200 {
            lines.removeAll(keepingCapacity: true)
            framing = Framing()
            return
        }
        head = received
        if framing.isGzip { inflater = zlib.flatMap(Inflater.init) }
        if request.method != .HEAD, received.status != 304, let length = bodyLength {
            guard length <= maximum else { throw WebServiceError.tooLarge(maximum, request.source, nil) }
            body.reserve(length)
        }
    }

    private var maximum: Int { max(0, request?.maximumResponseBytes ?? .max) }

    /// The next bytes of the body, as they are on the wire.
    mutating func receive(_ bytes: UnsafeRawBufferPointer) throws {
        guard let inflater else { return try append(bytes) }
        var failure: (any Error)?
        let outcome = inflater.inflate(bytes) { piece in
            do { try append(piece) } catch { failure = error }
            return failure == nil
        }
        if let failure { throw failure }
        if case .broken = outcome { throw CurlError.error(.cannotDecodeContentData, "the body is not the gzip that it claims to be") }
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) throws {
        guard bytes.count <= maximum - body.count else { throw WebServiceError.tooLarge(maximum, request?.source, nil) }
        guard body.append(bytes) else { throw CurlError.error(.dataLengthExceedsMaximum, "there is no memory for the body") }
    }

    /// The whole answer; its body is given away.
    mutating func response() throws -> Response {
        guard let head else { throw CurlError.error(.badServerResponse, "there was no answer") }
        if let inflater, inflater.hasBegun, !inflater.isComplete {
            throw CurlError.error(.cannotDecodeContentData, "the body in gzip is cut short")
        }
        return Response(data: body.take(), head: head)
    }
}
