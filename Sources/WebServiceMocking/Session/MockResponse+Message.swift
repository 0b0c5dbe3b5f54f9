package import Foundation
public import WebServiceCore

/// The bytes that a server writes as the response to one request, and the action that follows.
package struct ResponseMessage {
    package enum Ending: Hashable {
        /// The connection is used for the next request.
        case keepAlive
        /// The connection is closed after the client has had time to read the response.
        case close
        /// The connection is closed immediately.
        case disconnect
        /// The connection is reset.
        case reset
        /// The server sends nothing more until the client closes the connection.
        case silence
        /// The sending direction is closed, and the server reads until the client closes the other
        /// direction.
        case halfClose
    }

    /// The producer of a body that is written in parts.
    package enum Producer {
        case writer(@Sendable (MockResponse.BodyWriter) throws -> Void)
        case chunks(MockChunks)
    }

    package var bytes = Data()
    /// The size of the pieces and the pause between them; `nil` to write all bytes at once.
    package var drip: (size: Int, pause: Duration)?
    /// Bytes that are sent after ``bytes``, repeatedly and endlessly.
    package var repetition: Data?
    /// The producer of the body after ``bytes``; `nil` if they contain it.
    package var producer: (isChunked: Bool, body: Producer)?
    /// Bytes that are sent after the body.
    package var end = Data()
    /// The maximum number of bytes after ``bytes``, at which the message ends.
    package var limit = Int.max
    package var ending: Ending

    /// Returns a message with the first `count` bytes and a different ending.
    func prefix(_ count: Int, _ ending: Ending) -> ResponseMessage {
        var message = ResponseMessage(bytes: bytes.prefix(max(count, 0)), ending: ending)
        guard count > bytes.count else { return message }
        (message.producer, message.end, message.limit) = (producer, end, count - bytes.count)
        return message
    }
}

extension MockResponse {
    /// Returns the bytes of the response (RFC 9112, sections 4 to 7) and the action that follows.
    ///
    /// - Parameter request: The request; `nil` if no request could be parsed. The connection is
    ///   then closed.
    /// - Throws: ``failure``, or an error that names the part of the response that cannot be
    ///   written.
    package func message(to request: RequestHead?) throws -> ResponseMessage {
        switch wire {
        case .raw(let bytes): return ResponseMessage(bytes: bytes, ending: surplus == nil ? .close : .keepAlive)
        case .disconnect: return ResponseMessage(ending: .disconnect)
        case .noResponse: return ResponseMessage(ending: .silence)
        case .cut(let count): return try wholeMessage(to: request).prefix(count, .close)
        case .reset(let count): return try wholeMessage(to: request).prefix(count, .reset)
        case .stall(let count): return try wholeMessage(to: request).prefix(count, .silence)
        case .drip(let size, let pause):
            var message = try wholeMessage(to: request)
            message.drip = (max(size, 1), pause)
            return message
        case .throttle(let rate):
            let size = max(rate / 100, 1)
            var message = try wholeMessage(to: request)
            message.drip = (size, .seconds(Double(size) / Double(max(rate, 1))))
            return message
        case .surplus(let bytes):
            var message = try wholeMessage(to: request)
            if message.producer == nil { message.bytes += bytes } else { message.end += bytes }
            return message
        case .halfClose:
            var message = try wholeMessage(to: request)
            message.ending = .halfClose
            return message
        case .fixedLength, .chunked, .untilClose, .endless, .invalidChunk: return try wholeMessage(to: request)
        }
    }

    private func wholeMessage(to request: RequestHead?) throws -> ResponseMessage {
        if let failure { throw failure }
        let hasContent = hasContent(for: request?.method.rawValue ?? "GET")
        let framing = framing(to: request)
        let ownFraming = headers.fields.filter {
            $0.name.equalsIgnoringASCIICase("Content-Length") || $0.name.equalsIgnoringASCIICase("Transfer-Encoding")
        }
        let isDelimited = !hasContent || framing != nil && (ownFraming.isEmpty || ownFraming == [framing])
        let keepsAlive = request?.keepsAlive == true && version == "HTTP/1.1" && !headers.requestsClosing && isDelimited
        var fields = headers.fields
        if ownFraming.isEmpty, let framing { fields.append(framing) }
        if !keepsAlive, !headers.requestsClosing { fields.append(Headers.Field(name: "Connection", value: "close")) }
        let heads = try interim.map { try $0.head($0.headers.fields) } + [head(fields)]
        var message = ResponseMessage(bytes: heads.reduce(Data(), +), ending: keepsAlive ? .keepAlive : .close)
        guard hasContent else { return message }
        let isChunked = framing?.value == "chunked" && ownFraming.isEmpty
        if let body = writer.map(ResponseMessage.Producer.writer) ?? chunks.map(ResponseMessage.Producer.chunks) {
            message.producer = (isChunked, body)
            if isChunked { message.end = try lastChunk() }
            return message
        }
        if wire == .endless {
            let data = data.isEmpty ? Data(repeating: UInt8(ascii: "x"), count: 16 << 10) : data
            message.repetition = isChunked ? data.chunk : data
        } else {
            let isInvalid = wire == .invalidChunk && isChunked
            let end = isInvalid ? Data("ale\r\n".utf8) : try lastChunk()
            message.bytes += isChunked ? data.chunks(size: chunkSize) + end : data
            if isInvalid { message.ending = .close }
        }
        return message
    }

    /// Returns the field that delimits the body.
    ///
    /// `nil` if the status or the end of the connection delimits it (RFC 9112, section 6.3).
    private func framing(to request: RequestHead?) -> Headers.Field? {
        switch (statusCode, wire) {
        case (100..<200, _), (204, _), (304, _): nil
        case (205, _): Headers.Field(name: "Content-Length", value: "0")
        case _ where writer != nil || chunks != nil, (_, .chunked), (_, .endless), (_, .invalidChunk):
            request?.isHTTP10 == true ? nil : Headers.Field(name: "Transfer-Encoding", value: "chunked")
        case (_, .untilClose): nil
        // For HEAD, the length is that of the response to GET.
        default: Headers.Field(name: "Content-Length", value: String(data.count))
        }
    }

    private var chunkSize: Int {
        if case .chunked(let size) = wire { max(size, 1) } else { max(data.count, 1) }
    }

    /// Returns the last chunk with the trailer section (RFC 9112, section 7.1.2).
    ///
    /// - Throws: An error that names a field that cannot be written.
    package func lastChunk() throws -> Data {
        Data(("0\r\n" + (try lines(trailers.fields)) + "\r\n").utf8)
    }

    private func head(_ fields: [Headers.Field]) throws -> Data {
        guard (100...999).contains(statusCode) else {
            throw unwritable("the status code \(statusCode) is not between 100 and 999; pass another status code")
        }
        guard ASCII.isVisible(version.utf8), !version.isEmpty else {
            throw unwritable("the HTTP version is empty or contains a space or a control character; pass HTTP/1.1")
        }
        let reason = Response.reasonPhrases[statusCode] ?? "Status \(statusCode)"
        return Data("\(version) \(statusCode) \(reason)\r\n\(try lines(fields))\r\n".utf8)
    }

    private func lines(_ fields: [Headers.Field]) throws -> String {
        var text = ""
        for field in fields {
            guard ASCII.isToken(field.name.utf8) else {
                throw unwritable(
                    "the header field name \(field.name.debugDescription) is not a token; use letters, digits and '-'")
            }
            guard !field.value.utf8.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 }) else {
                throw unwritable("the value of the header field \(field.name) contains CR, LF or NUL; remove it")
            }
            text += "\(field.name): \(field.value)\r\n"
        }
        return text
    }

    private func unwritable(_ message: String) -> WebServiceError {
        WebServiceError(.mockServer, message)
    }
}

extension Data {
    /// Returns the bytes in chunks of the given size (RFC 9112, section 7.1).
    fileprivate func chunks(size: Int) -> Data {
        var result = Data()
        var rest = self[...]
        while !rest.isEmpty {
            let chunk = rest.prefix(size)
            result += chunk.chunk
            rest = rest.dropFirst(chunk.count)
        }
        return result
    }

    /// The bytes as one chunk.
    package var chunk: Data {
        Data("\(String(count, radix: 16))\r\n".utf8) + self + Data("\r\n".utf8)
    }
}

extension WebServiceError.Code {
    /// A mock server could not be started or has stopped, or a ``MockResponse`` could not be
    /// written.
    public static let mockServer = WebServiceError.Code("mockServer")
}
