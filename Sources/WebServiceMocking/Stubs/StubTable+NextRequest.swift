import WebServiceCore

/// The callers that wait for the next request of a ``StubTable``, in order.
struct RequestReaders {
    typealias Reader = CheckedContinuation<ReceivedRequest, any Error>

    private var waiting: [(number: Int, reader: Reader)] = []
    /// The number of requests that were returned.
    private(set) var readCount = 0
    private var lastNumber = 0

    mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    var count: Int { waiting.count }

    mutating func read() { readCount += 1 }

    mutating func add(_ reader: Reader, number: Int) { waiting.append((number, reader)) }

    /// Removes the first reader, which receives the request that has just arrived.
    mutating func takeFirst() -> Reader? {
        guard let first = waiting.first else { return nil }
        waiting = Array(waiting.dropFirst())
        readCount += 1
        return first.reader
    }

    mutating func remove(_ number: Int) -> Reader? {
        guard let place = waiting.firstIndex(where: { $0.number == number }) else { return nil }
        return waiting.remove(at: place).reader
    }

    mutating func removeAll() -> [Reader] {
        defer { waiting = [] }
        return waiting.map(\.reader)
    }
}

extension StubTable {
    private static var stopped: WebServiceError {
        WebServiceError(.mockServer, "the server has stopped, so no further request can arrive")
    }

    /// Waits for the next request that has not been returned yet, and returns it.
    package func nextRequest() async throws -> ReceivedRequest {
        let number = state.withLock { $0.readers.nextNumber() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<ReceivedRequest, any Error>? in
                    // A cancellation after this check finds the reader.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.requests.indices.contains(state.readers.readCount) {
                        defer { state.readers.read() }
                        return .success(state.requests[state.readers.readCount].received)
                    }
                    if state.isClosed { return .failure(Self.stopped) }
                    state.readers.add(continuation, number: number)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            state.withLock { $0.readers.remove(number) }?.resume(throwing: CancellationError())
        }
    }

    /// Ends all waits for further requests.
    func endReaders() {
        for reader in state.withLock({ $0.readers.removeAll() }) { reader.resume(throwing: Self.stopped) }
    }
}
