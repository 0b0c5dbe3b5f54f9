import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionConfiguration {
    /// Returns whether requests for a URL may have credentials of the configuration: cookies,
    /// passwords, or header fields, whatever their name.
    func addsCredentials(to url: URL) -> Bool {
        httpCookieStorage?.cookies(for: url)?.isEmpty == false
            || urlCredentialStorage?.allCredentials.isEmpty == false
            || httpAdditionalHeaders?.isEmpty == false
    }
}
