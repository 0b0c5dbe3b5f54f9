public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A delegate that writes each message and its answer in readable form, without secrets.
///
/// ```swift
/// let logger = RequestLogger()
/// let service = WebService(baseURLString: "https://brewhapi.example.com", passthroughDelegate: logger)
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
/// Every event is one call of the output, from any thread. Control characters of the messages are escaped, so that no message can forge a line
/// or speak to the terminal. The messages themselves are not changed.
public final class RequestLogger: ServicePassthroughDelegate {
    private let redaction: Redaction
    private let bodyLimit: Int
    private let output: @Sendable (String) -> Void

    /// Makes a logger. The service holds it weakly: keep it.
    ///
    /// - Parameters:
    ///   - redaction: What is secret.
    ///   - bodyLimit: How many bytes of a body are shown; 0 for none.
    ///   - output: Gets each event as one text of one or more lines, without a line break at the end.
    public init(
        redaction: Redaction = .standard,
        bodyLimit: Int = 4096,
        output: @escaping @Sendable (String) -> Void = { print($0) }
    ) {
        self.redaction = redaction
        self.bodyLimit = bodyLimit
        self.output = output
    }

    /// Writes the request line, header fields in alphabetical order, and the body.
    public func requestSent(request: URLRequest) {
        write(
            "--> \(request.httpMethod ?? "GET") \(url(request.url))",
            headers: request.allHTTPHeaderFields ?? [:],
            body: request.httpBody
        )
    }

    /// Writes status and header fields in alphabetical order, and the body; or the error.
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

    /// Writes that a handler or the validation failed.
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
        return body.count > bodyLimit ? "\(text)… (\(body.count) bytes in all)" : text
    }

    private func url(_ url: URL?) -> String {
        url.map { redaction.url($0.absoluteString) } ?? "(no URL)"
    }

    /// What can be said of an error without showing values it may hold: our own description, the code of a transport error, the name of an enum's case;
    /// else type and code.
    private func describe(_ error: any Error) -> String {
        if let error = error as? WebServiceError { return error.description }
        let mirror = Mirror(reflecting: error)
        if mirror.displayStyle == .enum, mirror.children.isEmpty { return "\(type(of: error)).\(error)" }
        return "\(type(of: error)) \((error as NSError).code)"
    }
}
