package import Foundation
package import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The result of a stub whose body is a sequence or is written by a closure. The result accompanies
/// the head of the response.
package struct MockChunks: Error {
    /// The maximum number of bytes of a body that is collected; `nil` for no limit.
    var maximum: Int?
    /// A closure that returns the error for a longer body.
    var tooLarge: @Sendable () -> any Error = { URLError(.dataLengthExceedsMaximum) }
    /// The error with which the body is intended to end; `nil` for other bodies.
    package var failure: (any Error)?
    /// A closure that calls `take` with each element, and measures pauses on the clock.
    package let produce: @Sendable (_ take: @escaping Take, _ clock: TaskClock) async throws -> Void

    package typealias Take = @Sendable (Data) async throws -> Void
}

extension MockChunks {
    /// Returns a body that ends with an error after a number of bytes, unless the message ends
    /// first.
    ///
    /// - Parameters:
    ///   - count: The number of bytes after the head, including chunk framing.
    ///   - message: The message that a server would send.
    ///   - timeout: The pause before the error `URLError.timedOut`, measured on the session's
    ///     clock; `nil` for `URLError.networkConnectionLost` without a pause.
    func cut(after count: Int, of message: ResponseMessage, timeout: Duration?) -> MockChunks {
        let (isChunked, end) = (message.producer?.isChunked == true, message.end.count)
        return MockChunks(failure: failure) { [produce] take, clock in
            let rest = Mutex(count)
            let require: @Sendable (_ needed: Int) async throws -> Void = { needed in
                guard rest.withLock({ $0 < needed }) else { return }
                if let timeout { try await clock.sleep(for: timeout) }
                throw URLError(timeout == nil ? .networkConnectionLost : .timedOut)
            }
            let takePart: MockChunks.Take = { bytes in
                guard !bytes.isEmpty else { return }
                try await require(1)
                // The CRLF after a chunk follows its bytes.
                let framing = isChunked ? bytes.chunk.count - bytes.count : 0
                let part = rest.withLock { rest in
                    defer { rest -= min(rest, bytes.count + framing) }
                    return bytes.prefix(max(rest - max(framing - 2, 0), 0))
                }
                if !part.isEmpty { try await take(part) }
                try await require(part.count < bytes.count ? 1 : min(end, 1))
            }
            try await require(min(end, 1))
            try await produce(takePart, clock)
            try await require(end)
        }
    }
}

extension MockResponse {
    /// Returns the response with a body that fails after a number of bytes.
    ///
    /// - Parameter pause: The pause before the error, measured on the session's clock.
    package func failing(
        afterBytes count: Int, with error: any Error, pause: Duration = .zero
    ) -> MockResponse {
        guard failure == nil else { return self }
        var response = self
        let (data, body) = (data, chunks ?? writer.map(MockChunks.init))
        (response.writer, response.wire) = (nil, .fixedLength)
        response.chunks = MockChunks(failure: error) { take, clock in
            let rest = Mutex(count)
            let takePart: MockChunks.Take = { bytes in
                let part = rest.withLock { rest in
                    defer { rest -= min(rest, bytes.count) }
                    return bytes.prefix(rest)
                }
                if !part.isEmpty { try await take(part) }
                guard rest.withLock({ $0 == 0 }) else { return }
                if pause > .zero { try await clock.sleep(for: pause) }
                throw error
            }
            if count == 0 { try await takePart(Data()) }
            if let body { try await body.produce(takePart, clock) } else { try await takePart(data) }
            throw error
        }
        return response
    }

    /// Returns the response with other bytes as its body, in place of a sequence or a closure.
    package func replacingBody(with data: Data) -> MockResponse {
        var response = self
        (response.data, response.chunks, response.writer) = (data, nil, nil)
        return response
    }

    /// Whether a sequence or a closure produces the body.
    package var hasProducedBody: Bool { chunks != nil || writer != nil }

    /// Returns a response that calls a closure with the size of each part of its body, unless
    /// ``data`` is the body.
    package func observingParts(_ didProduce: @escaping @Sendable (Int) -> Void) -> MockResponse {
        guard let body = chunks ?? writer.map(MockChunks.init) else { return self }
        var response = self
        response.writer = nil
        response.chunks = MockChunks(failure: body.failure) { take, clock in
            try await body.produce(
                { bytes in
                    didProduce(bytes.count)
                    try await take(bytes)
                }, clock)
        }
        return response
    }

    /// Creates a response with the result of a stub.
    package init(_ result: any MockableDataTaskResult, to request: ReceivedRequest) {
        if let response = result as? MockResponse {
            self = response
            return
        }
        let (data, response, error) = result.dataTaskResult(
            request: Request(request.method, url: request.url?.absoluteString ?? ""))
        self.init(statusCode: (response as? HTTPURLResponse)?.statusCode ?? 200, data: data ?? Data())
        if let response { headers = ResponseHead(response).headers }
        if let error { self = .error(error) }
    }
}
