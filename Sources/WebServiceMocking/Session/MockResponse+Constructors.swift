public import Foundation
public import WebServiceCore

extension MockResponse {
    /// Returns a response without a body.
    public static func status(_ statusCode: Int) -> MockResponse {
        MockResponse(statusCode: statusCode)
    }

    /// Returns a response with a JSON body and `Content-Type: application/json`.
    ///
    /// - Parameters:
    ///   - value: The value, which is encoded immediately. If the encoding fails, requests over a
    ///     ``MockSession`` fail with `WebServiceError.Code.encoding`, and a `MockServer` responds
    ///     with status 500.
    ///   - status: The status code. Defaults to 200.
    ///   - encoder: The encoder. Defaults to `nil`: a `JSONEncoder` that sorts names.
    public static func json(
        _ value: some Encodable, status: Int = 200, encoder: (any BodyEncoder)? = nil
    ) -> MockResponse {
        json(status) { try (encoder ?? sortingEncoder).encode(value) }
    }

    /// Returns a response with a JSON body of any structure.
    ///
    /// ```swift
    /// .json(["name": "ale", "price": 3.5, "tags": ["dark"]])
    /// ```
    public static func json(_ value: JSONValue, status: Int = 200) -> MockResponse {
        json(value, status: status, encoder: nil)
    }

    /// Returns a response with a JSON string in quotation marks. For a body that already is JSON,
    /// use ``text(_:status:)``.
    @available(*, deprecated, message: "sends a quoted string; use .text(…) for JSON text, or .json(.string(…))")
    public static func json(_ string: String, status: Int = 200) -> MockResponse {
        json(.string(string), status: status)
    }

    /// Returns a response with a JSON object whose members are variables.
    ///
    /// ```swift
    /// .json(["id": id, "name": name, "price": price, "tags": tags])
    /// ```
    /// Each value must be `Encodable`, an optional (`nil` is encoded as `null`), or an array or a
    /// dictionary of such values. Any other value is an error, as in ``json(_:status:encoder:)``.
    @_disfavoredOverload
    public static func json(_ members: KeyValuePairs<String, Any?>, status: Int = 200) -> MockResponse {
        json(status) { try sortingEncoder.encode(JSONValue(members: members)) }
    }

    /// Returns a response with an array of JSON objects whose members are variables.
    @_disfavoredOverload
    public static func json(_ objects: [KeyValuePairs<String, Any?>], status: Int = 200) -> MockResponse {
        json(status) { try sortingEncoder.encode(objects.map { try JSONValue(members: $0) }) }
    }

    private static func json(_ status: Int, encode: () throws -> Data) -> MockResponse {
        var response = MockResponse(statusCode: status)
        response.headers[.contentType] = ContentType.json
        do { response.data = try encode() } catch {
            response.failure = WebServiceError(
                .encoding, "the JSON body of a mock response cannot be encoded; see the underlying error",
                underlying: error)
        }
        return response
    }

    /// Returns a response with a plain-text body in UTF-8.
    public static func text(_ text: String, status: Int = 200) -> MockResponse {
        MockResponse(statusCode: status, text: text)
    }

    /// Returns a response with the content of a file.
    ///
    /// - Parameters:
    ///   - url: The URL of the file, which is read immediately. If the file cannot be read,
    ///     requests over a ``MockSession`` fail with the error, and a `MockServer` responds with
    ///     status 500.
    ///   - contentType: The media type. Defaults to `nil`: the type of a well-known file name
    ///     extension, or else `application/octet-stream`.
    ///   - status: The status code. Defaults to 200.
    public static func file(_ url: URL, contentType: String? = nil, status: Int = 200) -> MockResponse {
        var response = MockResponse(statusCode: status)
        response.headers[.contentType] =
            contentType ?? mediaTypes[url.pathExtension.lowercased()] ?? "application/octet-stream"
        do { response.data = try Data(contentsOf: url) } catch { response.failure = error }
        return response
    }

    /// Returns an error response with problem details (RFC 9457).
    ///
    /// - Parameters:
    ///   - status: The status code, which is also a member of the body.
    ///   - title: A summary of the problem's type.
    ///   - detail: An explanation of this occurrence. Defaults to `nil`.
    ///   - type: The URI of the type. Defaults to `nil`, which means `about:blank`.
    ///   - instance: The URI of this occurrence. Defaults to `nil`.
    ///   - extensions: Additional members. Defaults to an empty dictionary.
    public static func problem(
        _ status: Int, title: String, detail: String? = nil, type: String? = nil, instance: String? = nil,
        extensions: [String: JSONValue] = [:]
    ) -> MockResponse {
        let optional = ["detail": detail, "type": type, "instance": instance].compactMapValues { $0 }
        let members = optional.mapValues(JSONValue.string).merging(
            ["status": JSONValue(status), "title": .string(title)]) { $1 }
        var response = json(.object(extensions.merging(members) { $1 }), status: status)
        response.headers[.contentType] = "application/problem+json"
        return response
    }

    /// Returns a response whose body is an asynchronous sequence.
    ///
    /// ```swift
    /// session.on(.GET, "/ticks", .stream(ticks(), contentType: "text/event-stream"))
    /// ```
    ///
    /// - Parameters:
    ///   - chunks: The sequence, evaluated once for each request; see ``init(statusCode:chunks:)``.
    ///   - contentType: The media type. Defaults to `application/octet-stream`.
    ///   - status: The status code. Defaults to 200.
    public static func stream<Chunks: AsyncSequence & Sendable>(
        _ chunks: @autoclosure @escaping @Sendable () -> Chunks, contentType: String = "application/octet-stream",
        status: Int = 200
    ) -> MockResponse where Chunks.Element == Data {
        MockResponse(statusCode: status, chunks: chunks()).header(.contentType, contentType)
    }

    /// Returns a response with an event stream that ends after its last event (WHATWG HTML, section
    /// 9.2).
    ///
    /// - Parameter events: The events. Only the first line of a type or an ID is sent.
    public static func events(_ events: [ServerSentEvent]) -> MockResponse {
        var response = text(events.map(fields(of:)).joined())
        response.headers[.contentType] = "text/event-stream"
        return response
    }

    /// Returns the fields of an event, without those that have default values.
    private static func fields(of event: ServerSentEvent) -> String {
        let isLineBreak = { (character: Character) in ["\n", "\r", "\r\n"].contains(character) }
        let firstLine = { (text: String) in text.prefix { !isLineBreak($0) } }
        var lines: [String] = []
        if event.type != "message" { lines.append("event: \(firstLine(event.type))") }
        if !event.id.isEmpty { lines.append("id: \(firstLine(event.id))") }
        if let retry = event.retry { lines.append("retry: \(Int64(retry / .milliseconds(1)))") }
        let data = event.data.split(omittingEmptySubsequences: false, whereSeparator: isLineBreak)
        return (lines + data.map { "data: \($0)" }).joined(separator: "\n") + "\n\n"
    }

    /// Returns a response that fails.
    ///
    /// - Parameter error: The error with which a request over a ``MockSession`` fails. A
    ///   `MockServer` closes the connection without a response, because it cannot send an error.
    public static func error(_ error: any Error) -> MockResponse {
        var response = MockResponse(statusCode: 500)
        response.failure = error
        response.wire = .disconnect
        return response
    }

    /// Returns the response with a delay before it.
    ///
    /// A ``MockSession`` measures the delay with its clock and blocks no thread. A `MockServer`
    /// sends nothing on the connection until the delay ends.
    public func after(_ delay: Duration) -> MockResponse {
        var response = self
        response.delay = delay
        return response
    }

    /// Returns the response with a header field, which replaces fields with the same name.
    public func header(_ name: Headers.Name, _ value: String) -> MockResponse {
        var response = self
        response.headers[name] = value
        return response
    }

    /// Returns the response with header fields, which replace fields with the same names.
    ///
    /// ```swift
    /// .json(page).headers(["ETag": "\"7\"", "Link": next])
    /// ```
    public func headers(_ fields: Headers) -> MockResponse {
        var response = self
        response.headers = fields.adding(headers)
        return response
    }

    /// An encoder that sorts names, so that equal values have equal bytes.
    private static var sortingEncoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }

    private static let mediaTypes = [
        "css": "text/css", "csv": "text/csv", "gif": "image/gif", "html": "text/html", "jpeg": "image/jpeg",
        "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json", "pdf": "application/pdf",
        "png": "image/png", "svg": "image/svg+xml", "txt": "text/plain", "xml": "application/xml",
        "zip": "application/zip",
    ]
}

extension MockResponse {
    /// Unavailable, because the methods that return a response have a parameter for the status.
    @available(*, unavailable, message: "pass the status, as in .json(…, status: 404)")
    public func status(_ status: Int) -> MockResponse { self }
}
