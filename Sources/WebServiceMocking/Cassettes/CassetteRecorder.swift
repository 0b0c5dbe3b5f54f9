import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The exchanges that were recorded, in the order in which their requests were sent.
final class CassetteRecorder: Sendable {
    /// The result of an exchange.
    enum Result: Sendable {
        case response(ResponseHead, Data)
        case failure(URLError)
    }

    private typealias Entry = (request: SentRequest, result: Result?)

    private let entries = Mutex<[Entry]>([])

    /// Adds a request.
    ///
    /// - Returns: Its number.
    func begin(_ request: SentRequest) -> Int {
        entries.withLock { entries in
            entries.append((request, nil))
            return entries.count - 1
        }
    }

    /// Sets the result of a request; the first one counts.
    func end(_ number: Int, _ result: Result) {
        entries.withLock { entries in
            if entries.indices.contains(number), entries[number].result == nil { entries[number].result = result }
        }
    }

    /// Returns the exchanges with results, with their secrets redacted.
    ///
    /// - Throws: The error of a request body that cannot be read, and `WebServiceError` with the
    ///   code `cassetteSecret`.
    func exchanges(_ redactor: CassetteRedactor, allowed: Set<String>) throws -> [Cassette.Exchange] {
        let entries = entries.withLock { $0 }
        let exchanges = try entries.compactMap { request, result -> Cassette.Exchange? in
            guard let result else { return nil }
            var exchange = Cassette.Exchange(request: try request.readingBody().message(redactor))
            switch result {
            case .failure(let error): exchange.error = error.code.rawValue
            case .response(let head, let body):
                var message = Cassette.Message(status: head.status)
                let (fields, redacted) = redactor.redact(head.headers, body)
                message.set(fields, redacted)
                exchange.response = message
            }
            return exchange
        }
        let scan = SecretScan(secrets: redactor.secrets, allowed: allowed)
        for (place, exchange) in exchanges.enumerated() {
            guard let finding = scan.finding(in: exchange) else { continue }
            throw WebServiceError(
                .cassetteSecret,
                "the cassette is not written: exchange \(place + 1) has \(finding); add its name to the redaction, "
                    + "add it to secrets, or allow it")
        }
        return exchanges
    }
}

extension SentRequest {
    /// The request as it is stored, with its secrets redacted if there is a redactor.
    func message(_ redactor: CassetteRedactor?) -> Cassette.Message {
        let received = received
        let url = (received.origin ?? "") + received.target
        var message = Cassette.Message(method: received.method.rawValue, url: redactor?.url(url) ?? url)
        let (fields, body) = redactor?.redact(received.headers, received.body) ?? (received.headers, received.body)
        message.set(fields, body)
        return message
    }
}

/// A receiver that records a response and passes it on.
final class RecordingReceiver: BodyReceiver {
    private struct State {
        var head: ResponseHead?
        var body = Data()
    }

    private let receiver: any BodyReceiver
    private let record: @Sendable (CassetteRecorder.Result) -> Void
    private let state = Mutex(State())

    init(_ receiver: any BodyReceiver, record: @escaping @Sendable (CassetteRecorder.Result) -> Void) {
        self.receiver = receiver
        self.record = record
    }

    var mayPause: Bool { receiver.mayPause }

    func didReceive(interim head: ResponseHead) throws { try receiver.didReceive(interim: head) }

    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) throws {
        state.withLock { $0.head = head }
        let decoder = decoder.map { RecordingDecoder($0) { [self] in append($0) } }
        isEncoded.withLock { $0 = decoder != nil }
        try receiver.didReceive(head, length: length, decoder: decoder)
    }

    private let isEncoded = Mutex(false)

    func didReceive(_ bytes: UnsafeRawBufferPointer) throws -> Demand {
        let demand = try receiver.didReceive(bytes)
        if demand == .more, !isEncoded.withLock({ $0 }) { append(bytes) }
        return demand
    }

    func didSend(_ byteCount: Int64, of length: Int64) { receiver.didSend(byteCount, of: length) }

    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        let (head, body) = state.withLock { ($0.head, $0.body) }
        switch (result, head) {
        case (.success, let head?): record(.response(head, body))
        case (.failure(let error as URLError), let head?) where error.code == .cancelled:
            record(.response(head, body))  // the reader has ended the stream
        case (.failure(let error as URLError), _) where error.code != .cancelled: record(.failure(error))
        default: break  // an error of this process, such as a limit, occurs again at the replay
        }
        receiver.didComplete(result, metrics: metrics)
    }

    private func append(_ bytes: UnsafeRawBufferPointer) {
        state.withLock { $0.body.append(contentsOf: bytes) }
    }
}

/// A decoder that copies the decoded bytes.
private final class RecordingDecoder: ContentDecoder {
    private let decoder: any ContentDecoder
    private let copy: @Sendable (UnsafeRawBufferPointer) -> Void

    init(_ decoder: any ContentDecoder, copy: @escaping @Sendable (UnsafeRawBufferPointer) -> Void) {
        self.decoder = decoder
        self.copy = copy
    }

    func decodeBytes(
        _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        try decoder.decodeBytes(bytes, limit: limit) { bytes in
            copy(bytes)
            try append(bytes)
        }
    }

    func finish() throws { try decoder.finish() }
}

/// A task that calls a closure at the first `resume()`.
final class CassetteRecordingTask: StreamTask {
    private let task: any StreamTask
    private let begin: Mutex<(@Sendable () -> Void)?>

    init(_ task: any StreamTask, begin: @escaping @Sendable () -> Void) {
        self.task = task
        self.begin = Mutex(begin)
    }

    var state: DataTaskState { task.state }

    func resume() {
        begin.withLock { $0.take() }?()
        task.resume()
    }

    func suspend() { task.suspend() }
    func cancel() { task.cancel() }
    func receiveMore() { task.receiveMore() }
}
