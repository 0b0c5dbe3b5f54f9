import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The error object of a `URLError`, which describes the failure of a request.
///
/// A `URLError` is described by its error object, so a string interpolation of the error contains
/// the code, the cause, a remedy, and the method and URL of the request. The domain, the code and
/// the user information, by which errors are compared, remain those of the error. Only the default
/// message of Foundation on Linux, which names no cause, is replaced.
///
/// @unchecked: the class is final, all its properties are immutable, and so are those of `NSError`.
final class TransportFailure: NSError, @unchecked Sendable {
    private let cause: URLError
    private let method: Request.Method
    private let location: Request.Location

    init(_ cause: URLError, of request: Request) {
        self.cause = cause
        method = request.method
        location = request.location
        var information = cause.userInfo
        #if canImport(FoundationNetworking)
        if information[NSLocalizedDescriptionKey] != nil, cause.sessionMessage == nil {
            information[NSLocalizedDescriptionKey] = "\(cause.code.kind.problem); \(cause.code.kind.remedy)"
        }
        #endif
        super.init(domain: NSURLErrorDomain, code: cause.errorCode, userInfo: information)
    }

    /// Returns `nil`: errors are not decoded from archives.
    required init?(coder: NSCoder) { nil }

    override var description: String {
        let (kind, request) = (cause.code.kind, Request(method, location: location))
        // A message of the session that contains a semicolon already has a remedy.
        var text = (cause.sessionMessage ?? kind.problem).withoutSecretsOfURLs.escapingControls
        if !text.contains("; ") { text += "; \(cause.pinnedKeyMismatch == nil ? kind.remedy : Self.pinRemedy)" }
        let place = request.url == nil ? "" : " (\(request))"
        return "\(kind.name) (\(cause.errorCode)): \(text)".cut(to: Self.maximumLength) + place
    }

    override var debugDescription: String { description }

    private static let pinRemedy = "if the server has another key, add its pin"
    /// The maximum size of a description without the request, in bytes.
    private static let maximumLength = 1_000
}

extension Error {
    /// Returns a `URLError` with a description of the failed request. Returns any other error
    /// unchanged.
    func describing(_ request: Request?) -> any Error {
        guard let error = self as? URLError, !error.describesRequest, let request else { return self }
        return URLError(_nsError: TransportFailure(error, of: request))
    }
}

extension URLError {
    /// Whether the description contains the failed request.
    var describesRequest: Bool { _nsError is TransportFailure }

    /// The message of the session; `nil` if it is the default of Foundation.
    fileprivate var sessionMessage: String? {
        guard let message = userInfo[NSLocalizedDescriptionKey] as? String, !message.isEmpty,
            !message.hasPrefix("The operation could")
        else { return nil }
        return message.hasSuffix(".") ? String(message.dropLast()) : message
    }
}

extension URLError.Code {
    /// The name of a code, a description of the problem, and a remedy.
    fileprivate typealias Kind = (name: String, problem: String, remedy: String)

    fileprivate var kind: Kind {
        switch self {
        case .cancelled:
            (
                "cancelled", "the request was cancelled",
                "check what cancelled, closed or released the task, its Swift task, its service or its session"
            )
        case .timedOut:
            ("timedOut", "the request timed out", "send the request again if that is safe, or increase 'timeout'")
        case .notConnectedToInternet:
            ("notConnectedToInternet", "the device is offline", "send the request again when the device is online")
        case .networkConnectionLost:
            (
                "networkConnectionLost", "the connection ended before the response was complete",
                "send the request again if that is safe"
            )
        case .cannotConnectToHost:
            (
                "cannotConnectToHost", "the server cannot be reached",
                "check that the server is running and that the host and the port are correct"
            )
        case .cannotFindHost: ("cannotFindHost", "the host name cannot be resolved", Self.hostRemedy)
        case .dnsLookupFailed: ("dnsLookupFailed", "the host name cannot be resolved", Self.hostRemedy)
        case .badURL: ("badURL", "the URL is not valid", "check the base URL and the path")
        case .unsupportedURL: ("unsupportedURL", "the session does not support the URL", "use an http or https URL")
        case .badServerResponse:
            (
                "badServerResponse", "the response is not valid",
                "check that the server works and that the scheme and the port are those of an HTTP server"
            )
        case .secureConnectionFailed:
            (
                "secureConnectionFailed", "the TLS handshake failed",
                "check that the port accepts https and that the server supports TLS 1.2 or newer"
            )
        case .serverCertificateUntrusted: ("serverCertificateUntrusted", Self.distrust, Self.trustRemedy)
        case .serverCertificateHasBadDate: ("serverCertificateHasBadDate", Self.distrust, Self.trustRemedy)
        case .serverCertificateHasUnknownRoot: ("serverCertificateHasUnknownRoot", Self.distrust, Self.trustRemedy)
        case .serverCertificateNotYetValid: ("serverCertificateNotYetValid", Self.distrust, Self.trustRemedy)
        case .clientCertificateRejected:
            ("clientCertificateRejected", "the client certificate cannot be used", "check the certificate and its key")
        case .clientCertificateRequired:
            (
                "clientCertificateRequired", "the server requires a client certificate",
                "configure a client certificate for the session"
            )
        case .userAuthenticationRequired:
            (
                "userAuthenticationRequired", "a user name and a password are required",
                "set the user name and the password of the server or the proxy"
            )
        case .cannotDecodeContentData:
            (
                "cannotDecodeContentData", "the body cannot be decompressed",
                "check that the body is encoded as its Content-Encoding field specifies"
            )
        case .dataLengthExceedsMaximum:
            ("dataLengthExceedsMaximum", "the body is too large", "stream or download the body")
        case .httpTooManyRedirects:
            ("httpTooManyRedirects", "the server redirects too often", "check the redirects for a loop")
        case .requestBodyStreamExhausted:
            ("requestBodyStreamExhausted", "the body of the request cannot be read", "check the source of the body")
        case .resourceUnavailable:
            (
                "resourceUnavailable", "no stored response can be used, and the cache policy does not permit a request",
                "choose another cachePolicy"
            )
        default: ("URLError", "the request failed", "look up the code in the documentation of URLError.Code")
        }
    }

    private static let hostRemedy = "check the host of the URL and the name server"
    private static let distrust = "the certificate of the server is not trusted"
    private static let trustRemedy = "check the host, the certificate's dates and the trusted certificates"
}

extension String {
    /// The string with each URL shortened: the query and the parameters of path segments are
    /// removed, and a URL with user information is replaced by `(URL)`.
    fileprivate var withoutSecretsOfURLs: String {
        guard contains("://") else { return self }
        let words = split(separator: " ", omittingEmptySubsequences: false).map { word -> String in
            guard word.contains("://") else { return String(word) }
            return word.contains("@") ? "(URL)" : String(word).withoutParameters
        }
        return words.joined(separator: " ")
    }
}
