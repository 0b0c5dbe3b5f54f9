/// The stream of a response. Its deallocation ends the exchange.
final class BodyHandle: Sendable {
    let stream: ResponseStream
    let decoder: (any ContentDecoder)?
    /// The length of the body in bytes; `nil` if it is unknown.
    let length: Int64?
    /// The maximum size of the decoded body in bytes.
    let maximum: Int?
    /// A Boolean value that indicates whether an iteration over the body has begun.
    let isConsumed = OnceFlag()

    init(_ stream: ResponseStream, decoder: (any ContentDecoder)?, length: Int64?, maximum: Int?) {
        self.stream = stream
        self.decoder = decoder
        self.length = length
        self.maximum = maximum
    }

    deinit { stream.cancel() }
}
