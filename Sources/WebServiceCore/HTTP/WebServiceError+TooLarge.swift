#if canImport(FoundationNetworking)
package import FoundationNetworking
#else
package import Foundation
#endif

extension WebServiceError {
    /// Returns the error for a body that is longer than a limit in bytes.
    package static func tooLarge(
        _ maximum: Int, _ request: Request? = nil, _ response: URLResponse? = nil
    ) -> WebServiceError {
        WebServiceError(
            .responseTooLarge, "the body of the response is longer than \(maximum) bytes", request: request,
            response: response)
    }
}
