import Foundation
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The arguments of a completion.
struct ScenarioOutcome: Sendable, CustomStringConvertible {
    let data: Data?
    let response: URLResponse?
    let error: (any Error)?
    let wasOnMainThread: Bool
    /// The duration from `resume()` to the completion.
    let elapsed: Duration

    var http: HTTPURLResponse? { error == nil ? response as? HTTPURLResponse : nil }
    var status: Int? { http?.statusCode }
    var urlErrorCode: URLError.Code? { (error as? URLError)?.code }

    func header(_ name: String) -> String? {
        http?.value(forHTTPHeaderField: name)
    }

    var description: String {
        if let error = error as? WebServiceError { return "the error \(error.code)" }
        if let code = urlErrorCode { return "URLError \(code.rawValue)" }
        if let error { return "an error of type \(type(of: error))" }
        guard let http else { return "no HTTPURLResponse" }
        return "status \(http.statusCode), \(data.map(Self.describe) ?? "no data")"
    }

    /// Returns the size of a body and its first 40 bytes.
    static func describe(_ body: Data) -> String {
        let start = String(decoding: body.prefix(40), as: UTF8.self).debugDescription
        return body.isEmpty ? "no bytes" : "\(body.count) bytes that begin with \(start)"
    }
}

/// An outcome that a scenario accepts.
enum ScenarioExpectation: Sendable, CustomStringConvertible {
    /// A response with this status and exactly this body.
    case response(Int, Data)
    /// A `URLError` with one of these codes.
    case failure([URLError.Code])
    /// `WebServiceError.Code.responseTooLarge`.
    case tooLarge
    /// Either of two outcomes, where the specifications leave the choice to the client.
    indirect case either(ScenarioExpectation, ScenarioExpectation)

    static func response(_ status: Int, _ text: String) -> Self { .response(status, Data(text.utf8)) }

    /// The errors that a transport may report for a malformed or incomplete response.
    static let broken = failure([
        .networkConnectionLost, .badServerResponse, .cannotParseResponse, .cannotDecodeRawData,
        .cannotDecodeContentData, .zeroByteResource, .dataLengthExceedsMaximum, .unknown,
    ])

    func allows(_ outcome: ScenarioOutcome) -> Bool {
        switch self {
        case .response(let status, let body): outcome.status == status && outcome.data == body
        case .failure(let codes): outcome.urlErrorCode.map(codes.contains) ?? false
        case .tooLarge: (outcome.error as? WebServiceError)?.code == .responseTooLarge
        case .either(let first, let second): first.allows(outcome) || second.allows(outcome)
        }
    }

    /// Returns the corresponding result for a mock, which has no connection.
    func mockResult(headers: Headers) -> any MockableDataTaskResult {
        switch self {
        case .response(let status, let body):
            var response = MockResponse(statusCode: status, data: body)
            response.headers = headers
            return response
        case .failure(let codes): return URLError(codes.first ?? .unknown)
        case .tooLarge:
            return ComputedResult { _ in throw WebServiceError(.responseTooLarge, "the response body is too large") }
        case .either(let first, _): return first.mockResult(headers: headers)
        }
    }

    var description: String {
        switch self {
        case .response(let status, let body): "status \(status), \(ScenarioOutcome.describe(body))"
        case .failure(let codes): "URLError \(codes.map { "\($0.rawValue)" }.joined(separator: ", "))"
        case .tooLarge: "the error \(WebServiceError.Code.responseTooLarge)"
        case .either(let first, let second): "\(first); or \(second)"
        }
    }
}
