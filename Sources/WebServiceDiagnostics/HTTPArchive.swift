package import Foundation
package import WebServiceCore

/// The parts of an HTTP archive (HAR 1.2): a start, entries, and an end.
package struct HTTPArchive: Sendable {
    /// The bodies of an attempt.
    struct Bodies: Sendable {
        var request: Data?
        var response: Data?

        init() {}

        /// Creates the bodies that do not exceed a limit.
        ///
        /// - Parameter limit: The maximum number of bytes of each body to include.
        init(_ request: EncodedRequest, _ result: Result<Response, any Error>, limit: Int) {
            guard limit > 0 else { return }
            self.request = request.body.flatMap { $0.count <= limit ? $0 : nil }
            let data =
                switch result {
                case .success(let response): response.data as Data?
                case .failure(let error): (error as? WebServiceError)?.body
                }
            if let data, data.count <= limit { self.response = data }
        }
    }

    private let redaction: Redaction

    package init(_ redaction: Redaction) {
        self.redaction = redaction
    }

    package static let start = Data(
        #"{"log":{"version":"1.2","creator":{"name":"WebService","version":"1"},"entries":["#.utf8)
    package static let separator = Data(",\n".utf8)

    /// Returns the end of an archive.
    ///
    /// - Parameter omitted: The number of requests that the archive does not contain.
    package static func end(omitted: Int = 0) -> Data {
        Data((omitted == 0 ? "]}}" : #"],"comment":"\#(omitted) requests are not included"}}"#).utf8)
    }

    /// Returns the entry of a request that was observed.
    ///
    /// - Parameters:
    ///   - date: The date at which the request started.
    ///   - bodyLimit: The maximum number of bytes of each body to include.
    ///   - bodySizes: The sizes of the complete bodies, if the bodies of the request and the
    ///     response are truncated.
    ///   - messages: The messages of a WebSocket.
    ///   - error: The error to include instead of the description of the result.
    ///   - fields: Custom fields. Their names begin with an underscore.
    package func entry(
        _ request: EncodedRequest, _ result: Result<Response, any Error>, _ metrics: TransportMetrics?, date: Date,
        duration: Duration, bodyLimit: Int, bodySizes: (request: Int64, response: Int)? = nil,
        messages: RecordedMessages? = nil, error: String? = nil, fields: [String: any Sendable] = [:]
    ) -> Data {
        var attempt = ExchangeLog.Attempt(request: request, start: 0)
        attempt.end(result, metrics, at: UInt64(max(0, duration.inSeconds * 1e9)))
        if let bodySizes { attempt.bodySize = bodySizes.response }
        return entry(
            attempt, (0, date), Bodies(request, result, limit: bodyLimit), messages: messages,
            requestSize: bodySizes?.request, error: error, fields: fields)
    }

    /// Returns the entry of a request as JSON in UTF-8.
    ///
    /// - Parameters:
    ///   - origin: The instant and the date at which `resume()` was called.
    ///   - messages: The messages of a WebSocket.
    ///   - error: The error to include instead of that of the attempt.
    ///   - fields: Custom fields. Their names begin with an underscore.
    func entry(
        _ attempt: ExchangeLog.Attempt, _ origin: (instant: UInt64, date: Date)?, _ bodies: Bodies = Bodies(),
        messages: RecordedMessages? = nil, requestSize: Int64? = nil, error: String? = nil,
        fields: [String: any Sendable] = [:]
    ) -> Data {
        let start = attempt.start
        let milliseconds = Double((attempt.end ?? start) - min(start, attempt.end ?? start)) / 1e6
        let date = (origin?.date ?? Date(timeIntervalSince1970: 0))
            .addingTimeInterval(Double(start - min(origin?.instant ?? start, start)) / 1e9)
        var request = request(attempt, bodies.request, requestSize)
        if messages != nil, let url = request["url"] as? String, url.hasPrefix("http") {
            request["url"] = "ws" + url.dropFirst("http".count)
        }
        var response = response(attempt, bodies.response)
        if let error { response["_error"] = error }
        let timings = Self.timings(attempt.transport, milliseconds)
        var entry: [String: Any] = [
            "startedDateTime": date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
            "time": Self.sum(timings),
            "request": request,
            "response": response,
            "cache": [String: Any](),
            "timings": timings,
        ]
        if let address = attempt.transport?.remoteAddress { entry["serverIPAddress"] = address }
        let comment = error ?? attempt.failure
        if !comment.isEmpty { entry["comment"] = comment }
        entry.merge(fields) { _, field in field }
        if let messages {
            entry["_resourceType"] = "websocket"
            entry["_webSocketMessages"] = messages.messages.map(message)
            if messages.dropped > 0 { entry["_webSocketMessagesOmitted"] = messages.dropped }
        }
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        let data = try? JSONSerialization.data(withJSONObject: entry, options: options)  // always valid JSON
        return data ?? Data()
    }

    /// Returns the phases if the session measured them. Otherwise, the whole duration is reported
    /// as waiting. The value -1 indicates a phase that did not take place.
    ///
    /// The time before the session began the request is reported as `blocked`.
    private static func timings(_ transport: TransportMetrics?, _ milliseconds: Double) -> [String: Double] {
        guard let transport, let firstByte = transport.firstByte else {
            return ["send": 0, "wait": milliseconds, "receive": 0]
        }
        let lookup = transport.nameLookup ?? .zero
        let handshakes = (transport.connect ?? .zero) + (transport.secureConnect ?? .zero)
        let isConnected = transport.connect != nil || transport.secureConnect != nil
        let phase = { (duration: Duration?) in duration.map { $0.inSeconds * 1000 } ?? -1 }
        var timings = [
            "dns": phase(transport.nameLookup), "connect": phase(isConnected ? handshakes : nil),
            "ssl": phase(transport.secureConnect), "send": 0,
            "wait": phase(max(.zero, firstByte - lookup - handshakes)),
            "receive": phase(max(.zero, transport.total - firstByte)),
        ]
        let rest = milliseconds - sum(timings)
        timings["blocked"] = rest > 0 ? rest : -1
        return timings
    }

    /// Returns the duration of all phases. The duration of the connection phase includes that of
    /// TLS.
    private static func sum(_ timings: [String: Double]) -> Double {
        ["blocked", "dns", "connect", "send", "wait", "receive"].reduce(0) { $0 + max(0, timings[$1] ?? 0) }
    }

    /// Returns a message in the format of Chromium's developer tools. If the message is truncated
    /// or its content is omitted, its size is added.
    private func message(_ message: RecordedMessages.Message) -> [String: Any] {
        let text = redaction.body(message.content, contentType: message.contentType)
        var object: [String: Any] = [
            "type": message.isReceived ? "receive" : "send", "time": message.date.timeIntervalSince1970,
            "opcode": message.isText ? 1 : 2,
            "data": text.map { message.isText ? $0 : Data($0.utf8).base64EncodedString() } ?? "",
        ]
        if text == nil || message.content.count < message.size { object["_size"] = message.size }
        return object
    }

    /// Returns the protocol that the session reports, or an empty string if it reports none.
    private static func version(_ attempt: ExchangeLog.Attempt) -> String { attempt.transport?.networkProtocol ?? "" }

    private func shown(_ contentType: String?) -> String {
        contentType.map { redaction.value(ofHeader: "Content-Type", $0) } ?? ""
    }

    private func request(_ attempt: ExchangeLog.Attempt, _ body: Data?, _ size: Int64?) -> [String: Any] {
        let request = attempt.request
        let url = redaction.url(request.url)
        let query = url.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        var headers = request.headers
        if let contentType = request.contentType { headers[.contentType] = contentType }
        if let sent = attempt.transport?.requestHeaders, !sent.isEmpty { headers = sent }
        var object: [String: Any] = [
            "method": request.method.rawValue, "url": url, "httpVersion": Self.version(attempt), "cookies": [Any](),
            "headers": headers.map { ["name": $0.name, "value": redaction.value(ofHeader: $0.name, $0.value)] },
            "queryString": query.split(separator: "&").map { pair in
                let parts = pair.split(separator: "=", maxSplits: 1).map {
                    String($0).removingPercentEncoding ?? String($0)
                }
                return ["name": parts.first ?? "", "value": parts.count == 2 ? parts[1] : ""]
            },
            "headersSize": -1,
            "bodySize": size ?? request.stream.map { $0.length ?? -1 } ?? Int64(request.bodyCount),
        ]
        let type = headers[.contentType]
        if let text = body.flatMap({
            redaction.body($0, contentType: type, contentEncoding: headers["Content-Encoding"])
        }) {
            object["postData"] = ["mimeType": shown(type), "text": text]
        }
        return object
    }

    private func response(_ attempt: ExchangeLog.Attempt, _ body: Data?) -> [String: Any] {
        let headers = attempt.head?.headers ?? [:]
        var content: [String: Any] = ["size": attempt.bodySize, "mimeType": shown(headers[.contentType])]
        content["text"] = body.flatMap {
            redaction.body($0, contentType: headers[.contentType], contentEncoding: headers["Content-Encoding"])
        }
        return [
            "status": attempt.head?.status ?? 0, "statusText": "", "httpVersion": Self.version(attempt),
            "cookies": [Any](),
            "headers": headers.map { ["name": $0.name, "value": redaction.value(ofHeader: $0.name, $0.value)] },
            "content": content,
            "redirectURL": headers[.location].map(redaction.url) ?? "", "headersSize": -1, "bodySize": attempt.bodySize,
        ]
    }
}
