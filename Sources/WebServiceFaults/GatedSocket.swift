import Foundation
import WebServiceCore
import WebServiceMocking

/// A message of a WebSocket connection that waits at the gate, like a request.
final class SocketMessage: GatedExchange {
    /// Whether the message arrives, and the error with which the connection then ends; `nil` if the
    /// connection stays open.
    typealias Decision = (arrives: Bool, end: URLError.Code?)

    /// The request of the connection.
    let request: ReceivedRequest
    let decision = Once<Decision>()
    private let isProcessed = OnceFlag()

    init(of request: ReceivedRequest) { self.request = request }

    var isOver: Bool { decision.isSet }

    func process(_ then: @escaping @Sendable (any MockableDataTaskResult) -> Void) {
        _ = isProcessed.set()
        then(MockResponse(statusCode: 200))
    }

    /// Lets the message arrive if it was processed, and ends the connection if the result is an
    /// error.
    func deliver(_ result: any MockableDataTaskResult, _ didArrive: @escaping @Sendable (GatedDelivery) -> Void) {
        let response = MockResponse(result, to: request)
        if response.wire != .noResponse {
            decision.set((isProcessed.isSet, response.failure == nil ? nil : .networkConnectionLost))
        }
    }
}

/// The client's end of a connection, whose messages wait at the gate. The request and the response
/// of the handshake have already passed the gate.
final class GatedSocket: ByteConnection {
    private struct State {
        var end: URLError.Code?
        var pending: [SocketMessage] = []
    }

    private let inner: any ByteConnection
    private let request: ReceivedRequest
    /// The name of the messages, without their numbers.
    private let name: String
    private let driver: RunDriver
    private let hasSent = OnceFlag()
    private let hasReceived = OnceFlag()
    private let state = Mutex(State())

    init(_ inner: any ByteConnection, of request: ReceivedRequest, _ name: String, _ driver: RunDriver) {
        (self.inner, self.request, self.name, self.driver) = (inner, request, name, driver)
    }

    deinit { inner.close() }

    var metrics: TransportMetrics { inner.metrics }
    /// Messages that are sent while another one waits at the gate remain separate messages.
    var batchSize: Int { 1 }

    func receive() async throws -> Data {
        let bytes = try await unlessEnded { try await self.inner.receive() }
        let isHandshake = hasReceived.set()
        if !isHandshake, !bytes.isEmpty, let end = try await pass(.receivedMessage) { self.end(end) }
        return bytes
    }

    func send(_ bytes: Data) async throws {
        let isHandshake = hasSent.set()
        let end = try await isHandshake ? nil : pass(.sentMessage)
        try await unlessEnded { try await self.inner.send(bytes) }
        if let end { self.end(end) }
    }

    func close() { end(.cancelled) }

    private func end(_ code: URLError.Code) {
        let pending = state.withLock { state in
            state.end = state.end ?? code
            defer { state.pending = [] }
            return state.pending
        }
        for message in pending { message.decision.set((false, code)) }
        inner.close()
    }

    /// Waits until the driver decides about a message.
    ///
    /// - Returns: The error with which the connection ends after the message; `nil` if it stays
    ///   open.
    /// - Throws: The error of the connection if the message does not arrive.
    private func pass(_ kind: FaultTrace.Exchange.Kind) async throws -> URLError.Code? {
        let message = SocketMessage(of: request)
        let earlierEnd = state.withLock { state in
            if state.end == nil { state.pending.append(message) }
            return state.end
        }
        if let earlierEnd { throw URLError(earlierEnd) }
        driver.park(message, kind, name)
        let (arrives, end) = await message.decision.value(orIfCancelled: (false, .cancelled))
        state.withLock { state in state.pending.removeAll { $0 === message } }
        if let end, !arrives {
            self.end(end)
            throw URLError(state.withLock { $0.end } ?? end)
        }
        return end
    }

    /// Runs a closure. After the end, an error of the closure is replaced with that of the end.
    private func unlessEnded<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch { throw state.withLock { $0.end.map { URLError($0) } } ?? error }
    }
}
