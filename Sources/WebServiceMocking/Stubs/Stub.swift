import Foundation
import WebServiceCore

/// A response that a ``StubResponder`` returns for some requests.
///
/// All members may be called from any thread.
public final class Stub: Sendable, CustomStringConvertible {
    /// The source location of the declaration of a stub.
    public struct Location: Sendable, Hashable {
        /// The module and the file, such as `BreweryTests/LoginTests.swift`.
        public let fileID: String
        /// The path of the file.
        public let filePath: String
        /// The line, counted from 1.
        public let line: Int
        /// The column, counted from 1.
        public let column: Int

        /// The name of the file and the line.
        var text: String { "\(fileID.split(separator: "/").last ?? ""):\(line)" }
    }

    /// A closure that returns the response to a request.
    ///
    /// The closure is called on a background thread, concurrently for different requests.
    public typealias Handler = @Sendable (_ request: ReceivedRequest) throws -> MockResponse

    /// An asynchronous closure that returns the response to a request.
    ///
    /// The closure is called concurrently for different requests. Its Swift task is cancelled when
    /// the request is cancelled or times out, or when the client closes the connection.
    public typealias AsyncHandler = @Sendable (_ request: ReceivedRequest) async throws -> MockResponse

    enum Condition: Sendable {
        case matcher(RequestMatcher)
        case encodable(MockSession.Matcher)
    }

    package enum Responder: Sendable {
        /// A result of a session.
        case result(any MockableDataTaskResult)
        case handler(Handler)
        case asyncHandler(AsyncHandler)
        /// Responses to successive requests.
        case sequence([MockResponse])
    }

    private struct State {
        var responder: Responder?
        var callCount = 0
        var limit: Int?
        var isOptional = false
    }

    /// The source location of the declaration.
    public let location: Location
    let condition: Condition
    private let state: Mutex<State>

    init(_ condition: Condition, _ responder: Responder, _ location: Location) {
        self.condition = condition
        self.location = location
        state = Mutex(State(responder: responder))
    }

    /// The condition in words, such as `GET /users/{id}`.
    public var description: String {
        switch condition {
        case .matcher(let matcher): matcher.description
        case .encodable: "a stub with a closure"
        }
    }

    /// The number of requests to which the stub responded.
    public var callCount: Int { state.withLock { $0.callCount } }

    /// Limits the stub to a number of requests.
    ///
    /// Further requests use the stubs that were added earlier.
    /// ``StubResponder/verify(inOrder:fileID:filePath:line:column:)`` reports a stub with fewer
    /// calls.
    ///
    /// - Parameter count: The number of requests. A negative number is treated as 0.
    @discardableResult
    public func times(_ count: Int) -> Stub {
        state.withLock { $0.limit = max(count, 0) }
        return self
    }

    /// Allows the stub to remain unused, or to be used less often than ``times(_:)`` specifies.
    @discardableResult
    public func optional() -> Stub {
        state.withLock { $0.isOptional = true }
        return self
    }

    // MARK: Responding

    /// Counts a call, unless the limit is reached.
    ///
    /// - Returns: The number of the call, counted from 1, or `nil` if the limit is reached.
    func claim() -> Int? {
        state.withLock { state in
            if let limit = state.limit, state.callCount >= limit { return nil }
            state.callCount += 1
            return state.callCount
        }
    }

    /// The responder; `nil` after ``release()``.
    package var responder: Responder? { state.withLock { $0.responder } }

    /// Releases the responder, which may retain the owner of the stub.
    func release() {
        let released = state.withLock { state in
            defer { state.responder = nil }
            return state.responder
        }
        withExtendedLifetime(released) {}  // deallocated outside the lock
    }

    /// The difference between the expected and the actual number of calls, in words; `nil` if there
    /// is none.
    var countMismatch: String? {
        let (count, limit, isOptional) = state.withLock { ($0.callCount, $0.limit, $0.isOptional) }
        if isOptional || count == limit ?? max(count, 1) { return nil }
        guard let limit else { return "was not used" }
        return "was used \(count) of \(limit) \(limit == 1 ? "time" : "times")"
    }

    /// Returns whether a request meets the condition, regardless of the stub's limit; `false` for a
    /// condition on encodable requests.
    func matches(_ request: ReceivedRequest) -> Bool {
        switch condition {
        case .encodable: false
        case .matcher(let matcher): matcher.matches(request)
        }
    }

    /// Returns the reasons why the stub does not respond to a request.
    func mismatches(_ input: MatchInput) -> [String] {
        switch condition {
        case .encodable: return exhausted ?? ["its closure returned false"]
        case .matcher(let matcher):
            let mismatches = matcher.mismatches(input)
            return mismatches.isEmpty ? exhausted ?? [] : mismatches
        }
    }

    private var exhausted: [String]? {
        let (count, limit) = state.withLock { ($0.callCount, $0.limit) }
        guard let limit, count >= limit else { return nil }
        return ["it has reached its limit, times(\(limit))"]
    }
}
