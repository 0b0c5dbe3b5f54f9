import Foundation
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A recorder of exchanges, in the order in which their requests were sent.
final class CassetteRecorder: Sendable {
    /// The result of an exchange.
    enum Result: Sendable {
        case response(Response)
        case failure(URLError)
        /// The conversation cannot be recorded. The associated value is the reason.
        case unrecordable(String)

        /// The part of a response that was received.
        struct Response: Sendable {
            let head: ResponseHead
            /// The length that the head specified; `nil` if the head specified none.
            var length: Int64?
            var body = Data()
            var trailers = Headers()
            /// The error that interrupted the response; `nil` if the response is complete.
            var error: URLError?
            /// The messages that followed an accepted WebSocket handshake; otherwise `nil`.
            var messages: [CassetteSession.Exchange.Message]?
        }
    }

    private struct Entry: Sendable {
        let request: @Sendable () throws -> ReceivedRequest
        var upgrade: String?
        /// Returns the result. The closure is called when the file is written, because a
        /// conversation may continue until then.
        var result: (@Sendable () -> Result?)?
    }

    private let entries = Mutex<[Entry]>([])

    /// Adds a request.
    ///
    /// - Parameter upgrade: The protocol of a handshake; `nil` for HTTP.
    /// - Returns: The number of the request.
    func begin(_ request: SentRequest, upgrade: String? = nil) -> Int {
        entries.withLock { entries in
            entries.append(Entry(request: { try request.readingBody().received }, upgrade: upgrade))
            return entries.count - 1
        }
    }

    /// Adds the exchanges of an archive.
    func add(_ exchanges: [(ReceivedRequest, Result.Response)]) {
        entries.withLock { entries in
            entries += exchanges.map { exchange in
                Entry(request: { exchange.0 }, result: { .response(exchange.1) })
            }
        }
    }

    /// Whether no exchange has a result.
    var isEmpty: Bool { entries.withLock { $0 }.allSatisfy { $0.result?() == nil } }

    /// Sets the result of a request. Only the first result counts.
    func end(_ number: Int, _ result: @autoclosure @escaping @Sendable () -> Result?) {
        entries.withLock { entries in
            if entries.indices.contains(number), entries[number].result == nil { entries[number].result = result }
        }
    }

    /// Returns the previous exchanges, followed by those that have results, with their secrets
    /// redacted.
    ///
    /// - Parameters:
    ///   - previous: The exchanges that already precede them in the file.
    ///   - allowed: Values that look like tokens but are not secret.
    ///   - change: Returns the exchange to record instead of a redacted exchange, or `nil` to omit
    ///     it.
    /// - Throws: The error of a request body that cannot be read, an error of `change`, or
    ///   `WebServiceError` with the code `cassette` or `cassetteSecret`.
    func exchanges(
        _ redactor: CassetteRedactor, after previous: [Cassette.Exchange], allowed: Set<String>,
        change: ((CassetteSession.Exchange) throws -> CassetteSession.Exchange?)?
    ) throws -> [Cassette.Exchange] {
        let entries = entries.withLock { $0 }
        var exchanges = previous
        for entry in entries {
            guard let result = entry.result?() else { continue }
            let place = "exchange \(exchanges.count + 1)"
            var exchange = try Self.exchange(try entry.request(), result, redactor, place: place)
            exchange.request.upgrade = entry.upgrade
            guard let change else {
                exchanges.append(exchange)
                continue
            }
            guard let changed = try change(CassetteSession.Exchange(exchange))?.stored(insteadOf: exchange) else {
                continue
            }
            guard changed.isValid else {
                throw WebServiceError(
                    .cassette,
                    "the cassette was not written: willRecord returned \(place) with an invalid method, URL, status, "
                        + "header field or message; correct the closure")
            }
            exchanges.append(changed)
        }
        let scan = SecretScan(secrets: redactor.secrets, allowed: allowed)
        for (place, exchange) in exchanges.enumerated() {
            guard let finding = scan.finding(in: exchange) else { continue }
            throw WebServiceError(
                .cassetteSecret,
                "the cassette was not written: exchange \(place + 1) has \(finding); add the value's name to "
                    + "'redaction', or add the value to 'secrets', or to 'allowed' if it is not secret")
        }
        return exchanges
    }

    private static func exchange(
        _ request: ReceivedRequest, _ result: Result, _ redactor: CassetteRedactor, place: String
    ) throws -> Cassette.Exchange {
        var exchange = Cassette.Exchange(request: try request.message(redactor, "the request body of \(place)"))
        switch result {
        case .failure(let error): exchange.error = error.code.rawValue
        case .unrecordable(let reason):
            throw WebServiceError(.cassette, "the cassette was not written: \(place) \(reason)")
        case .response(let response):
            var message = Cassette.Message(status: response.head.status)
            var headers = response.head.headers
            // A replay adds this field for the key of its own request.
            if response.messages != nil { headers.remove("Sec-WebSocket-Accept") }
            let (fields, body) = try redactor.redact(headers, response.body, "the response body of \(place)")
            message.set(fields, body)
            if response.length != Int64(response.body.count) { message.length = response.length ?? -1 }
            message.trailers = Cassette.Message.lines(redactor.redact(response.trailers))
            exchange.response = message
            exchange.error = response.error?.code.rawValue
            exchange.messages = try response.messages?.enumerated().map { number, message in
                Cassette.Frame(try redactor.redact(message, "message \(number + 1) of \(place)"))
            }
        }
        return exchange
    }
}

extension ReceivedRequest {
    /// Returns the request as it is stored. If there is a redactor, its secrets are redacted.
    ///
    /// - Parameter place: The name of the body in errors.
    func message(_ redactor: CassetteRedactor?, _ place: String = "") throws -> Cassette.Message {
        let url = (origin ?? "") + target
        var message = Cassette.Message(method: method.rawValue, url: redactor?.url(url) ?? url)
        let (fields, body) = try redactor?.redact(headers, body, place) ?? (headers, body)
        message.set(fields, body)
        return message
    }
}

/// A receiver that records a response and passes it on.
final class RecordingReceiver: BodyReceiver {
    private let receiver: any BodyReceiver
    private let record: @Sendable (CassetteRecorder.Result) -> Void
    private let state = Mutex<CassetteRecorder.Result.Response?>(nil)

    init(_ receiver: any BodyReceiver, record: @escaping @Sendable (CassetteRecorder.Result) -> Void) {
        self.receiver = receiver
        self.record = record
    }

    var mayPause: Bool { receiver.mayPause }

    func didReceive(interim head: ResponseHead) throws { try receiver.didReceive(interim: head) }

    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) throws {
        state.withLock { $0 = .init(head: head, length: length) }
        let decoder = decoder.map {
            RecordingDecoder($0) { [self] in
                append($0)
            } failed: { [self] error in
                state.withLock { $0?.error = error }
            }
        }
        isEncoded.withLock { $0 = decoder != nil }
        try receiver.didReceive(head, length: length, decoder: decoder)
    }

    private let isEncoded = Mutex(false)

    func didReceive(_ bytes: UnsafeRawBufferPointer) throws -> Demand {
        guard !isEncoded.withLock({ $0 }) else { return try receiver.didReceive(bytes) }
        // The bytes are recorded before they are delivered, because the reader may end the stream
        // when it receives them.
        append(bytes)
        var isTaken = false
        defer { if !isTaken { state.withLock { $0?.body.count -= bytes.count } } }
        let demand = try receiver.didReceive(bytes)
        isTaken = demand == .more
        return demand
    }

    func didSend(_ byteCount: Int64, of length: Int64?) { receiver.didSend(byteCount, of: length) }

    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        switch (result, state.withLock { $0 }) {
        case (.success(let trailers), let response?): recordEnd(of: response, trailers)
        case (.failure(URLError.cancelled), let response?): recordEnd(of: response)
        case (.failure(let error as URLError), var response?):
            response.error = error
            record(.response(response))
        case (.failure(let error as URLError), nil) where error.code != .cancelled: record(.failure(error))
        default: break  // errors of this process, such as limits, recur in a replay
        }
        receiver.didComplete(result, metrics: metrics)
    }

    /// Records the received part of a response.
    ///
    /// Called when the reader has ended the stream, because the session may complete the request
    /// only after the test has ended.
    func didCancel() {
        if let response = state.withLock({ $0 }) { recordEnd(of: response) }
    }

    private func recordEnd(of response: CassetteRecorder.Result.Response, _ trailers: Headers = [:]) {
        var response = response
        response.trailers = trailers
        // The specified length is the number of encoded bytes, but the decoded bytes are recorded.
        if response.length != nil { response.length = Int64(response.body.count) }
        record(.response(response))
    }

    private func append(_ bytes: UnsafeRawBufferPointer) {
        state.withLock { $0?.body.append(contentsOf: bytes) }
    }
}

/// A decoder that reports the decoded bytes and its error.
private final class RecordingDecoder: ContentDecoder {
    private let decoder: any ContentDecoder
    private let copy: @Sendable (UnsafeRawBufferPointer) -> Void
    private let failed: @Sendable (URLError) -> Void

    init(
        _ decoder: any ContentDecoder, copy: @escaping @Sendable (UnsafeRawBufferPointer) -> Void,
        failed: @escaping @Sendable (URLError) -> Void
    ) {
        self.decoder = decoder
        self.copy = copy
        self.failed = failed
    }

    func decodeBytes(
        _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        try reporting {
            try decoder.decodeBytes(bytes, limit: limit) { bytes in
                copy(bytes)
                try append(bytes)
            }
        }
    }

    func finish() throws { try reporting { try decoder.finish() } }

    private func reporting<Value>(_ decode: () throws -> Value) throws -> Value {
        do { return try decode() } catch let error as URLError {
            failed(error)
            throw error
        }
    }
}
