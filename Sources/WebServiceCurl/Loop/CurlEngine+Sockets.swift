import CCurl
import Foundation
import WebServiceCore

/// The sockets of libcurl and their events.
extension CurlEngine {
    func act(_ socket: Int32, _ events: Poller.Events) {
        var mask: CInt = 0
        if events.contains(.readable) { mask |= CInt(CURL_CSELECT_IN) }
        if events.contains(.writable) { mask |= CInt(CURL_CSELECT_OUT) }
        if events.contains(.failed) { mask |= CInt(CURL_CSELECT_ERR) }
        if events.contains(.readable) { connections[socket]?.receive(at: now) }
        guard let multi = channels.multi == nil ? multi : actOnChannel(socket, events) else { return }
        callLibrary(multi, socket, mask)
    }

    /// Lets libcurl act on the events of a socket and on libcurl's timers, within ``receiveLimit``.
    func callLibrary(_ multi: UnsafeMutableRawPointer, _ socket: curl_socket_t, _ mask: CInt) {
        receiveLimit?.begin(at: systemNow)
        var count: CInt = 0
        curl_multi_socket_action(multi, socket, mask, &count)
        if multi == self.multi { runningCount = count }
        guard let replaced = receiveLimit?.didReturn() else { return }
        for (socket, replaced) in replaced { poller.replace(socket) { ReceiveLimit.restore(socket, replaced) } }
    }

    /// Applies ``receiveLimit`` to an HTTP/2 connection.
    func limitReceiving(_ connection: Connections.Connection) {
        guard ccurl_has_first_http2_filter() != 0 else { return }
        if receiveLimit == nil { receiveLimit = ReceiveLimit() }
        receiveLimit?.add(connection.socket)
    }

    /// Closes a connection without an exchange if it has received bytes or was closed by the peer.
    ///
    /// The event alone is not sufficient: libcurl may have read the end of a response while it
    /// handled an earlier event of the same wait.
    func closeUnsolicited(_ socket: Int32) {
        if let connection = connections[socket], connection.isIdle, connection.hasUnsolicitedBytes {
            connection.shutDown()
        }
    }

    /// Watches a socket for the events that libcurl requests.
    ///
    /// The easy handle that libcurl passes cannot be used: it can be any handle of the connection
    /// and, since libcurl 8.9, also an internal one.
    func watch(_ socket: curl_socket_t, _ what: CInt) -> CInt {
        if uploadCount > 0, what != CInt(CURL_POLL_IN), what != CInt(CURL_POLL_INOUT),
            let handle = connections[socket]?.user, handle.isUploading
        {
            uploadsToCheck.append(handle)
        }
        if let connection = callersConnection, connection.socket == socket {
            callersEvents = what
            return 0
        }
        switch what {
        case CInt(CURL_POLL_IN): poller.watch(socket, for: .readable)
        case CInt(CURL_POLL_OUT): poller.watch(socket, for: .writable)
        case CInt(CURL_POLL_INOUT): poller.watch(socket, for: [.readable, .writable])
        default: poller.unwatch(socket)
        }
        return 0
    }

    func openSocket(_ address: curl_sockaddr) -> curl_socket_t {
        #if os(Linux)
        let descriptor = socket(
            address.family, address.socktype | CInt(SOCK_CLOEXEC.rawValue), address.protocol)
        #else
        let descriptor = socket(address.family, address.socktype, address.protocol)
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        #endif
        guard descriptor >= 0 else { return CURL_SOCKET_BAD }
        connections.opened(descriptor, isQUIC: address.protocol == CInt(IPPROTO_UDP))
        poller.opened(descriptor)
        return descriptor
    }

    func closeSocket(_ socket: curl_socket_t) -> CInt {
        connections[socket]?.user?.readRest(of: socket)
        connections.closed(socket)
        poller.closed(socket)
        receiveLimit?.remove(socket)
        return close(socket)
    }

    /// Returns the object of an easy handle; `nil` for an internal handle of libcurl.
    func handle(_ easy: UnsafeMutableRawPointer) -> CurlHandle? {
        var context: UnsafeMutableRawPointer?
        ccurl_get_pointer(easy, CURLINFO_PRIVATE, &context)
        return CurlHandle.from(context)
    }

    /// Returns the connection of a socket; `nil` if it is not open.
    func connection(_ socket: Int32) -> Connections.Connection? { connections[socket] }

    /// Returns the connection with these ends; `nil` if it is not known.
    func connection(_ ends: Connections.Ends) -> Connections.Connection? {
        connections.connection(ends)
    }

    /// Whether ``hasDecryptedBytes(_:)`` can detect decrypted bytes.
    var canDetectDecryptedBytes: Bool { tls.SSL_has_pending != nil || tls.gnutls_record_check_pending != nil }

    /// Returns the HTTP version, 2 or 3, on the connection of an exchange that may use HTTP/2; 0 if
    /// the version is older or the TLS library does not report it.
    func selectedVersion(_ handle: CurlHandle) -> CInt { ccurl_tls_selected_version(handle.easy, tls) }

    /// Returns whether the TLS library holds decrypted bytes of the connection of an exchange.
    func hasDecryptedBytes(_ handle: CurlHandle) -> Bool {
        ccurl_tls_has_pending(handle.easy, tls) != 0
    }
}
