public import Foundation
public import WebServiceCore
public import WebServiceMocking

/// The record of one run, without the values of the program.
public struct FaultTrace: Sendable {
    /// One exchange of a run, or a message of a WebSocket connection.
    public struct Exchange: Sendable {
        /// The kind of an exchange.
        public enum Kind: Sendable, Hashable {
            /// An HTTP request.
            case request
            /// A message of a WebSocket connection from the client.
            case sentMessage
            /// A message of a WebSocket connection from the server.
            case receivedMessage
        }

        /// The kind of exchange.
        public internal(set) var kind = Kind.request
        /// The name in a ``FaultPlan``, such as `POST /orders#1`.
        public internal(set) var name: String
        /// The request; for a message, the request of its connection.
        public let request: ReceivedRequest
        /// The fault; `nil` if there was none.
        public internal(set) var fault: String?
        /// The number of times that a stub has processed the request: 0 before an effect, 2 for a
        /// duplicated delivery.
        public internal(set) var deliveries = 0
        /// The status of the stub's last response; `nil` if no stub has processed the request, the
        /// stub responded with an error, or the exchange is a message.
        public internal(set) var serverStatus: Int?
        /// The status that the client received; `nil` if it received an error or nothing.
        public internal(set) var status: Int?
        /// The text of the error that the client received; `nil` if it received a response or
        /// nothing.
        public internal(set) var error: String?
        /// The duration from the start of the run until the server received the request or the
        /// fault occurred, by the test clock.
        public internal(set) var instant = Duration.zero
        /// Whether the explored code had already returned or thrown an error.
        public internal(set) var isAfterEnd = false

        /// The number of deliveries for which the stub's status was below 400.
        var effects = 0
        /// The numbers of the last arrivals when this exchange arrived and was released.
        var arrival = 0
        var release = 0
        /// The properties of the response that determine the faults.
        var facts = Facts()

        /// The request method.
        public var method: Request.Method { request.method }
        /// The path, percent-encoded, without the query.
        public var path: String { request.path }
        /// The header fields of the request.
        public var headers: Headers { request.headers }
        /// The body of the request.
        public var body: Data { request.body }

        /// Whether the request may be delivered twice (RFC 9110, section 9.2.2).
        var isRepeatable: Bool { method.isIdempotent || headers["Idempotency-Key"] != nil }
    }

    /// The known properties of a stub's response.
    struct Facts: Sendable {
        var isJSON = false
        var byteCount = 0
        /// The ends of the events, lines or chunks in the body, in bytes.
        var boundaries: [Int] = []

        init() {}

        /// The maximum number of boundaries that are noted.
        private static let maximum = 8

        init(_ response: MockResponse) {
            byteCount = response.data.count
            let type = response.headers[.contentType] ?? ""
            isJSON = type == "application/json" || Self.isJSON(type.lowercased())
            guard !isJSON, byteCount > 0 else { return }
            let isEvents = type.lowercased().hasPrefix("text/event-stream")
            guard isEvents || type.contains("ndjson") || type.contains("jsonl") else { return }
            let separator = Data((isEvents ? "\n\n" : "\n").utf8)
            var rest = response.data[...]
            while boundaries.count < Self.maximum, let found = rest.firstRange(of: separator) {
                boundaries.append(found.upperBound - response.data.startIndex)
                rest = rest[found.upperBound...]
            }
        }

        private static func isJSON(_ type: String) -> Bool {
            type.contains("json") && !["seq", "ndjson", "jsonl"].contains { type.contains($0) }
        }

        /// Adds a part of a body that is produced in parts.
        mutating func add(_ count: Int) {
            guard count > 0 else { return }
            byteCount += count
            if boundaries.count < Self.maximum { boundaries.append(byteCount) }
        }

        /// The numbers of bytes after which a body is cut.
        var positions: [Int] {
            if !boundaries.isEmpty { return boundaries.flatMap { [$0 - 1, $0] } }
            guard byteCount > 0 else { return [] }
            return isJSON ? [byteCount / 2] : Set([0, byteCount / 2, byteCount - 1]).sorted()
        }
    }

    /// How the explored code ended.
    public enum End: Sendable, Hashable {
        /// It returned a value.
        case returned
        /// It threw an error.
        case threw
        /// It waited, although no exchange was in flight and no alarm was set.
        case hung
        /// It sent more requests than the budget allows, or many more than without faults.
        case endless
        /// It took more than one hour by the test clock.
        case overtime
        /// It ran for more than 10 seconds, or a million jobs, without a request or an alarm.
        case busy
    }

    /// The plan of the run.
    public let plan: FaultPlan
    /// How the explored code ended.
    public internal(set) var end = End.hung
    /// The exchanges in the order in which the server received them or a fault affected them.
    public internal(set) var exchanges: [Exchange] = []
    /// The duration of the run by the test clock.
    public internal(set) var elapsed = Duration.zero
    /// The kind of the error that the explored code threw.
    var errorKind: String?
    /// Whether code has run that the clock does not count.
    var seesUncounted = false
    /// Whether the code prevented the driver from continuing.
    var isStuck = false
    /// The longest wait in real time that ended with progress.
    var realWait = Duration.zero
    /// The requests whose effects the check has counted in all runs.
    let counted: CountedRequests

    /// Returns the number of effects of the requests with the given method and path.
    ///
    /// An effect is a request that a stub has processed with a status below 400, regardless of what
    /// the client received. Requests with the same `Idempotency-Key` have one effect, because a
    /// server that honours the key processes only the first one.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path or a pattern; see `RequestMatcher.path(_:)`.
    ///   - honoursKeys: Whether the server honours `Idempotency-Key`. Defaults to `true`.
    public func effects(_ method: Request.Method, _ path: String, honoursKeys: Bool = true) -> Int {
        let path = path.hasPrefix("/") ? path : "/\(path)"
        let matcher = RequestMatcher.route(method, path)
        let matching = exchanges.filter { $0.kind == .request && matcher.matches($0.request) }
        counted.note(method, path, occurs: !matching.isEmpty)
        var keys: Set<String> = []
        return matching.filter { $0.effects > 0 }.reduce(0) { count, exchange in
            guard honoursKeys, let key = exchange.headers["Idempotency-Key"] else { return count + exchange.effects }
            return keys.insert(key).inserted ? count + 1 : count
        }
    }
}

/// The requests whose effects a check has counted, and whether they have occurred in any run.
final class CountedRequests: Sendable {
    private let state = Mutex<[RequestHead: Bool]>([:])

    func note(_ method: Request.Method, _ path: String, occurs: Bool) {
        let head = RequestHead(method: method, target: path)
        state.withLock { $0[head] = occurs || $0[head] == true }
    }

    /// Returns the requests that occurred in no run and match no stub, such as one with a misspelled
    /// path.
    func unknown(_ stubs: StubTable) -> [String] {
        let missing = state.withLock { heads in heads.filter { !$0.value }.map(\.key) }
        return missing.filter { !stubs.matches(ReceivedRequest(head: $0, body: Data())) }
            .map { "\($0.method) \($0.target)" }.sorted()
    }
}
