import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension Error {
    /// Returns the error with the code of its cause. Foundation on Linux reports many causes as
    /// unknown errors, which can be identified only by libcurl's message.
    ///
    /// - Parameter response: The response, whose content coding is added to the error of a body
    ///   that cannot be decoded.
    func withCodeOfCause(_ response: URLResponse?) -> any Error {
        guard let error = self as? URLError, [.unknown, .badServerResponse].contains(error.code) else { return self }
        let message = error.localizedDescription
        guard let cause = causes.first(where: { message.hasPrefix($0.message) }) else { return self }
        var details = error.userInfo
        if cause.code == .cannotDecodeContentData,
            let coding = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding")
        {
            details[NSLocalizedDescriptionKey] =
                "the body has the content coding '\(coding.shortenedForDisplay)': \(message)"
        }
        return URLError(cause.code, userInfo: details)
    }
}

/// The beginnings of libcurl's messages.
private let causes: [(message: String, code: URLError.Code)] = [
    ("Failed to connect to ", .cannotConnectToHost),
    ("SSL certificate ", .serverCertificateUntrusted),
    ("SSL: ", .serverCertificateUntrusted),
    ("Unrecognized content encoding type", .cannotDecodeContentData),
    ("Reject response due to ", .cannotDecodeContentData),
    ("Error while processing content unencoding: ", .cannotDecodeContentData),
    ("transfer closed with ", .networkConnectionLost),
    ("Empty reply from server", .networkConnectionLost),
    ("Recv failure: ", .networkConnectionLost),
    ("Send failure: ", .networkConnectionLost),
    ("OpenSSL SSL_read: ", .networkConnectionLost),
    ("OpenSSL SSL_write: ", .networkConnectionLost),
]
