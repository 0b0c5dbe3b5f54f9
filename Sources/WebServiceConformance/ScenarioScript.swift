import Foundation
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request that arrived at a server or at a mock.
struct ScenarioRequest: Sendable {
    /// The number of the request, counted from 1.
    let number: Int
    let method: String
    let target: String
    let headers: Headers
    let body: Data

    init(_ request: ReceivedRequest, number: Int) {
        self.number = number
        method = request.method.rawValue
        target = request.target
        headers = request.headers
        body = request.body
    }

    init(_ encodable: any URLRequestEncodable, number: Int) {
        let request = encodable.urlRequestValue
        let components = request.url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) }
        self.number = number
        method = request.httpMethod ?? "GET"
        target = (components?.percentEncodedPath ?? "") + (components?.percentEncodedQuery.map { "?\($0)" } ?? "")
        headers = Headers((request.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        body = request.httpBody ?? Data()
    }
}

/// The response to a request: bytes on a connection, or the result of a mock.
struct ScenarioReply: Sendable {
    let response: MockResponse
    /// The result of a mock; `nil` if the mock returns the response.
    var mockResult: (any MockableDataTaskResult)?

    init(_ response: MockResponse, mock: (any MockableDataTaskResult)? = nil) {
        self.response = response
        mockResult = mock
    }

    init(_ status: Int, _ text: String = "") {
        self.init(MockResponse(statusCode: status, data: Data(text.utf8)))
    }

    /// Returns a reply that does not complete: a server sends at most a part of it, and a mock
    /// sends nothing.
    static func held(_ wire: MockResponse.Wire = .noResponse) -> ScenarioReply {
        var response = MockResponse(statusCode: 200, data: Data(count: 1000))
        var silence = response
        response.wire = wire
        silence.wire = .noResponse
        return ScenarioReply(response, mock: silence)
    }
}

/// A script that responds to requests and records them, for a server or for a mock.
final class ScenarioScript: Sendable {
    typealias Responder = @Sendable (ScenarioRequest) -> ScenarioReply

    private struct State {
        var responder: Responder = { _ in ScenarioReply(200) }
        var requests: [ScenarioRequest] = []
    }

    private let state = Mutex(State())
    let arrivals = Tally()

    var requests: [ScenarioRequest] { state.withLock { $0.requests } }

    func set(_ responder: @escaping Responder) {
        state.withLock { $0.responder = responder }
    }

    /// Returns the response of a server.
    func response(to request: ReceivedRequest) -> MockResponse {
        reply { ScenarioRequest(request, number: $0) }.response
    }

    /// Returns the result of a mock.
    func response(to request: any URLRequestEncodable) -> any MockableDataTaskResult {
        let reply = reply { ScenarioRequest(request, number: $0) }
        return reply.mockResult ?? reply.response
    }

    private func reply(_ makeRequest: (Int) -> ScenarioRequest) -> ScenarioReply {
        let (request, responder) = state.withLock { state in
            let request = makeRequest(state.requests.count + 1)
            state.requests.append(request)
            return (request, state.responder)
        }
        let reply = responder(request)
        arrivals.add()
        return reply
    }
}
