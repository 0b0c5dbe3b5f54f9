import Foundation

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

    private let state = Mutex(State())
    private let request: Request?
    private let maximum: Int
    private let source: Response.Source
    private let progress: Progress?
    private let headObserver: (@Sendable (ResponseHead) -> Void)?
    private let completion: Completion

    /// - Parameters:
    ///   - request: The request, which limits the size of the body.
    ///   - source: The source of the response.
    ///   - maximum: An additional limit in bytes.
    ///   - progress: Called when bytes have been sent or received.
    ///   - headObserver: Called when the head has been received.
    ///   - completion: Called when the exchange has ended.
    package init(
        _ request: any URLRequestEncodable, source: Response.Source, maximum: Int = .max, progress: Progress? = nil,
        headObserver: (@Sendable (ResponseHead) -> Void)? = nil, completion: @escaping Completion
    ) {
        self.request = (request as? EncodedRequest)?.source ?? request as? Request
        self.maximum = max(0, min(maximum, self.request?.options.maximumResponseBytes ?? .max))
        self.source = source
        self.progress = progress
        self.headObserver = headObserver
        self.completion = completion
    }

    package func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) throws {
        headObserver?(head)
        // The limit is on the decoded body, whose length is unknown.
        let length = decoder == nil ? length : nil
        if let length, length > maximum, request?.method != .HEAD, head.status != 304 { throw tooLarge(head) }
        state.withLock { state in
            state.head = head
            state.decoder = decoder
            state.progress.bytesToReceive = length
            if let length, request?.method != .HEAD { state.body.reserve(length) }
        }
    }

    package func didReceive(_ bytes: UnsafeRawBufferPointer) throws -> Demand {
        let news = try state.withLock { state in
            if let decoder = state.decoder {
                _ = try decoder.decodeBytes(bytes, limit: .max) { try append($0, to: &state) }
            } else {
                try append(bytes, to: &state)
            }
            state.progress.bytesReceived = Int64(state.body.count)
            return progress == nil ? nil : state.progress
        }
        if let news { progress?(news) }
        return .more
    }

    private func append(_ bytes: UnsafeRawBufferPointer, to state: inout State) throws {
        guard bytes.count <= maximum - state.body.count else { throw tooLarge(state.head) }
        guard state.body.append(bytes) else {
            throw URLError(
                .dataLengthExceedsMaximum,
                userInfo: [NSLocalizedDescriptionKey: "no memory is available for the body"])
        }
    }

    private func tooLarge(_ head: ResponseHead?) -> WebServiceError {
        .tooLarge(maximum, request, head?.urlResponse)
    }

    package func didSend(_ byteCount: Int64, of length: Int64) {
        guard let progress else { return }
        progress(
            state.withLock { state in
                (state.progress.bytesSent, state.progress.bytesToSend) = (byteCount, length)
                return state.progress
            })
    }

    package func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        completion(result.flatMap { _ in Result { try response(metrics) } }, metrics)
    }

    private func response(_ metrics: TransportMetrics?) throws -> Response {
        let (head, decoder, body) = state.withLock { state in (state.head, state.decoder, state.body.take()) }
        try decoder?.finish()
        guard let head else {
            throw URLError(
                .badServerResponse, userInfo: [NSLocalizedDescriptionKey: "no response was received"])
        }
        return Response(data: body, head: head, source: source, transport: metrics)
    }
}
