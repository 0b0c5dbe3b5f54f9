import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The failure of an exchange or of a part of it.
enum RecordedFailure: Sendable {
    case cancelled
    /// An error. The associated values are its description and the descriptions of the underlying
    /// errors, with the direct cause first. They may contain values of the request.
    case error(String, causes: [String])

    /// The maximum number of underlying errors to retain.
    private static let maximumCauses = 8

    init(_ error: any Error) {
        switch error {
        case is CancellationError: self = .cancelled
        case let error as URLError where error.code == .cancelled: self = .cancelled
        default: self = .error(Self.text(of: error), causes: Self.causes(of: error))
        }
    }

    /// Creates the failure of a body or connection that an error has ended. Returns `nil` for the
    /// Close frame of a WebSocket if its code does not indicate an error.
    init?(endedBy error: any Error) {
        guard let closure = error as? WebSocketClosure else {
            self.init(error)
            return
        }
        guard ![.normalClosure, .goingAway].contains(closure.code) else { return nil }
        self = .error("webSocketClosed: the server closed the connection\(closure.explanation)", causes: [])
    }

    /// The description of the error; `nil` if the failure is a cancellation.
    var text: String? { if case .error(let text, _) = self { text } else { nil } }

    /// The descriptions of the underlying errors, with the direct cause first.
    var causes: [String] { if case .error(_, let causes) = self { causes } else { [] } }

    /// Whether the failure is a cancellation.
    var isCancellation: Bool { if case .cancelled = self { true } else { false } }

    private static func causes(of error: any Error) -> [String] {
        var causes: [String] = []
        var cause = underlying(error)
        while let error = cause, causes.count < maximumCauses {
            causes.append(text(of: error))
            cause = underlying(error)
        }
        return causes
    }

    private static func underlying(_ error: any Error) -> (any Error)? {
        if let error = error as? WebServiceError { return error.underlying }
        return (error as NSError).userInfo[NSUnderlyingErrorKey] as? any Error
    }

    private static func text(of error: any Error) -> String {
        switch error {
        case let error as URLError: text(of: error)
        case let error as WebServiceError: "\(error.code): \(error.message)"
        default:
            "\(type(of: error) == NSError.self ? (error as NSError).domain : "\(type(of: error))") "
                + "\((error as NSError).code)"
        }
    }

    /// Returns the name and the number of the code, and the description that the session provides.
    ///
    /// Other details of the error are omitted, because they contain the URL.
    private static func text(of error: URLError) -> String {
        let name = names[error.code].map { " \($0)" } ?? ""
        let description = error.userInfo[NSLocalizedDescriptionKey] as? String
        return "URLError\(name) (\(error.code.rawValue))\(description.map { ": \($0)" } ?? "")"
    }

    private static let names: [URLError.Code: String] = [
        .badServerResponse: "badServerResponse", .badURL: "badURL",
        .cannotConnectToHost: "cannotConnectToHost", .cannotDecodeContentData: "cannotDecodeContentData",
        .cannotFindHost: "cannotFindHost", .clientCertificateRejected: "clientCertificateRejected",
        .clientCertificateRequired: "clientCertificateRequired",
        .dataLengthExceedsMaximum: "dataLengthExceedsMaximum", .dnsLookupFailed: "dnsLookupFailed",
        .httpTooManyRedirects: "httpTooManyRedirects", .networkConnectionLost: "networkConnectionLost",
        .notConnectedToInternet: "notConnectedToInternet",
        .requestBodyStreamExhausted: "requestBodyStreamExhausted", .resourceUnavailable: "resourceUnavailable",
        .secureConnectionFailed: "secureConnectionFailed",
        .serverCertificateUntrusted: "serverCertificateUntrusted", .timedOut: "timedOut",
        .unknown: "unknown", .unsupportedURL: "unsupportedURL",
        .userAuthenticationRequired: "userAuthenticationRequired",
    ]
}
