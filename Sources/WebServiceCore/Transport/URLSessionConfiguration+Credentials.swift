import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionConfiguration {
    /// Returns whether requests for a URL may have credentials of the configuration: cookies,
    /// passwords, or header fields other than those that every origin may receive.
    func addsCredentials(to url: URL) -> Bool {
        httpCookieStorage?.cookies(for: url)?.isEmpty == false
            || urlCredentialStorage?.allCredentials.isEmpty == false
            || httpAdditionalHeaders?.keys.allSatisfy { name in
                (name as? String).map { Request.unboundFields.contains($0.asciiLowercased()) } ?? false
            } == false
    }
}
