import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// A request that was sent, and its response or error.
struct RecordedAttempt: Sendable {
    let number: Int
    /// The start and the end, relative to the start of the exchange.
    let start: Duration
    var end: Duration?
    let method: Request.Method
    let url: String
    let headers: Headers
    let contentType: String?
    /// The body; `nil` if its bytes are not in memory.
    let body: RecordedBody?
    /// The number of bytes of a body that is not in memory; `nil` if it is unknown.
    let streamLength: Int64?
    var response: RecordedResponse?
    var failure: RecordedFailure?
    var metrics: TransportMetrics?
    private let sentSecrets = SentSecrets()

    init(_ number: Int, _ request: EncodedRequest, start: Duration, bodyLimit: Int) {
        self.number = number
        self.start = start
        method = request.method
        url = request.url
        headers = request.headers
        contentType = request.contentType
        let isInMemory = request.stream == nil && request.bodySource == nil
        body = isInMemory ? RecordedBody(request.body ?? Data(), limit: bodyLimit) : nil
        streamLength = isInMemory ? nil : request.stream.map { $0.length } ?? Int64(request.bodyCount)
    }

    /// The header fields of the request, including `Content-Type`, but without those that the
    /// session adds.
    var requestHeaders: Headers {
        var headers = headers
        if let contentType { headers[.contentType] = contentType }
        return headers
    }

    /// Returns the places of the secrets that were sent, such as `Authorization`, `URL` and
    /// `password in the body`.
    func secrets(_ redaction: Redaction) -> [String] {
        // The session can add fields, such as cookies.
        let added = metrics.map { SentSecrets.fields($0.requestHeaders, redaction) } ?? []
        return sentSecrets.names(in: self, redaction) + added
    }

    /// The approximate number of retained bytes.
    var size: Int {
        256 + url.utf8.count + (body?.data.count ?? 0) + RecordedResponse.size(of: headers) + (response?.size ?? 0)
            + (metrics.map { RecordedResponse.size(of: $0.requestHeaders) } ?? 0)
    }

    /// The request. If its body is not retained completely, a placeholder replaces the body.
    var request: Request {
        var request = Request(method, url: url)
        request.headers = headers
        switch body {
        case let body? where body.size == 0: break
        case let body? where body.data.count == body.size:
            request.content = .data(body.data, contentType: contentType)
        case let body?: request.content = .data(Data("[body of \(body.size) bytes]".utf8), contentType: contentType)
        case nil: request.content = .data(Data("[body of a file or stream]".utf8), contentType: contentType)
        }
        return request
    }
}

/// The head and the body of a response.
struct RecordedResponse: Sendable {
    let head: ResponseHead
    private(set) var body: RecordedBody
    /// Whether the body is streamed or has not been received yet.
    var isStreamed: Bool
    let source: Response.Source?
    /// The arrivals of the bytes of an event stream.
    private(set) var arrivals: [Arrival] = []
    private var emptyLines = EmptyLineCount()

    /// The number of empty lines (which end events) that were received up to a time. The time is
    /// relative to the start of the exchange.
    struct Arrival: Sendable {
        let emptyLines: Int
        let time: Duration
    }

    /// The maximum number of arrivals to retain.
    private static let maximumArrivals = 10_000

    /// The approximate number of retained bytes.
    var size: Int { Self.size(of: head.headers) + body.data.count + arrivals.count * 24 }

    init(_ head: ResponseHead, _ body: RecordedBody, isStreamed: Bool, source: Response.Source? = nil) {
        self.head = head
        self.body = body
        self.isStreamed = isStreamed
        self.source = source
    }

    /// Adds bytes. The time of their arrival is relative to the start of the exchange.
    mutating func add(_ part: RecordedBody, at time: Duration, limit: Int) {
        body.add(part, limit: limit)
        let isEventStream = MediaType.essence(head.headers[.contentType] ?? "") == "text/event-stream"
        guard isEventStream, arrivals.count < Self.maximumArrivals else { return }
        emptyLines.add(part.data)
        arrivals.append(Arrival(emptyLines: emptyLines.count, time: time))
    }

    init?(_ response: Response, isStreamed: Bool = false, limit: Int) {
        guard let head = response.head else { return nil }
        self.init(
            head, RecordedBody(response.data, limit: limit), isStreamed: isStreamed, source: response.source)
    }

    static func size(of headers: Headers) -> Int {
        headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 64 }
    }
}

/// A counter of the empty lines in text that arrives in parts. A line ends with CR, LF or both.
struct EmptyLineCount: Sendable {
    private(set) var count = 0
    private var isLineEmpty = true
    private var followsReturn = false

    mutating func add(_ bytes: Data) {
        for byte in bytes {
            let isReturn = byte == UInt8(ascii: "\r")
            let isFeed = byte == UInt8(ascii: "\n")
            if isReturn || isFeed && !followsReturn {
                count += isLineEmpty ? 1 : 0
                isLineEmpty = true
            } else if !isFeed {
                isLineEmpty = false
            }
            followsReturn = isReturn
        }
    }
}

/// The first bytes of a body or message.
struct RecordedBody: Sendable {
    private(set) var data: Data
    /// The number of bytes of the whole body.
    private(set) var size: Int

    init(_ body: Data, limit: Int) {
        size = body.count
        // A prefix of the body would retain the whole body, so it is copied.
        data = body.count <= limit ? body : Data(Array(body.prefix(limit)))
    }

    init(_ message: RecordedMessages.Message) {
        (data, size) = (message.content, message.size)
    }

    mutating func add(_ part: RecordedBody, limit: Int) {
        data.append(part.data.prefix(max(0, limit - data.count)))
        size += part.size
    }
}
