import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An observer that logs exchanges as text without secrets.
///
/// ```swift
/// service.observers = [.log { print($0) }]
/// ```
/// ```
/// #7 GET https://brewhapi.example.com/brewers: 200 in 12.4 ms, 345 bytes
/// #8 POST https://brewhapi.example.com/orders: failed in 3.1 ms, URLError -1004
/// ```
/// The number is the identifier of the exchange (`ObservedExchange.id`). If a request belongs to a
/// typed request or a download, its number follows that of its parent: `#9/#10`. At the level
/// ``LogEntry/Level/debug``, most events are logged in one line, with the time since the start of
/// the exchange. The level ``LogEntry/Level/trace`` adds the header fields, the bodies and the
/// messages of a WebSocket.
///
/// The output is called once for each entry, on any thread. Secrets are redacted. Control
/// characters are escaped, so no request or response can forge a log line or send control sequences
/// to the terminal. Requests and responses are not changed.
public struct ExchangeLogger: Observer {
    private let level: LogEntry.Level
    private let redaction: Redaction
    private let bodyLimit: Int
    private let output: @Sendable (LogEntry) -> Void

    /// Creates a logger.
    ///
    /// - Parameters:
    ///   - level: The least important level to log. Defaults to ``LogEntry/Level/info``, which logs
    ///     the results of exchanges, one line each, and failures.
    ///   - redaction: The rules for secrets. Defaults to ``Redaction/standard``.
    ///   - bodyLimit: The maximum number of bytes to log of a body or message. If 0, none are
    ///     logged. Defaults to 4096.
    ///   - output: A closure that receives each entry.
    public init(
        level: LogEntry.Level = .info, redaction: Redaction = .standard, bodyLimit: Int = 4096,
        output: @escaping @Sendable (LogEntry) -> Void
    ) {
        self.level = level
        self.redaction = redaction
        self.bodyLimit = bodyLimit
        self.output = output
    }

    /// Logs the event if its level is important enough.
    public func observe(_ event: ExchangeEvent) {
        let exchange = event.exchange
        switch event.kind {
        case .created:
            // The first attempt of any other exchange logs the same information.
            if exchange.isComposite { write(event, .debug) { ["\(name(exchange))"] } }
        case .attemptStarted(_, let request):
            write(event, .debug) {
                var lines = ["--> \(request.method) \(redaction.url(request.url))"]
                if level == .trace {
                    var headers = request.headers
                    if let contentType = request.contentType { headers[.contentType] = contentType }
                    lines += block(headers, request.body, count: request.bodyCount)
                }
                return lines
            }
        case .interimHeadReceived(let head), .headReceived(let head):
            write(event, .trace) { ["<-- head \(head.status)"] }
        case .bodyReceived:
            break
        case .message(let message, let isReceived):
            write(event, .trace) {
                let message = RecordedMessages.Message(
                    message, isReceived: isReceived, at: event.date, limit: bodyLimit)
                let kind = message.isText ? "text" : "binary"
                return ["\(isReceived ? "<--" : "-->") \(kind) message, \(message.size) bytes"]
                    + [text(message.content, message.contentType, count: message.size)].compactMap(\.self)
            }
        case .attemptEnded(_, .success(let response), _):
            write(event, .debug) {
                var lines = ["<-- \(response.status)\(address(response.url)), at \(time(event))"]
                if level == .trace { lines += block(response.headers, response.data, count: response.data.count) }
                return lines
            }
        case .attemptEnded(_, .failure(let error), _):
            write(event, isCancellation(error) ? .debug : .warning) {
                ["<-- failed, at \(time(event)): \(describe(error))"]
            }
        case .recorded(let entry):
            write(event, entry.kind == .failure ? .error : .debug) {
                let detail = entry.detail.isEmpty ? "" : ": \(redaction.text(entry.detail))"
                return ["\(entry.kind)\(entry.related.map { " #\($0)" } ?? "")\(detail), at \(time(event))"]
            }
        case .ended(let summary):
            end(event, summary)
        }
    }

    private func end(_ event: ExchangeEvent, _ summary: ExchangeSummary) {
        switch summary.result {
        case .success(let response):
            // The exchanges of a typed request or a download are logged separately.
            let level: LogEntry.Level =
                event.exchange.isComposite ? .debug : response.status >= 400 ? .warning : .info
            write(event, level) {
                let size = summary.isStreamed ? "streamed" : "\(response.data.count) bytes"
                let status = response.status == 0 ? "\(response.source)" : "\(response.status)"
                let attempts = summary.attempts > 1 ? ", \(summary.attempts) attempts" : ""
                let source =
                    response.source == .network || response.status == 0 ? "" : ", source: \(response.source)"
                return ["\(name(event.exchange)): \(status) in \(time(event)), \(size)\(attempts)\(source)"]
            }
        case .failure(let error):
            let isLogged = event.exchange.isComposite && summary.attempts > 0
            write(event, isLogged ? .debug : isCancellation(error) ? .info : .error) {
                let attempts = summary.attempts > 1 ? ", \(summary.attempts) attempts" : ""
                return ["\(name(event.exchange)): failed in \(time(event))\(attempts), \(describe(error))"]
            }
        }
    }

    /// Passes the lines to the output if the level is important enough. Otherwise, the lines are
    /// not created.
    private func write(_ event: ExchangeEvent, _ level: LogEntry.Level, _ lines: () -> [String]) {
        guard level >= self.level else { return }
        let parent = event.exchange.parent.map { "#\($0)/" } ?? ""
        let text = lines().map(\.escapingControls).joined(separator: "\n    ")
        let values = event.kind.values
        output(
            LogEntry(
                level: level, exchange: event.exchange, status: values.status, duration: event.time,
                attempt: values.attempt, failure: values.failure, text: "\(parent)#\(event.exchange.id) \(text)"))
    }

    // MARK: Text

    private func block(_ headers: Headers, _ body: Data?, count: Int) -> [String] {
        let lines = headers.map { "\($0.name): \(redaction.value(ofHeader: $0.name, $0.value))" }
        guard count > 0, bodyLimit > 0 else { return lines }
        let shown = body.flatMap { text($0, headers[.contentType], headers["Content-Encoding"], count: count) }
        return lines + [shown ?? "(\(count) bytes)"]
    }

    /// Returns the beginning of a body or message, or `nil` if it is not logged.
    private func text(_ body: Data, _ type: String?, _ encoding: String? = nil, count: Int) -> String? {
        guard count > 0, bodyLimit > 0 else { return nil }
        let end = count > bodyLimit ? "… (\(count) bytes in total)" : ""
        return redaction.body(body.prefix(bodyLimit), contentType: type, contentEncoding: encoding).map { $0 + end }
    }

    /// Returns the name of an exchange, redacted because its path can contain a token.
    private func name(_ exchange: ObservedExchange) -> String { redaction.text(exchange.name) }

    private func address(_ url: URL?) -> String {
        url.map { " \(redaction.url($0.absoluteString))" } ?? ""
    }

    private func time(_ event: ExchangeEvent) -> String { Timeline.milliseconds(event.time) }

    private func isCancellation(_ error: any Error) -> Bool { (error as? URLError)?.code == .cancelled }

    /// Returns a description of an error without values that may be secret: the code and the
    /// message of a `WebServiceError`, the name of an enum case without a payload, or otherwise the
    /// type and the code.
    private func describe(_ error: any Error) -> String {
        if let error = error as? WebServiceError { return "\(error.code): \(redaction.text(error.message))" }
        let mirror = Mirror(reflecting: error)
        if mirror.displayStyle == .enum, mirror.children.isEmpty { return "\(type(of: error)).\(error)" }
        return "\(type(of: error)) \((error as NSError).code)"
    }
}

extension ExchangeEvent.Kind {
    /// The values of the event's log entry.
    fileprivate var values: (status: Int?, attempt: Int?, failure: String?) {
        switch self {
        case .attemptStarted(let number, _): (nil, number, nil)
        case .interimHeadReceived(let head), .headReceived(let head): (head.status, nil, nil)
        case .attemptEnded(let number, let result, _): (result.httpStatus, number, result.failureKind)
        case .ended(let summary): (summary.result.httpStatus, summary.attempts, summary.result.failureKind)
        default: (nil, nil, nil)
        }
    }
}

extension Result<Response, any Error> {
    fileprivate var httpStatus: Int? {
        guard case .success(let response) = self, response.status != 0 else { return nil }
        return response.status
    }

    fileprivate var failureKind: String? {
        guard case .failure(let error) = self else { return nil }
        return ExchangeLog.Attempt.kind(of: error)
    }
}

extension Observer where Self == ExchangeLogger {
    /// Returns an observer that logs exchanges as text without secrets; see ``ExchangeLogger``.
    public static func log(
        _ level: LogEntry.Level = .info, redaction: Redaction = .standard, bodyLimit: Int = 4096,
        output: @escaping @Sendable (_ entry: LogEntry) -> Void
    ) -> ExchangeLogger {
        ExchangeLogger(level: level, redaction: redaction, bodyLimit: bodyLimit, output: output)
    }
}
