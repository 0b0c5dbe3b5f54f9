import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A receiver of a scenario that records every call.
final class ScenarioReceiver: BodyReceiver {
    enum Event: Sendable, Equatable {
        case interim(Int)
        case head(Int)
        case paused
        case end(trailers: [String])
        case failure(URLError.Code?)
    }

    private struct State {
        var events: [Event] = []
        var bytes = Data()
        /// The number of bytes after which the receiver pauses; `nil` if it does not pause.
        var pause: Int?
        var step: Int
        var pauseCount = 0
        var isInCall = false
        var hasOverlap = false
        var refusal: (any Error)?

        mutating func enter() {
            hasOverlap = hasOverlap || isInCall || isOver
            isInCall = true
        }

        var isOver: Bool {
            switch events.last {
            case .end, .failure: true
            default: false
            }
        }
    }

    let mayPause: Bool
    private let state: Mutex<State>

    /// - Parameters:
    ///   - pause: The interval at which the receiver pauses, in bytes; `nil` if it does not pause.
    ///   - refusal: The error to throw when the first bytes arrive.
    init(pauseAfter pause: Int? = nil, refusal: (any Error)? = nil) {
        mayPause = pause != nil
        state = Mutex(State(pause: pause, step: pause ?? 0, refusal: refusal))
    }

    var events: [Event] { state.withLock { $0.events } }
    var bytes: Data { state.withLock { $0.bytes } }
    /// Whether calls overlapped or followed the end.
    var hasOverlap: Bool { state.withLock { $0.hasOverlap } }
    var isOver: Bool { state.withLock { $0.isOver } }
    var pauseCount: Int { state.withLock { $0.pauseCount } }
    var isPaused: Bool { state.withLock { $0.events.last == .paused } }

    private func call<Result: Sendable>(_ body: (inout State) throws -> Result) rethrows -> Result {
        state.withLock { $0.enter() }
        defer { state.withLock { $0.isInCall = false } }
        return try state.withLock { try body(&$0) }
    }

    func didReceive(interim head: ResponseHead) {
        call { $0.events.append(.interim(head.status)) }
    }

    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) {
        call { $0.events.append(.head(head.status)) }
    }

    func didReceive(_ bytes: UnsafeRawBufferPointer) throws -> Demand {
        let new = Data(bytes)
        return try call { state in
            if let refusal = state.refusal { throw refusal }
            if let pause = state.pause, state.bytes.count >= pause, state.events.last != .paused {
                state.pause = state.bytes.count + state.step
                state.events.append(.paused)
                state.pauseCount += 1
                return .pause
            }
            if state.events.last == .paused { _ = state.events.popLast() }
            state.bytes += new
            return .more
        }
    }

    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        call { state in
            switch result {
            case .success(let trailers):
                state.events.append(.end(trailers: trailers.map { "\($0.name): \($0.value)" }))
            case .failure(let error): state.events.append(.failure((error as? URLError)?.code))
            }
        }
    }
}
