public import Foundation
public import WebServiceCore

extension SessionTask {
    /// Returns the requests of the exchange as an HTTP archive (HAR 1.2), JSON in UTF-8.
    ///
    /// The archive can be opened with the developer tools of a browser.
    ///
    /// Secret header fields and query values are redacted. The sizes of bodies are included, but
    /// not their bytes. The HTTP version and the phases of a request are included if the session
    /// measures them (`CurlSession`); otherwise the version is empty, and the whole duration is
    /// reported as waiting.
    public func httpArchive(redaction: Redaction = .standard) -> Data {
        let log = log
        let entries = log.entries.compactMap { entry in
            entry.attempt.map { HTTPArchive(redaction).entry($0, log.metrics.origin) }
        }
        return HTTPArchive.start + Data(entries.joined(separator: HTTPArchive.separator)) + HTTPArchive.end()
    }
}

extension TypedTask {
    /// Returns the attempts as an HTTP archive; see `SessionTask.httpArchive(redaction:)`.
    public func httpArchive(redaction: Redaction = .standard) -> Data {
        task.httpArchive(redaction: redaction)
    }
}
