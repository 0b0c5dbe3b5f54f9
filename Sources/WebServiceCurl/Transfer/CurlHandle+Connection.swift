import CCurl
import Foundation
import WebServiceCore

/// The connection that libcurl selects for an exchange.
extension CurlHandle {
    /// Returns whether libcurl may send the request on the connection with these endpoints.
    ///
    /// libcurl calls this method again if it resends the request because a reused connection was
    /// closed.
    func maySend(_ ends: Connections.Ends) -> Bool {
        guard mayUse(ends) else { return false }
        if driver != nil { return true }
        let hasOversizedHead = attempt.sendCount > 0 && exceedsHeadLimit
        leaveConnection()
        // If the connection was closed before the response was read, libcurl sends the request
        // again.
        if attempt.unread != nil { return false }
        var ends = ends
        ends.isQUIC = engine.configuration.httpVersion == .http3 && engine.selectedVersion(self) == 3
        if let connection = attempt.unixConnection ?? engine.connection(ends) {
            let isUnsolicited =
                connection.isIdle
                && (connection !== engine.callersConnection && connection.hasUnsolicitedBytes
                    || engine.hasDecryptedBytes(self))
            if isUnsolicited || connection.isUnusable {
                // A shutdown takes too long on a caller's thread. The loop's thread finds the
                // connection again.
                if engine.callersConnection == nil { connection.shutDown() }
                if connection.isUnusable { forbidReuse() }
                attempt.mustBeginAgain = true
                return false
            }
            if !connection.wasUsed {
                connection.isMultiplexed = connection.isQUIC || head.mayBeHTTP2 && engine.selectedVersion(self) == 2
                connection.security = security(exchange?.request)
                if connection.isMultiplexed, !connection.isQUIC { engine.limitReceiving(connection) }
            }
            attempt.security = connection.security
            connection.enter(self)
            attempt.connection = connection
        }
        attempt.sendCount += 1
        attempt.isBodyOver = false
        if attempt.isHeld { receive() }
        if attempt.sendCount == 1 {
            if engine.callersConnection != nil { holdResponse() }
            return true
        }
        // libcurl counts resends over the lifetime of a handle and fails at the sixth resend.
        mustBeFreed = true
        if hasOversizedHead {
            attempt.failure = CurlError.headTooLarge
            return false
        }
        if attempt.isIdempotent { return true }
        attempt.failure = CurlError.error(
            .networkConnectionLost,
            "the connection was closed, and the server may have received the request; send it again only if it is "
                + "safe to process it twice")
        return false
    }

    /// Returns whether the request must be sent again, because a multiplexed connection failed
    /// before the response.
    ///
    /// The server may have indicated which requests it has not processed (GOAWAY, RFC 9113, section
    /// 6.8, and RFC 9114, section 5.2). libcurl does not report these requests, so only idempotent
    /// requests are sent again.
    func isUnprocessed(_ code: CURLcode) -> Bool {
        guard code == CURLE_HTTP2 || code == CURLE_HTTP3, attempt.sendCount == 1, attempt.isIdempotent,
            attempt.failure == nil, attempt.headLines == 0, !head.isComplete
        else { return false }
        return attempt.upload?.rewind() ?? true
    }

    /// Whether the header of the response exceeds a limit of libcurl's HTTP/2 library, which ends
    /// the connection.
    ///
    /// libcurl reports the same error to all exchanges of the connection. If there are several
    /// exchanges, the error belongs to the one whose header has begun.
    var exceedsHeadLimit: Bool {
        guard CurlError.isOfHeadLimit(String(cString: detail)) else { return false }
        if attempt.connection?.user === self { return true }
        return !head.isComplete && (attempt.headLines > 0 || ccurl_has_status(easy) != 0)
    }

    /// Prevents the reuse of an HTTP/2 connection that has failed with this result, because libcurl
    /// could use the connection again.
    func closeFailedConnection(_ code: CURLcode) {
        guard code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR || code == CURLE_HTTP2,
            let connection = attempt.connection, connection.isMultiplexed, !connection.isQUIC,
            engine.connection(connection.socket) === connection
        else { return }
        connection.fail()
    }

    func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t {
        guard let address, attempt.unread == nil, mayConnect(), mayConnect(to: address) else { return CURL_SOCKET_BAD }
        let socket = engine.openSocket(address.pointee)
        if address.pointee.family == AF_UNIX { attempt.unixConnection = engine.connection(socket) }
        return socket
    }

    /// Returns whether libcurl may look up a name or open a connection.
    ///
    /// On the thread of a caller, libcurl may do neither, and the loop's thread begins the exchange
    /// again.
    func mayConnect() -> Bool {
        if engine.callersConnection == nil { return true }
        attempt.mustBeginAgain = true
        return false
    }

    /// Prevents libcurl from receiving before ``receive()``. The request is sent nevertheless.
    private func holdResponse() {
        attempt.isHeld = curl_easy_pause(easy, CURLPAUSE_ALL) == CURLE_OK
    }

    /// Lets libcurl receive the response when it has arrived.
    func receive() {
        attempt.isHeld = curl_easy_pause(easy, CURLPAUSE_CONT) != CURLE_OK
    }

    func leaveConnection() {
        guard let connection = attempt.connection else { return }
        if isMultiplexed { connection.isMultiplexed = true }
        connection.leave()
        attempt.connection = nil
    }

    /// Prevents the reuse of the connection.
    ///
    /// libcurl closes the connection at the end of the exchange, unless other exchanges use it.
    func forbidReuse() {
        ccurl_set_long(easy, CURLOPT_FORBID_REUSE, 1)
        mustBeFreed = true
    }
}
