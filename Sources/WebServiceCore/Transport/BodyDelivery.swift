import Dispatch
package import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An adapter that delivers a response in parts on behalf of a session that cannot pause its
/// transport.
///
/// The receiver is called from one thread at a time, in order. Bytes that arrive while the receiver
/// is paused are buffered in memory up to 256 KiB, and in an unlinked temporary file beyond that.
/// `CurlSession` pauses its socket instead (``ResponseReceiver``).
package final class BodyDelivery: Sendable {
    private enum Part {
        case head(ResponseHead, length: Int64?)
        case sent(Int64, of: Int64?)
        case bytes(Data)
        case stored(UnlinkedFile, Range<Int>)
        case end(Result<Headers, any Error>, TransportMetrics?)

        var byteCount: Int {
            switch self {
            case .bytes(let data): data.count
            case .stored(_, let range): range.count
            case .head, .sent, .end: 0
            }
        }
    }

    private struct State {
        /// The part to deliver next, which consists of bytes that the receiver did not take.
        var first: Part?
        var parts = Queue<Part>()
        /// The number of buffered bytes.
        var waiting = 0
        var isDelivering = false
        /// The producer, while it waits for the delivery of all parts.
        var producer: CheckedContinuation<Void, Never>?
        var isPaused = false
        /// Whether ``receiveMore()`` was called while a delivery was in progress.
        var wantsMore = false
        /// Whether the end was added to the parts.
        var isClosed = false
        var isAborted = false
        /// Whether the end is being delivered or was delivered.
        var isOver = false
        /// The file of buffered bytes, and the number of bytes written to it.
        var file: (file: UnlinkedFile, count: Int)?
        /// The task that is cancelled when the receiver ends the exchange with an error.
        weak var task: (any DataTask)?

        /// - Returns: Whether the caller must deliver the parts.
        mutating func add(_ part: Part) -> Bool {
            guard !isClosed else { return false }
            if case .end = part { isClosed = true }
            parts.append(part)
            waiting += part.byteCount
            return begin()
        }

        mutating func begin() -> Bool {
            guard !isDelivering, !isPaused else { return false }
            isDelivering = true
            return true
        }

        mutating func next() -> Part? {
            guard let part = first.take() ?? parts.popFirst() else {
                isDelivering = false
                return nil
            }
            if case .end = part { isOver = true }
            return part
        }

        /// - Returns: Whether the delivery is paused. Otherwise, the delivery continues with the
        ///   next part.
        mutating func pause(at part: Part) -> Bool {
            guard !isAborted else { return false }
            first = part
            guard !wantsMore else {
                wantsMore = false
                return false
            }
            isPaused = true
            isDelivering = false
            return true
        }

        mutating func receiveMore() -> Bool {
            guard isPaused else {
                wantsMore = isDelivering
                return false
            }
            isPaused = false
            return begin()
        }

        /// Replaces the buffered parts with an error.
        ///
        /// - Returns: Whether the caller must deliver the error, and the parts to release outside
        ///   the lock.
        mutating func abort(_ error: any Error) -> (delivers: Bool, released: [Part]) {
            guard !isOver, !isAborted else { return (false, []) }
            var released = first.take().map { [$0] } ?? []
            while let part = parts.popFirst() { released.append(part) }
            (isAborted, isClosed, isPaused) = (true, false, false)
            return (add(.end(.failure(error), nil)), released)
        }
    }

    private static let memoryLimit = 256 << 10
    /// The maximum number of buffered bytes, in memory and in the file.
    private static let limit = 1 << 30

    private let state = Mutex(State())
    private let receiver: any BodyReceiver
    private let clock: TaskClock

    /// - Parameter clock: The clock of the session. A test clock waits for the delivery. Defaults
    ///   to the system clock.
    package init(_ receiver: any BodyReceiver, _ clock: TaskClock = .system) {
        self.receiver = receiver
        self.clock = clock
    }

    /// Attaches the task that is cancelled when the receiver ends the exchange with an error.
    func attach(_ task: any DataTask) {
        state.withLock { $0.task = task }
    }

    /// Whether the receiver has paused.
    var isPaused: Bool { state.withLock { $0.isPaused } }

    // MARK: Called by the session, in order

    package func receive(_ head: ResponseHead, length: Int64?) { add(.head(head, length: length)) }

    package func send(_ byteCount: Int64, of length: Int64?) { add(.sent(byteCount, of: length)) }

    package func receive(_ data: Data) {
        guard !data.isEmpty else { return }
        let mayPause = receiver.mayPause
        let (waiting, isInMemory, unused) = state.withLock { state in
            let fits = state.waiting == 0 || state.waiting + data.count <= Self.memoryLimit
            return (state.waiting, fits || !mayPause, fits || !mayPause ? state.file.take()?.file : nil)
        }
        withExtendedLifetime(unused) {}
        guard !isInMemory else { return add(.bytes(data)) }
        guard waiting + data.count <= Self.limit else {
            return fail(
                WebServiceError(
                    .responseTooLarge,
                    "more than \(Self.limit) bytes of the stream are waiting for the reader; read the stream faster"))
        }
        do { try add(store(data)) } catch { fail(error) }
    }

    package func finish(_ result: Result<Headers, any Error>, _ metrics: TransportMetrics? = nil) {
        add(.end(result, metrics))
    }

    /// Delivers the result of a session that completes with three optional values.
    package func finish(_ data: Data?, _ head: ResponseHead?, _ error: (any Error)?) {
        if let error {
            if let head, head.outlasts(error) {
                receive(head, length: nil)
                if let data { receive(data) }
            }
            return finish(.failure(error))
        }
        guard data != nil || head != nil else { return finish(.failure(URLError(.badServerResponse))) }
        if let head { receive(head, length: data.map { Int64($0.count) }) }
        if let data { receive(data) }
        finish(.success([:]))
    }

    // MARK: Called by any thread

    /// Ends the exchange without delivering the buffered parts.
    package func abort(_ error: any Error) {
        let (abortion, producer) = state.withLock { ($0.abort(error), $0.producer.take()) }
        withExtendedLifetime(abortion.released) {}
        producer?.resume()
        if abortion.delivers { deliver() }
    }

    /// Waits until all parts are delivered or the exchange has ended. Only one task at a time may
    /// call this method.
    package func room() async {
        await withCheckedContinuation { continuation in
            let waits = state.withLock { state in
                let waits = (state.isPaused || state.isDelivering) && !state.isAborted
                if waits { state.producer = continuation }
                return waits
            }
            if !waits { continuation.resume() }
        }
    }

    /// Continues a paused delivery on another thread.
    package func receiveMore() {
        if state.withLock({ $0.receiveMore() }) { clock.async { self.deliver() } }
    }

    // MARK: Delivery

    private func add(_ part: Part) {
        if state.withLock({ $0.add(part) }) { deliver() }
    }

    /// Writes bytes to the file. Only one thread at a time may call this method.
    private func store(_ data: Data) throws -> Part {
        do {
            let last = state.withLock { $0.file }  // released outside the lock
            let current = last.flatMap { $0.count < Self.limit ? $0 : nil }
            let (unlinked, start) = try current ?? (UnlinkedFile(), 0)
            try unlinked.descriptor.append(data)
            state.withLock { $0.file = (unlinked, start + data.count) }
            withExtendedLifetime(last) {}
            return .stored(unlinked, start..<start + data.count)
        } catch let failure as SystemFailure {
            throw failure.error(.storage, "the body could not be written to a temporary file")
        }
    }

    private func deliver() {
        while true {
            let (part, producer) = state.withLock { state in
                let part = state.next()
                return (part, part == nil ? state.producer.take() : nil)
            }
            producer?.resume()
            guard let part else { return }
            do {
                if let rest = try deliver(part), state.withLock({ $0.pause(at: rest) }) { return }
            } catch {
                fail(error)
            }
        }
    }

    /// - Returns: The part that the receiver did not take, because it has paused.
    private func deliver(_ part: Part) throws -> Part? {
        switch part {
        case .head(let head, let length):
            try receiver.didReceive(head, length: length, decoder: nil)
        case .sent(let count, let length):
            receiver.didSend(count, of: length)
        case .bytes(let data):
            guard try data.withUnsafeBytes({ try receiver.didReceive($0) }) == .more else { return part }
            state.withLock { $0.waiting -= data.count }
        case .stored(let file, var range):
            while !range.isEmpty {
                let count = try deliver(file, range)
                if count == 0 { return .stored(file, range) }
                state.withLock { $0.waiting -= count }
                range = range.dropFirst(count)
            }
        case .end(let result, let metrics):
            receiver.didComplete(result, metrics: metrics)
        }
        return nil
    }

    /// - Returns: The number of bytes that the receiver took; 0 if it has paused.
    private func deliver(_ file: UnlinkedFile, _ range: Range<Int>) throws -> Int {
        try withUnsafeTemporaryAllocation(byteCount: min(range.count, 64 << 10), alignment: 16) { room in
            let count: Int
            do throws(SystemFailure) {
                count = try file.descriptor.fill(room, at: Int64(range.lowerBound))
                guard count > 0 else { throw SystemFailure.shortRead }
            } catch {
                throw error.error(.storage, "the body could not be read from a temporary file")
            }
            return try receiver.didReceive(UnsafeRawBufferPointer(rebasing: room[..<count])) == .more ? count : 0
        }
    }

    /// Ends the exchange with an error of the receiver or the file.
    private func fail(_ error: any Error) {
        abort(error)
        state.withLock { $0.task }?.cancel()
    }
}

/// A task whose response is delivered to its receiver through a ``BodyDelivery``.
package final class DeliveringTask: StreamTask {
    private let base: any DataTask
    private let delivery: BodyDelivery

    /// - Parameters:
    ///   - clock: The clock of the session. Defaults to the system clock.
    ///   - make: A closure that returns the task of the transport, which passes the response to the
    ///     delivery.
    package init(
        _ receiver: any BodyReceiver, _ clock: TaskClock = .system, _ make: (BodyDelivery) -> any DataTask
    ) {
        delivery = BodyDelivery(receiver, clock)
        base = make(delivery)
        delivery.attach(base)
    }

    package var state: DataTaskState { base.state }
    package func resume() { base.resume() }
    package func suspend() { base.suspend() }
    package func receiveMore() { delivery.receiveMore() }

    package func cancel() {
        base.cancel()
        // The transport may have completed while bytes are still buffered.
        delivery.abort(URLError(.cancelled))
    }
}
