import Foundation
public import WebServiceCore

extension WebServiceError {
    /// The beginning of the body as readable text, at most 200 characters, for diagnostics.
    ///
    /// Secrets and control characters are replaced. `nil` if the body is not text. No description
    /// contains this string.
    public var bodySnippet: String? {
        let type = response?.header(.contentType)
        return body.flatMap { Redaction.standard.body($0.prefix(800), contentType: type) }
            .map { String($0.prefix(200)).escapingControls }
    }
}
