import Logging
import WebServiceCore
import WebServiceDiagnostics

extension Observer where Self == ExchangeLogger {
    /// Returns an observer that logs each exchange with swift-log, with its values as metadata.
    ///
    /// Secrets are redacted.
    public static func swiftLog(_ logger: Logger, level: LogEntry.Level = .info) -> ExchangeLogger {
        .log(level) { entry in
            var metadata: Logger.Metadata = ["exchange": "\(entry.exchange.id)", "duration": "\(entry.duration)"]
            metadata["method"] = entry.exchange.request.map { "\($0.method)" }
            metadata["path"] = entry.exchange.pathTemplate.map { "\($0)" }
            metadata["status"] = entry.status.map { "\($0)" }
            metadata["attempt"] = entry.attempt.map { "\($0)" }
            metadata["error"] = entry.failure.map { "\($0)" }
            logger.log(
                level: Logger.Level(rawValue: entry.level.rawValue) ?? .info, "\(entry.text)", metadata: metadata)
        }
    }
}
