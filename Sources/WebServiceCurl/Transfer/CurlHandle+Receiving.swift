import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Receives the header, the trailer and the body of the response from libcurl.
extension CurlHandle {
    func receiveHead(_ line: UnsafeRawBufferPointer) -> Bool {
        succeeds {
            guard !head.isComplete else { return try head.receive(line: line) }
            try check(pieceOfHead: line)
            attempt.isWithinLine = false
            attempt.headLines = line.first == 0x0D || line.first == 0x0A ? 0 : attempt.headLines + 1
            if attempt.headLines == 1 {
                if refusesExpectation(line) { throw URLError(.cancelled) }
                reportSmallBody()
            }
            try head.receive(line: line)
            guard head.isComplete else { return }
            // libcurl sends no further bytes of the body after such a response.
            if let status = head.status, status >= 300 { attempt.upload?.cancel() }
            attempt.remaining = isUploading ? head.bodyLength : nil
            endIfResponseIsComplete()
            if head.endsWithConnection { attempt.closing = engine.tlsClosing.watch(easy) }
            if exchange?.receiver.mayPause == true { engine.releaseCapacity(self) }
        }
    }

    /// Rejects white space between the status line and the first field (RFC 9112, section 2.2).
    ///
    /// A line that begins with such white space continues no field. libcurl 7.83 to 8.0 joins the
    /// line to a field that has already been freed.
    private func check(pieceOfHead piece: UnsafeRawBufferPointer) throws {
        defer { attempt.isWithinLine = true }
        if attempt.headLines == 1, !attempt.isWithinLine, piece.first == 0x20 || piece.first == 0x09 {
            throw CurlError.error(
                .badServerResponse, "the response has white space before its first header field")
        }
    }

    /// Passes bytes of the body to the receiver.
    ///
    /// - Returns: The number of bytes taken, or `CURL_WRITEFUNC_PAUSE` if the receiver pauses.
    ///   libcurl then stops reading from the socket until ``unpause()``.
    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        if receivesHeadAsBody, !head.isComplete {
            guard attempt.headLines == 1 else { return bytes.count }
            return succeeds { try check(pieceOfHead: bytes) } ? bytes.count : 0
        }
        let isTaken = succeeds { attempt.isPaused = try exchange?.receiver.didReceive(bytes) == .pause }
        guard isTaken, !attempt.isPaused else {
            return attempt.isPaused ? Int(CURL_WRITEFUNC_PAUSE) : 0
        }
        attempt.remaining? -= Int64(bytes.count)
        attempt.bodyCount += bytes.count
        endIfResponseIsComplete()
        return bytes.count
    }

    /// Reads the response from a connection that libcurl closes before the end of the request body.
    func readRest(of socket: Int32) {
        guard attempt.upload != nil, attempt.failure == nil, head.awaitsPlainStatus else { return }
        attempt.unread = UnreadResponse(socket)
    }

    /// Delivers the response that libcurl has not read, if there is one.
    ///
    /// - Parameter code: The result of libcurl.
    /// - Returns: Whether the exchange has ended; `false` if the receiver has paused.
    func deliverUnread(_ code: CURLcode) -> Bool {
        guard let unread = attempt.unread else { return true }
        unread.code = code
        attempt.isPaused = false
        return unread.deliver(to: self)
    }

    /// Returns whether a status line rejects the field `Expect`, and the request can be sent
    /// without that field.
    private func refusesExpectation(_ line: UnsafeRawBufferPointer) -> Bool {
        guard attempt.expectation != nil, line.dropFirst(8).starts(with: " 417".utf8),
            attempt.upload?.rewind() ?? true
        else {
            return false
        }
        attempt.expectation = nil
        (attempt.isRefused, attempt.mustBeginAgain) = (true, true)
        return true
    }

    /// Ends the exchange if the response is complete before a streamed request body. Otherwise,
    /// libcurl would continue to send the body.
    private func endIfResponseIsComplete() {
        if attempt.remaining == 0, attempt.upload?.isComplete == false, attempt.unread == nil {
            engine.earlyResponses.append(self)
        }
    }

    /// Calls a closure that receives a part of the response. An error aborts the exchange.
    ///
    /// - Returns: Whether the exchange continues.
    private func succeeds(_ receive: () throws -> Void) -> Bool {
        attempt.progress(at: engine.now)
        do {
            try receive()
            return true
        } catch {
            attempt.failure = error
            if attempt.connection?.isMultiplexed == true { forbidReuse() }
            return false
        }
    }
}
