import CCurl
import Foundation
import WebServiceCore

extension CurlHandle {
    /// Returns the metrics collected by libcurl.
    func metrics() -> TransportMetrics {
        let isReused = long(CURLINFO_NUM_CONNECTS) == 0
        let lookup = microseconds(CURLINFO_NAMELOOKUP_TIME_T)
        let connected = microseconds(CURLINFO_CONNECT_TIME_T)
        let secured = microseconds(CURLINFO_APPCONNECT_TIME_T)
        let first = microseconds(CURLINFO_STARTTRANSFER_TIME_T)
        var metrics = TransportMetrics(
            firstByte: first > .zero ? first : nil, total: microseconds(CURLINFO_TOTAL_TIME_T),
            bytesSent: Int64(long(CURLINFO_REQUEST_SIZE)) + size(CURLINFO_SIZE_UPLOAD_T),
            bytesReceived: Int64(long(CURLINFO_HEADER_SIZE)) + size(CURLINFO_SIZE_DOWNLOAD_T)
                + Int64(attempt.unread?.count ?? 0),
            isConnectionReused: isReused && attempt.sendCount > 0
        )
        if !isReused {
            metrics.nameLookup = lookup > .zero ? lookup : nil
            metrics.connect = connected > .zero ? max(.zero, connected - lookup) : nil
            metrics.secureConnect = secured > .zero ? max(.zero, secured - connected) : nil
        }
        // libcurl reports the path of a Unix domain socket as its address.
        if attempt.sendCount > 0, engine.configuration.unixSocketPath == nil, let address = string(CURLINFO_PRIMARY_IP),
            !address.isEmpty
        {
            metrics.remoteAddress = address
            metrics.remotePort = long(CURLINFO_PRIMARY_PORT)
        }
        if let security = attempt.security {
            (metrics.tlsVersion, metrics.tlsCipher) = (security.version, security.cipher)
            metrics.certificates = security.certificates
        }
        if engine.configuration.recordsRequestHeaders { metrics.requestHeaders = attempt.sentHead.headers }
        if head.isComplete { metrics.networkProtocol = Self.name(ofVersion: long(CURLINFO_HTTP_VERSION)) }
        return metrics
    }

    /// Whether the response is an HTTP/2 or HTTP/3 response.
    var isMultiplexed: Bool {
        [Int(CURL_HTTP_VERSION_2_0), Int(CURL_HTTP_VERSION_3)].contains(long(CURLINFO_HTTP_VERSION))
    }

    /// Whether the exchange has established a connection, possibly without the TLS handshake.
    var hasConnected: Bool { microseconds(CURLINFO_CONNECT_TIME_T) > .zero }

    /// The status of the proxy's response to CONNECT; 0 if there was no response.
    var tunnelStatus: Int { long(CURLINFO_HTTP_CONNECTCODE) }

    /// The reason why a SOCKS proxy refused the connection.
    var socksError: CURLproxycode { CURLproxycode(rawValue: numericCast(long(CURLINFO_PROXY_ERROR))) }

    /// The pin of the key that the server presented in the last TLS handshake.
    ///
    /// `nil` if libcurl does not report the certificate, for example because no keys are pinned.
    var presentedPin: String? {
        var pointer: UnsafeMutableRawPointer?
        ccurl_get_pointer(easy, CURLINFO_CERTINFO, &pointer)
        guard let chain = pointer?.assumingMemoryBound(to: curl_certinfo.self).pointee, chain.num_of_certs > 0,
            var field = chain.certinfo?.pointee
        else { return nil }
        while true {
            let text = field.pointee.data.map { String(cString: $0) } ?? ""
            if text.hasPrefix("Cert:") { return CertificateKey.pin(ofCertificate: text) }
            guard let next = field.pointee.next else { return nil }
            field = next
        }
    }

    /// Returns the TLS connection to the server, for a request on a new connection.
    func security(_ request: EncodedRequest?) -> Connections.Security? {
        guard request?.url.utf8.starts(with: "https:".utf8) == true else { return nil }
        let names = ccurl_tls_names(easy, engine.tls)
        // The certificates are those of the connection that the handle opened last.
        let isOwn = long(CURLINFO_NUM_CONNECTS) > 0 && engine.configuration.recordsCertificates
        return Connections.Security(
            version: names.version.map { String(cString: $0) }, cipher: names.cipher.map { String(cString: $0) },
            certificates: isOwn ? presentedCertificates : [])
    }

    /// The certificates, in DER, that the server presented in the last TLS handshake.
    private var presentedCertificates: [Data] {
        var pointer: UnsafeMutableRawPointer?
        ccurl_get_pointer(easy, CURLINFO_CERTINFO, &pointer)
        guard let chain = pointer?.assumingMemoryBound(to: curl_certinfo.self).pointee else { return [] }
        return (0..<max(0, Int(chain.num_of_certs))).compactMap { index in
            var field = chain.certinfo?[index]
            while let current = field {
                let text = current.pointee.data.map { String(cString: $0) } ?? ""
                if text.hasPrefix("Cert:") { return PEM.blocks(of: Data(text.dropFirst(5).utf8)).first?.bytes }
                field = current.pointee.next
            }
            return nil
        }
    }

    private static func name(ofVersion version: Int) -> String? {
        switch version {
        case Int(CURL_HTTP_VERSION_1_0): "HTTP/1.0"
        case Int(CURL_HTTP_VERSION_1_1): "HTTP/1.1"
        case Int(CURL_HTTP_VERSION_2_0): "HTTP/2"
        case Int(CURL_HTTP_VERSION_3): "HTTP/3"
        default: nil
        }
    }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        ccurl_get_long(easy, info, &value)
        return value
    }

    private func string(_ info: CURLINFO) -> String? {
        var pointer: UnsafeMutableRawPointer?
        ccurl_get_pointer(easy, info, &pointer)
        return pointer.map { String(cString: $0.assumingMemoryBound(to: CChar.self)) }
    }

    private func size(_ info: CURLINFO) -> Int64 {
        var value: curl_off_t = 0
        ccurl_get_size(easy, info, &value)
        return Int64(value)
    }

    private func microseconds(_ info: CURLINFO) -> Duration { .microseconds(size(info)) }
}
