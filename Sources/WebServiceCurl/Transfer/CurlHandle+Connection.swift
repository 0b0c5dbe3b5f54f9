import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The connection that libcurl selects for an exchange.
extension CurlHandle {
    /// Returns whether libcurl may send the request on the connection with these endpoints.
    ///
    /// libcurl calls this method again if it resends the request because a reused connection was
    /// closed.
    func maySend(_ ends: Connections.Ends) -> Bool {
        if driver != nil { return true }
        leaveConnection()
        // If the connection was closed before the response was read, libcurl sends the request
        // again.
        if attempt.unread != nil { return false }
        var ends = ends
        ends.isQUIC = engine.configuration.httpVersion == .http3 && engine.selectedVersion(self) == 3
        if let connection = attempt.unixConnection ?? engine.connection(ends) {
            if connection.isIdle, connection.hasUnsolicitedBytes || engine.hasDecryptedBytes(self) {
                connection.shutDown()
                attempt.mustBeginAgain = true
                return false
            }
            if !connection.wasUsed {
                connection.isMultiplexed = connection.isQUIC || head.mayBeHTTP2 && engine.selectedVersion(self) == 2
                connection.security = security(exchange?.request)
            }
            attempt.security = connection.security
            connection.enter(self)
            attempt.connection = connection
        }
        attempt.sendCount += 1
        attempt.isBodyOver = false
        if attempt.sendCount == 1 { return true }
        // libcurl counts resends over the lifetime of a handle and fails at the sixth.
        mustBeFreed = true
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
    /// The server may have named the requests that it has not processed (GOAWAY, RFC 9113, section
    /// 6.8, and RFC 9114, section 5.2). libcurl does not report them, so only idempotent requests
    /// are sent again.
    func isUnprocessed(_ code: CURLcode) -> Bool {
        guard code == CURLE_HTTP2 || code == CURLE_HTTP3, attempt.sendCount == 1, attempt.isIdempotent,
            attempt.failure == nil, attempt.headLines == 0, !head.isComplete
        else { return false }
        return attempt.upload?.rewind() ?? true
    }

    func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t {
        guard attempt.unread == nil else { return CURL_SOCKET_BAD }
        let socket = engine.openSocket(address)
        if address?.pointee.family == AF_UNIX { attempt.unixConnection = engine.connection(socket) }
        return socket
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
