import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The mapping of libcurl's results to Foundation's errors.
///
/// A test compares this mapping with the table in ErrorsOfCurlSession.md.
enum CurlError {
    /// `CURLE_TOO_LARGE`, available since libcurl 8.6.
    private static let tooLarge = CURLcode(rawValue: 100)

    static func code(_ result: CURLcode) -> URLError.Code {
        switch result {
        case CURLE_UNSUPPORTED_PROTOCOL: .unsupportedURL
        case CURLE_URL_MALFORMAT: .badURL
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST: .cannotFindHost
        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_QUIC_CONNECT_ERROR, CURLE_PROXY: .cannotConnectToHost
        case CURLE_OPERATION_TIMEDOUT: .timedOut
        case CURLE_ABORTED_BY_CALLBACK: .cancelled
        case CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP_RETURNED_ERROR, tooLarge: .badServerResponse
        case CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_HTTP3, CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR,
            CURLE_RECV_ERROR,
            CURLE_SEND_FAIL_REWIND:
            .networkConnectionLost
        case CURLE_BAD_CONTENT_ENCODING: .cannotDecodeContentData
        case CURLE_FILESIZE_EXCEEDED: .dataLengthExceedsMaximum
        case CURLE_READ_ERROR: .requestBodyStreamExhausted
        case CURLE_TOO_MANY_REDIRECTS: .httpTooManyRedirects
        case CURLE_REMOTE_ACCESS_DENIED, CURLE_LOGIN_DENIED, CURLE_AUTH_ERROR: .userAuthenticationRequired
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
            CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CIPHER,
            CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_SHUTDOWN_FAILED, CURLE_USE_SSL_FAILED:
            .secureConnectionFailed
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            CURLE_SSL_INVALIDCERTSTATUS:
            .serverCertificateUntrusted
        case CURLE_SSL_CERTPROBLEM: .clientCertificateRejected
        case CURLE_SSL_CLIENTCERT: .clientCertificateRequired
        default: .unknown
        }
    }

    /// Returns the error with the details reported by libcurl, unless they may contain a password.
    static func error(_ result: CURLcode, _ detail: String) -> URLError {
        // libcurl's message contains the URL of an unusable proxy, including the password.
        if detail.hasPrefix("Unsupported proxy") {
            return error(
                code(result),
                "the environment specifies a proxy whose scheme is not supported; change the environment "
                    + "variable or set 'proxy'")
        }
        let isSecret = detail.utf8.contains(UInt8(ascii: "@"))
        return error(code(result), detail.isEmpty || isSecret ? String(cString: curl_easy_strerror(result)) : detail)
    }

    /// Returns the error for an exchange whose response libcurl rejected.
    static func responseError(_ result: CURLcode, _ detail: String) -> any Error {
        switch result {
        // libcurl limits the sizes of a line, a header and a trailer. The result depends on the
        // version of libcurl.
        case CURLE_OUT_OF_MEMORY, tooLarge: headTooLarge
        case CURLE_RECV_ERROR
        where detail.hasPrefix("Too large response headers") || detail.hasPrefix("Out of memory in chunked"):
            headTooLarge
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_FUNCTION_ARGUMENT:
            error(.badServerResponse, detail.isEmpty ? "the response is malformed" : detail)
        case CURLE_RECV_ERROR where detail.contains("chunk"): error(.badServerResponse, detail)
        default: error(result, detail)
        }
    }

    /// Returns the error for a server whose public key is not pinned.
    static func pinError(_ mismatch: URLError.PinnedKeyMismatch) -> URLError {
        URLError(
            .serverCertificateUntrusted,
            userInfo: [NSLocalizedDescriptionKey: mismatch.description, NSUnderlyingErrorKey: mismatch])
    }

    /// Returns whether libcurl reports that it cannot use a private key.
    static func isOfPrivateKey(_ detail: String) -> Bool {
        detail.contains("private key") || detail.contains("PKCS12")
    }

    /// Returns the error for a client certificate or private key that the TLS library cannot use.
    static func identityError(_ identity: TLSRules.Identity?, _ detail: String) -> URLError {
        guard let identity, isOfPrivateKey(detail) else { return error(CURLE_SSL_CERTPROBLEM, detail) }
        // libcurl reports the same error for each cause.
        let key = (identity.key ?? identity.certificate).name
        let text =
            "\(key) cannot be used: its password is wrong, or the key does not belong to the certificate; correct "
            + "keyPassword or the key"
        return error(.clientCertificateRejected, "\(text) (\(detail))")
    }

    /// Returns whether the detail of an error reports that nghttp2 rejected a header, because the
    /// header exceeds the size that libcurl stores or consists of too many frames.
    static func isOfHeadLimit(_ detail: String) -> Bool {
        detail.contains("nghttp2") && (detail.contains("-902") || detail.contains("-905"))
    }

    static var headTooLarge: WebServiceError {
        WebServiceError(.responseTooLarge, "the response header fields exceed a limit of libcurl")
    }

    /// Returns the error for a proxy that responded to CONNECT with this status.
    static func tunnelError(_ status: Int) -> URLError {
        status == 407
            ? error(
                .userAuthenticationRequired,
                "the proxy refused the tunnel with status 407; set the user name and password of the proxy")
            : error(.cannotConnectToHost, "the proxy refused the tunnel with status \(status)")
    }

    /// Returns whether a SOCKS5 proxy refused the connection because of the user name or the
    /// password (RFC 1928, section 3, and RFC 1929, section 2).
    static func isOfCredentials(_ reason: CURLproxycode) -> Bool {
        reason == CURLPX_USER_REJECTED || reason == CURLPX_NO_AUTH
    }

    /// Returns the error for a SOCKS5 proxy that refused the user name or the password.
    static func socksError(_ reason: CURLproxycode) -> URLError {
        error(
            .userAuthenticationRequired,
            reason == CURLPX_USER_REJECTED
                ? "the SOCKS proxy rejected the credentials; set the user name and password of the proxy"
                : "the SOCKS proxy requires authentication; set the user name and password of the proxy")
    }

    static func error(_ code: URLError.Code, _ text: String) -> URLError {
        URLError(code, userInfo: [NSLocalizedDescriptionKey: text])
    }
}
