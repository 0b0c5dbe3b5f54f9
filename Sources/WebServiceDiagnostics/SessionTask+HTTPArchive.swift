public import Foundation
public import WebServiceCore

extension SessionTask {
    /// Returns the requests of the exchange as an HTTP archive (HAR 1.2), which is JSON in UTF-8.
    ///
    /// The archive can be opened with the developer tools of a browser.
    ///
    /// Secrets in header fields and query values are redacted. The sizes of bodies are included,
    /// but not their bytes. If the session measures the phases of a request, as a `CurlSession`
    /// does, they are included together with the HTTP version. Otherwise, the version is empty, and
    /// the whole duration is reported as waiting.
    public func httpArchive(redaction: Redaction = .standard) -> Data {
        let log = log
        let entries = log.entries.compactMap { entry in
            entry.attempt.map { HTTPArchive(redaction).entry($0, log.metrics.origin) }
        }
        return HTTPArchive.start + Data(entries.joined(separator: HTTPArchive.separator)) + HTTPArchive.end()
    }
}

extension TypedTask {
    /// Returns the requests of the task as an HTTP archive; see
    /// `SessionTask.httpArchive(redaction:)`.
    public func httpArchive(redaction: Redaction = .standard) -> Data {
        task.httpArchive(redaction: redaction)
    }
}
