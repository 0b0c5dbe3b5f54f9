import Foundation
public import WebServiceCore

extension WebServiceError {
    /// The beginning of the body, at most 200 characters, as readable text for diagnostics.
    ///
    /// Secrets and control characters are replaced. The value is `nil` if the body is not text. No
    /// description of the error contains this string.
    public var bodySnippet: String? {
        let type = response?.header(.contentType)
        return body.flatMap { Redaction.standard.body($0.prefix(800), contentType: type) }
            .map { String($0.prefix(200)).escapingControls }
    }
}
