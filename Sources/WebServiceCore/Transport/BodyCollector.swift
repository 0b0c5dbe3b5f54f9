package import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A receiver that collects the whole response in memory and limits its size.
package final class BodyCollector: BodyReceiver {
    package typealias Completion = @Sendable (Result<Response, any Error>, TransportMetrics?) -> Void
    package typealias Progress = @Sendable (TransferProgress) -> Void

    struct State: ~Copyable {
        var body = BodyBuffer()
        var head: ResponseHead?
        var decoder: (any ContentDecoder)?
        var progress = TransferProgress()
    }

    private let state: Mutex<State>
    private let request: any URLRequestEncodable
    private let isHead: Bool
    private let maximum: Int
    private let source: Response.Source
    private let progress: Progress?
    private let headObserver: (@Sendable (ResponseHead) -> Void)?
    private let partObserver: (@Sendable (Data) -> Void)?
    private let completion: Completion

    /// - Parameters:
    ///   - request: The request, which limits the size of the body.
    ///   - source: The source of the response.
    ///   - maximum: An additional limit in bytes.
    ///   - progress: Called when bytes have been sent or received.
    ///   - headObserver: Called when the head has been received.
    ///   - partObserver: Called before the completion of a failed exchange, with the bytes of the
    ///     body that were received and decoded.
    ///   - completion: Called when the exchange has ended.
    package init(
        _ request: any URLRequestEncodable, source: Response.Source, maximum: Int = .max, progress: Progress? = nil,
        headObserver: (@Sendable (ResponseHead) -> Void)? = nil, partObserver: (@Sendable (Data) -> Void)? = nil,
        completion: @escaping Completion
    ) {
        self.request = request
        let encoded = request as? EncodedRequest
        let plain = encoded == nil ? request as? Request : nil
        isHead = (encoded?.method ?? plain?.method) == .HEAD
        self.maximum = max(0, min(maximum, encoded?.maximumResponseBytes ?? plain?.options.bodyMaximum ?? .max))
        self.source = source
        self.progress = progress
        self.headObserver = headObserver
        self.partObserver = partObserver
        self.completion = completion
        state = Mutex(State(progress: TransferProgress(beginning: encoded)))
    }

    package func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) throws {
        headObserver?(head)
        // The limit is on the decoded body, whose length is unknown.
        let length = decoder == nil ? length : nil
        if let length, length > maximum, !isHead, head.status != 304 { throw tooLarge(head) }
        state.withLock { state in
            state.head = head
            state.decoder = decoder
            state.progress.bytesToReceive = length
            if let length, !isHead { state.body.reserve(length) }
        }
    }

    package func didReceive(_ bytes: UnsafeRawBufferPointer) throws -> Demand {
        if let decoder = try append(bytes, isDecoded: false) {
            // Outside the lock: a small body can take long to decode.
            _ = try decoder.decodeBytes(bytes, limit: .max) { _ = try append($0, isDecoded: true) }
        }
        return .more
    }

    /// Adds bytes to the body and reports the progress, unless the bytes must be decoded first.
    ///
    /// - Returns: The decoder, if the bytes must be decoded first.
    private func append(_ bytes: UnsafeRawBufferPointer, isDecoded: Bool) throws -> (any ContentDecoder)? {
        enum Outcome { case added(TransferProgress), encoded(any ContentDecoder), tooLarge(ResponseHead?), noMemory }
        let outcome = state.withLock { state -> Outcome in
            if !isDecoded, let decoder = state.decoder { return .encoded(decoder) }
            guard bytes.count <= maximum - state.body.count else { return .tooLarge(state.head) }
            guard state.body.append(bytes) else { return .noMemory }
            state.progress.bytesReceived = Int64(state.body.count)
            return .added(state.progress)
        }
        switch outcome {
        case .added(let current):
            progress?(current)
            return nil
        case .encoded(let decoder): return decoder
        case .tooLarge(let head): throw tooLarge(head)
        case .noMemory:
            throw URLError(
                .dataLengthExceedsMaximum,
                userInfo: [NSLocalizedDescriptionKey: "no memory is available for the body"])
        }
    }

    private func tooLarge(_ head: ResponseHead?) -> WebServiceError {
        .tooLarge(
            maximum, (request as? EncodedRequest)?.source ?? request as? Request,
            head.map { Response(data: Data(), head: $0, source: source) })
    }

    package func didSend(_ byteCount: Int64, of length: Int64?) {
        guard let progress else { return }
        progress(
            state.withLock { state in
                (state.progress.bytesSent, state.progress.bytesToSend) = (byteCount, length)
                return state.progress
            })
    }

    package func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        let (head, decoder, body) = state.withLock { state in (state.head, state.decoder, state.body.take()) }
        let response = result.flatMap { _ in
            Result {
                try decoder?.finish()
                guard let head else {
                    throw URLError(
                        .badServerResponse, userInfo: [NSLocalizedDescriptionKey: "no response was received"])
                }
                return Response(data: body, head: head, source: source, transport: metrics)
            }
        }
        if case .failure = response, !body.isEmpty { partObserver?(body) }
        completion(response, metrics)
    }
}

extension TransferProgress {
    /// Creates the progress before a request is sent.
    init(beginning request: EncodedRequest?) {
        self.init(bytesToSend: request.map(\.bodyLength) ?? 0)
    }
}
