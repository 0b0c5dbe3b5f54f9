import Foundation

/// The stream of a response. Its deallocation ends the exchange.
final class BodyHandle: Sendable {
    let stream: ResponseStream
    let decoder: (any ContentDecoder)?
    /// The length of the body in bytes; `nil` if it is unknown.
    let length: Int64?
    /// The maximum size of the decoded body in bytes.
    let maximum: Int?
    /// Reports the first decoded bytes to the observers; `nil` if none wants them.
    let recorder: BodyRecorder?
    /// A Boolean value that indicates whether an iteration over the body has begun.
    let isConsumed = OnceFlag()

    init(
        _ stream: ResponseStream, decoder: (any ContentDecoder)?, length: Int64?, maximum: Int?,
        recorder: BodyRecorder?
    ) {
        self.stream = stream
        self.decoder = decoder
        self.length = length
        self.maximum = maximum
        self.recorder = recorder
    }

    deinit { stream.cancel() }
}

/// Reports the first bytes of a streamed body to the observers, as its reader takes them.
final class BodyRecorder: Sendable {
    private let context: ExchangeContext
    /// The number of bytes that are still to be reported.
    private let remaining: Mutex<Int>

    init(_ context: ExchangeContext, limit: Int) {
        self.context = context
        remaining = Mutex(limit)
    }

    func record(_ bytes: Data) {
        let count = remaining.withLock { remaining in
            let count = min(remaining, bytes.count)
            remaining -= count
            return count
        }
        // A prefix would retain all bytes.
        if count > 0 { context.reportBody(count == bytes.count ? bytes : Data(Array(bytes.prefix(count)))) }
    }
}
