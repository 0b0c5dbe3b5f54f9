import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// A request that was changed on the page, where its secrets were replaced by placeholders.
struct ChangedRequest: Decodable {
    let method: String
    let url: String
    /// The name and the value of each field.
    let headers: [[String]]
    /// The text of the body; `nil` if the body was not changed.
    let body: String?

    /// Returns the request with the secrets of the original request.
    ///
    /// A URL or body that contains placeholders must be unchanged, because a changed one does not
    /// identify its secrets. Secrets in header fields are sent only to the original origin.
    ///
    /// - Throws: `WebServiceError` with the code `encoding`.
    func request(from sent: RecordedAttempt, _ redaction: Redaction) throws -> Request {
        let isSameURL = url == redaction.url(sent.url)
        let hasPlaceholder = { (text: String) in redaction.containsPlaceholder(text) }
        guard isSameURL || !hasPlaceholder(url) else {
            throw Self.error("the changed URL contains a redacted value; enter the actual value")
        }
        let target = isSameURL ? sent.url : url
        guard let origin = URL(string: target).flatMap(Origin.init) else {
            throw Self.error("the URL must be an absolute http or https URL without user information")
        }
        let isSameOrigin = origin == URL(string: sent.url).flatMap(Origin.init)
        var request = Request(Request.Method(rawValue: method), url: target)
        request.headers = Headers(
            try headers.map { field in
                guard field.count == 2, let name = field.first, let value = field.last else {
                    throw Self.error("a header field must consist of a name and a value")
                }
                guard hasPlaceholder(value) else { return (name, value) }
                let secret = sent.requestHeaders.first {
                    $0.name.equalsIgnoringASCIICase(name) && redaction.value(ofHeader: $0.name, $0.value) == value
                }
                guard isSameOrigin, let secret else {
                    throw Self.error(
                        "the header field '\(name.prefix(100))' contains a redacted value; enter the actual value")
                }
                return (name, secret.value)
            })
        let data = try body.map { Data($0.utf8) } ?? Self.body(of: sent)
        guard !(body.map(hasPlaceholder) ?? false) else {
            throw Self.error("the changed body contains a redacted value; enter the actual value")
        }
        if !data.isEmpty { request.content = .data(data, contentType: request.headers[.contentType]) }
        return request
    }

    /// Returns the complete body of a request that was sent.
    private static func body(of sent: RecordedAttempt) throws -> Data {
        guard let body = sent.body, body.data.count == body.size else {
            throw error("the inspector has not retained the whole body; enter a body")
        }
        return body.data
    }

    private static func error(_ message: String) -> WebServiceError {
        WebServiceError(.encoding, message)
    }
}
