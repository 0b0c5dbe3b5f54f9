import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A response during its reception: first the header, line by line, then the body.
///
/// An error thrown by a method ends the exchange.
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

    /// A Boolean value that indicates whether the header is complete.
    var hasHead: Bool { head != nil }

    /// The number of body bytes received, after decompression.
    var bodyCount: Int { body.count }

    /// A Boolean value that indicates whether the body ends with the TLS connection.
    ///
    /// Only TLS can then distinguish a complete body from a truncated one.
    var endsWithConnection: Bool {
        guard let head, let request, request.method != .HEAD, head.status != 204, head.status != 304 else {
            return false
        }
        return framing.isOpenEnded && request.url.utf8.starts(with: "https:".utf8) && !lines.starts(with: "HTTP/2".utf8)
    }

    /// The length of the body in bytes; `nil` if unknown.
    var bodyLength: Int64? { framing.isEncoded ? nil : framing.contentLength }

    mutating func begin(for request: EncodedRequest) {
        self.request = request
    }

    /// Prepares for the next response.
    mutating func clear() {
        request = nil
        lines.removeAll(keepingCapacity: lines.capacity <= 4 << 10)
        lineBytes = 0
        head = nil
        framing = Framing()
        inflater = nil
        body.clear()
    }

    /// Receives one line of the header or of a trailer, including its line break.
    mutating func receive(line: UnsafeRawBufferPointer) throws {
        lineBytes += line.count
        guard lineBytes <= maximumHeaderBytes else {
            throw WebServiceError(
                .responseTooLarge, "the response header fields exceed \(maximumHeaderBytes) bytes")
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
            throw CurlError.error(.badServerResponse, "the response has a malformed status line or status 101")
        }
        framing.finish()
        if let violation = framing.violation {
            throw CurlError.error(.badServerResponse, "the response header is invalid: \(violation)")
        }
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

    /// Receives the next bytes of the body, as encoded on the wire.
    mutating func receive(_ bytes: UnsafeRawBufferPointer) throws {
        guard let inflater else { return try append(bytes) }
        var failure: (any Error)?
        let outcome = inflater.inflate(bytes) { piece in
            do { try append(piece) } catch { failure = error }
            return failure == nil
        }
        if let failure { throw failure }
        if case .broken = outcome {
            throw CurlError.error(.cannotDecodeContentData, "the body is not valid gzip data")
        }
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) throws {
        guard bytes.count <= maximum - body.count else { throw WebServiceError.tooLarge(maximum, request?.source, nil) }
        guard body.append(bytes) else {
            throw CurlError.error(.dataLengthExceedsMaximum, "no memory is available for the body")
        }
    }

    /// Returns the complete response and empties the body buffer.
    mutating func response() throws -> Response {
        guard let head else { throw CurlError.error(.badServerResponse, "no response was received") }
        if let inflater, inflater.hasBegun, !inflater.isComplete {
            throw CurlError.error(.cannotDecodeContentData, "the gzip body is truncated")
        }
        return Response(data: body.take(), head: head)
    }
}
