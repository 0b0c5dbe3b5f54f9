import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The TLS connections whose end marks the end of a body.
///
/// This type records whether the server ended a connection with `close_notify` (RFC 8446, section
/// 6.1). Without that alert, an attacker on the path may have truncated the body. libcurl ignores
/// the difference, so this type queries OpenSSL. Other TLS libraries are not supported.
final class TLSClosing {
    typealias Connection = UnsafeMutableRawPointer

    private let openssl: ccurl_openssl?
    /// The watched connections, and for each of them, whether the alert was received.
    private var connections: [Connection: Bool] = [:]

    static var error: URLError {
        CurlError.error(
            .networkConnectionLost, "the TLS connection ended without close_notify, so the body may be incomplete")
    }

    init() {
        openssl = withUnsafeTemporaryAllocation(of: ccurl_openssl.self, capacity: 1) { place in
            place.baseAddress.flatMap { ccurl_load_openssl($0) == 1 ? $0.pointee : nil }
        }
    }

    /// Watches the connection of a transfer that is receiving a response.
    ///
    /// - Returns: The connection to pass to ``isClosed(_:)`` and ``forget(_:)``; `nil` if libcurl
    ///   does not use OpenSSL.
    func watch(_ easy: UnsafeMutableRawPointer) -> Connection? {
        guard let openssl, let connection = ccurl_openssl_connection(easy) else { return nil }
        let receivedShutdown: Int32 = 2  // SSL_RECEIVED_SHUTDOWN
        let setCallbackContext: Int32 = 16  // SSL_CTRL_SET_MSG_CALLBACK_ARG
        connections[connection] = openssl.SSL_get_shutdown(connection) & receivedShutdown != 0
        // The engine retains this object and outlives its connections, so the pointer stays valid.
        _ = openssl.SSL_ctrl(connection, setCallbackContext, 0, Unmanaged.passUnretained(self).toOpaque())
        openssl.SSL_set_msg_callback(connection) { isSent, _, type, bytes, count, connection, context in
            let alert: Int32 = 21
            guard isSent == 0, type == alert, count == 2, let bytes, let connection, let context else { return }
            let isCloseNotify = UnsafeRawBufferPointer(start: bytes, count: count)[1] == 0
            if isCloseNotify { Unmanaged<TLSClosing>.fromOpaque(context).takeUnretainedValue().close(connection) }
        }
        return connection
    }

    private func close(_ connection: Connection) {
        if connections[connection] != nil { connections[connection] = true }
    }

    func isClosed(_ connection: Connection) -> Bool { connections[connection] == true }

    func forget(_ connection: Connection) { connections[connection] = nil }
}
