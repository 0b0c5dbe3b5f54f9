public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A delegate that logs each request and its response in readable form, without secrets.
///
/// ```swift
/// let logger = RequestLogger()
/// let service = WebService(
///     baseURLString: "https://brewhapi.example.com", passthroughDelegate: logger)
/// ```
/// ```
/// --> POST https://brewhapi.example.com/brewers?access_token=[redacted]
///     Authorization: [redacted]
///     Content-Type: application/json
///     {"name":"Trashboat","password":"[redacted]"}
/// <-- 201 https://brewhapi.example.com/brewers?access_token=[redacted]
///     Content-Type: application/json
///     {"id":7}
/// ```
/// Every event is one call of the output, on any thread. Control characters are escaped, so that no
/// request or response can forge a log line or send control sequences to the terminal. The requests
/// and responses are not changed.
public final class RequestLogger: ServicePassthroughDelegate {
    private let redaction: Redaction
    private let bodyLimit: Int
    private let output: @Sendable (String) -> Void

    /// Creates a logger. The service holds it weakly, so the caller must retain it.
    ///
    /// - Parameters:
    ///   - redaction: The rules for secrets. Defaults to ``Redaction/standard``.
    ///   - bodyLimit: The maximum number of bytes of a body to log; 0 for none. Defaults to 4096.
    ///   - output: Receives each event as a string of one or more lines, without a trailing line
    ///     break. Defaults to `print`.
    public init(
        redaction: Redaction = .standard,
        bodyLimit: Int = 4096,
        output: @escaping @Sendable (String) -> Void = { print($0) }
    ) {
        self.redaction = redaction
        self.bodyLimit = bodyLimit
        self.output = output
    }

    /// Logs the request line, the header fields in alphabetical order and the body.
    public func requestSent(request: URLRequest) {
        write(
            "--> \(request.httpMethod ?? "GET") \(url(request.url))",
            headers: request.allHTTPHeaderFields ?? [:],
            body: request.httpBody
        )
    }

    /// Logs the status, the header fields in alphabetical order and the body, or the error.
    public func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {
        let address = url(response?.url ?? request?.url)
        if let error { return write("<-- failed \(address): \(describe(error))", headers: [:], body: nil) }
        guard let response = response as? HTTPURLResponse else {
            return write("<-- \(address)", headers: [:], body: data)
        }
        var headers: [String: String] = [:]
        for (name, value) in response.allHeaderFields { headers["\(name)"] = "\(value)" }
        write("<-- \(response.statusCode) \(address)", headers: headers, body: data)
    }

    /// Logs the failure of a handler or of the validation.
    public func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {
        output("!!! \(url(request?.url)): \(error.map(describe) ?? "failed")".escapingControls)
    }

    private func write(_ title: String, headers: [String: String], body: Data?) {
        var lines = [title]
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            lines.append("    \(name): \(redaction.value(ofHeader: name, value))")
        }
        let contentType = headers.first { $0.key.equalsIgnoringASCIICase("Content-Type") }?.value
        if let body, !body.isEmpty, bodyLimit > 0 { lines.append("    \(text(of: body, contentType: contentType))") }
        output(lines.map(\.escapingControls).joined(separator: "\n"))
    }

    private func text(of body: Data, contentType: String?) -> String {
        guard let text = redaction.body(body.prefix(bodyLimit), contentType: contentType) else {
            return "(\(body.count) bytes)"
        }
        return body.count > bodyLimit ? "\(text)… (\(body.count) bytes in total)" : text
    }

    private func url(_ url: URL?) -> String {
        url.map { redaction.url($0.absoluteString) } ?? "(no URL)"
    }

    /// Returns a description of an error without values that may be secret: the code and message of
    /// a `WebServiceError`, the name of an enum case without a payload, or else the type and code.
    private func describe(_ error: any Error) -> String {
        if let error = error as? WebServiceError { return "\(error.code): \(error.message)" }
        let mirror = Mirror(reflecting: error)
        if mirror.displayStyle == .enum, mirror.children.isEmpty { return "\(type(of: error)).\(error)" }
        return "\(type(of: error)) \((error as NSError).code)"
    }
}
