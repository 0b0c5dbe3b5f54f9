package import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An open file with the body of a stored response. Its bytes remain available after the file has
/// been removed or replaced.
package final class StoredBody: Sendable {
    private let descriptor: Descriptor
    /// The number of bytes.
    package let count: Int64

    package init(_ descriptor: consuming Descriptor, count: Int64) {
        self.descriptor = descriptor
        self.count = count
    }

    /// Reads bytes from an offset. This method blocks the thread.
    ///
    /// - Returns: The number of bytes, greater than 0 before the end of the body.
    /// - Throws: ``WebServiceError/Code/storage`` if the file cannot be read or was truncated.
    fileprivate func fill(_ room: UnsafeMutableRawBufferPointer, at offset: Int64) throws(WebServiceError) -> Int {
        do throws(SystemFailure) {
            let wanted = UnsafeMutableRawBufferPointer(rebasing: room.prefix(Int(clamping: count - offset)))
            let filled = try descriptor.fill(wanted, at: offset)
            guard filled == wanted.count else { throw SystemFailure.shortRead }
            return filled
        } catch {
            throw error.error(.storage, "the stored body could not be read")
        }
    }

    /// Returns all bytes. This method blocks the thread.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` if the file cannot be read or was truncated.
    package func content() throws(WebServiceError) -> Data {
        do throws(SystemFailure) {
            let content = try descriptor.content(count: Int(clamping: count))
            guard content.count == count else { throw SystemFailure.shortRead }
            return content
        } catch {
            throw error.error(.storage, "the stored body could not be read")
        }
    }
}

extension Next {
    /// Returns a response with a stored body. The body is read from its file as the reader of the
    /// stream takes its bytes.
    ///
    /// The deadline, the size limit, the progress and the cancellation of the request apply as to a
    /// body from a server.
    ///
    /// - Parameters:
    ///   - response: The response without its body.
    ///   - request: The request, whose options apply.
    /// - Returns: The response without a stream if the body of the exchange is not streamed.
    package func streaming(_ response: Response, from body: StoredBody, for request: Request) -> Response {
        guard let handle = task.handle(of: body, source: response.source, for: request) else { return response }
        var response = response
        response.stream = handle
        return response
    }
}

extension SessionTask {
    fileprivate func handle(of body: StoredBody, source: Response.Source, for request: Request) -> BodyHandle? {
        guard let tail else { return nil }
        let receiver = call.withLock { call in
            call.options.start = call.log.metrics.origin?.instant
            let receiver = ResponseReceiver(
                request, bodyLength: 0, source: source, clock: clock, options: call.options, progress: call.progress)
            tail.begin(receiver, call.log.request, call.events)
            return receiver
        }
        let transfer = StoredBodyTransfer(body, receiver)
        receiver.beginStream(body.count, of: transfer)
        return BodyHandle(
            receiver, decoder: nil, length: body.count, maximum: request.options.maximumResponseBytes)
    }
}

/// A transfer that reads a body from a file, instead of from a server, for the receiver of a
/// stream. The transfer does not read while the receiver is paused.
private final class StoredBodyTransfer: StreamTask {
    private let body: StoredBody
    private let receiver: ResponseReceiver
    private let queue = BlockingQueue("WebService.StoredBody")
    private let progress = Mutex<(offset: Int64, isOver: Bool)>((0, false))

    init(_ body: StoredBody, _ receiver: ResponseReceiver) {
        (self.body, self.receiver) = (body, receiver)
    }

    var state: DataTaskState { progress.withLock { $0.isOver } ? .completed : .running }
    func resume() { receiveMore() }
    func suspend() {}
    func receiveMore() { queue.run { self.deliver() } }

    func cancel() {
        queue.run { self.complete(.failure(URLError(.cancelled))) }
    }

    // MARK: On the queue

    /// Delivers bytes until the receiver pauses. The bytes that the receiver has not taken are read
    /// again later.
    private func deliver() {
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { room in
            while case let (offset, isOver) = progress.withLock({ $0 }), !isOver {
                guard offset < body.count else { return complete(.success([:])) }
                do {
                    let count = try body.fill(room, at: offset)
                    let bytes = UnsafeRawBufferPointer(rebasing: room[..<count])
                    guard try receiver.didReceive(bytes) == .more else { return }
                    progress.withLock { $0.offset += Int64(count) }
                } catch {
                    complete(.failure(error))
                }
            }
        }
    }

    private func complete(_ result: Result<Headers, any Error>) {
        let wasOver = progress.withLock { progress in
            defer { progress.isOver = true }
            return progress.isOver
        }
        if !wasOver { receiver.didComplete(result, metrics: nil) }
    }
}
