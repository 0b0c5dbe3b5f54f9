import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension Error {
    /// The error, with the code of its cause. Foundation on Linux reports many causes as unknown
    /// errors, which only libcurl's message identifies.
    var withCodeOfCause: any Error {
        guard let error = self as? URLError, [.unknown, .badServerResponse].contains(error.code) else { return self }
        let message = error.localizedDescription
        let cause = causes.first { message.hasPrefix($0.message) }
        return cause.map { URLError($0.code, userInfo: error.userInfo) } ?? self
    }
}

/// The beginnings of libcurl's messages.
private let causes: [(message: String, code: URLError.Code)] = [
    ("Failed to connect to ", .cannotConnectToHost),
    ("SSL certificate ", .serverCertificateUntrusted),
    ("SSL: ", .serverCertificateUntrusted),
    ("transfer closed with ", .networkConnectionLost),
    ("Empty reply from server", .networkConnectionLost),
    ("Recv failure: ", .networkConnectionLost),
    ("Send failure: ", .networkConnectionLost),
    ("OpenSSL SSL_read: ", .networkConnectionLost),
    ("OpenSSL SSL_write: ", .networkConnectionLost),
]
