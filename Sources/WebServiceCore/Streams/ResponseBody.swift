public import Foundation

/// The body of a ``StreamedResponse``: a sequence of the bytes as they arrive.
///
/// Each element contains at least 1 byte and usually at most about 256 KiB, after decompression.
/// When the buffer of ``SessionTask/stream(bufferSize:)`` is full, the transport pauses until the
/// next element is read (`ResponseReceiver+Reading.swift`).
///
/// A body can be iterated over once; a second iteration throws
/// ``WebServiceError/Code/streamConsumed``. Leaving the loop, releasing the last reference to the
/// body, ``cancel()`` and the cancellation of the reading Swift task close the connection
/// immediately. The task retains its result, which contains the body. The bytes that precede an
/// error are delivered before the error is thrown. Cancellation throws `URLError.cancelled`.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A chunk of the body's bytes.
    public typealias Element = Data

    private enum Content {
        case stream(BodyHandle, copy: (any BodyCopy)?)
        case data(Data, (any Error)?, isConsumed: OnceFlag)
    }

    private let content: Content
    let contentType: String

    init(_ response: Response) {
        contentType = response.header(.contentType) ?? ""
        if let handle = response.stream as? BodyHandle {
            content = .stream(handle, copy: nil)
        } else if let body = response.stream as? CopiedBody {
            content = .stream(body.handle, copy: body.copy)
        } else {
            content = .data(response.data, response.bodyFailure, isConsumed: OnceFlag())
        }
    }

    /// The part of the exchange that the body retains; `nil` for a body in memory.
    var tail: BodyTail? {
        if case .stream(let handle, _) = content { handle.receiver.options.tail } else { nil }
    }

    /// Whether an interceptor copies the body while it is read.
    var isCopied: Bool { if case .stream(_, _?) = content { true } else { false } }

    /// The number of bytes of the body; `nil` if the number is unknown, for example for a
    /// compressed or chunked body.
    public var expectedLength: Int64? {
        switch content {
        case .stream(let handle, _): handle.length
        case .data(let data, let failure, _): failure == nil ? Int64(data.count) : nil
        }
    }

    /// The trailer fields (RFC 9110, section 6.5); `nil` before the end of the body and after an
    /// error.
    ///
    /// The value is empty if there are no trailer fields, or if the session does not provide them,
    /// as is the case for Foundation's sessions.
    public var trailers: Headers? {
        switch content {
        case .stream(let handle, _): handle.receiver.trailers
        case .data(_, let failure, let flag): failure == nil && flag.isSet ? [:] : nil
        }
    }

    /// Closes the connection. A waiting reader receives `URLError.cancelled`.
    public func cancel() {
        if case .stream(let handle, _) = content { handle.receiver.cancel() }
    }

    /// Reads the body to its end and returns all bytes.
    ///
    /// - Parameter limit: The maximum length in bytes.
    /// - Throws: ``WebServiceError/Code/responseTooLarge`` if the body is longer, and the errors of
    ///   the stream.
    public func collect(upTo limit: Int) async throws -> Data {
        var data = Data()
        for try await bytes in self {
            guard bytes.count <= limit - data.count else {
                throw WebServiceError.tooLarge(limit, increasing: "the limit of collect(upTo:)")
            }
            data.append(bytes)
        }
        return data
    }

    /// Returns an iterator over the bytes. Only the first iterator delivers them.
    public func makeAsyncIterator() -> AsyncIterator {
        switch content {
        case .stream(let handle, let copy):
            AsyncIterator(handle.isConsumed.set() ? .stream(Iteration(handle, copy)) : .consumed)
        case .data(let data, let failure, let flag): AsyncIterator(flag.set() ? .data(data, failure) : .consumed)
        }
    }

    /// The iteration over a streamed body. Deallocating the iteration ends the exchange.
    fileprivate final class Iteration: Sendable {
        let handle: BodyHandle
        let copy: (any BodyCopy)?

        init(_ handle: BodyHandle, _ copy: (any BodyCopy)?) { (self.handle, self.copy) = (handle, copy) }

        deinit {
            handle.receiver.cancel()
            copy?.abandon()
        }
    }

    /// The iterator of a ``ResponseBody``.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        fileprivate enum Source {
            case stream(Iteration)
            case data(Data, (any Error)?)
            case consumed
            case over
        }

        /// The number of decoded bytes after which an element is returned.
        private static let decodedSize = 64 << 10

        private var source: Source
        /// The encoded bytes that have not been decoded yet.
        private var encoded = Data()
        /// Whether the decoder may hold further output.
        private var mustDrain = false
        private var count = 0
        /// The error that follows the bytes that were returned last.
        private var failure: (any Error)?

        fileprivate init(_ source: Source) { self.source = source }

        /// Returns the next bytes; `nil` at the end and after an error.
        ///
        /// - Throws: `URLError` for a transport error, `URLError.cancelled` after a cancellation,
        ///   `URLError.cannotDecodeContentData` for corrupt compressed data, and `WebServiceError`
        ///   with code `streamConsumed`, `responseTooLarge` or `deadline`. If a file that contains
        ///   bytes of the body cannot be written or read, the code is `storage`.
        public mutating func next() async throws -> Data? {
            switch source {
            case .over: return nil
            case .consumed:
                source = .over
                throw WebServiceError(
                    .streamConsumed, "the body has already been iterated over; send the request again for a new body")
            case .data(let data, let failure):
                guard data.isEmpty else {
                    source = .data(Data(), failure)
                    return data
                }
                source = .over
                if let failure { throw failure }
                return nil
            case .stream(let iteration):
                do {
                    if let bytes = try await next(iteration.handle) {
                        if let copy = iteration.copy { await copy.add(bytes) }
                        return bytes
                    }
                } catch {
                    source = .over
                    iteration.copy?.abandon()
                    iteration.handle.receiver.didFailReading(error)
                    throw error
                }
                source = .over
                iteration.copy?.finish()
                return nil
            }
        }

        /// Ends a body that is complete for its reader, such as an event stream after its last
        /// event. The remaining bytes are not read, and the end of the body does not count as a
        /// cancellation.
        mutating func finish() {
            if case .stream(let iteration) = source { iteration.handle.receiver.finish() }
            source = .over
        }

        /// Returns the next decoded bytes, and enforces the size limit of a streamed body.
        private mutating func next(_ handle: BodyHandle) async throws -> Data? {
            if let failure { throw failure }
            var received = try await received(handle)
            while received?.isEmpty == true { received = try await self.received(handle) }
            guard let bytes = received, let maximum = handle.maximum, bytes.count > maximum - count else {
                count += received?.count ?? 0
                if let received { handle.receiver.reportRead(received) }
                return received
            }
            let rest = bytes.prefix(Swift.max(0, maximum - count))
            handle.receiver.reportRead(rest)
            return try precede(WebServiceError.tooLarge(maximum), by: rest)
        }

        /// Returns the bytes that precede an error, which the next call throws.
        ///
        /// If there are no bytes, this method throws the error immediately.
        private mutating func precede(_ error: any Error, by bytes: Data) throws -> Data {
            guard !bytes.isEmpty else { throw error }
            failure = error
            return bytes
        }

        private mutating func received(_ handle: BodyHandle) async throws -> Data? {
            guard let decoder = handle.decoder else { return try await handle.receiver.next() }
            if encoded.isEmpty, !mustDrain {
                guard let bytes = try await handle.receiver.next() else {
                    try decoder.finish()
                    return nil
                }
                encoded = bytes
            }
            var decoded = Data()
            let used: Int
            do {
                used = try encoded.withUnsafeBytes { bytes in
                    try decoder.decodeBytes(bytes, limit: Self.decodedSize) { decoded.append(contentsOf: $0) }
                }
            } catch {
                return try precede(error, by: decoded)
            }
            mustDrain = decoded.count >= Self.decodedSize
            encoded = encoded.count == used ? Data() : encoded.dropFirst(used)
            return decoded
        }
    }
}
