import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// The transports over which a service reaches stubs.
enum StubTransport: String, CaseIterable, Sendable {
    case mockSession, foundationSession
    #if WEBSERVICE_CURL
    case curlSession
    #endif

    func make() throws -> (stubs: any StubResponder, service: WebService) {
        guard self != .mockSession else {
            let mock = MockService(baseURLString: "http://127.0.0.1:1")
            return (mock.session, mock.service)
        }
        let server = try MockServer()
        let service = WebService(server.baseURLString, session: FoundationSession.shared)
        #if WEBSERVICE_CURL
        if self == .curlSession { service.session = try CurlSession() }
        #endif
        return (server, service)
    }
}

/// Stubs, and requests to them whose results are the same over all transports.
struct StubScenario: Sendable, CustomTestStringConvertible {
    struct User: Codable, Equatable, Sendable {
        var id: Int
        var name: String
    }

    typealias Play = @Sendable (_ stubs: any StubResponder, _ service: WebService) async throws -> [String]

    let name: String
    /// The results of the requests.
    let expected: [String]
    /// The results over transports that differ, with the reason.
    var differences: [StubTransport: (expected: [String], reason: String)] = [:]
    let play: Play

    init(
        _ name: String, _ expected: [String],
        differences: [StubTransport: (expected: [String], reason: String)] = [:], _ play: @escaping Play
    ) {
        (self.name, self.expected, self.differences, self.play) = (name, expected, differences, play)
    }

    var testDescription: String { name }

    /// The same difference over all transports with connections.
    static func overSockets(_ expected: [String], _ reason: String) -> [StubTransport: (
        expected: [String], reason: String
    )] {
        var differences: [StubTransport: (expected: [String], reason: String)] = [:]
        for transport in StubTransport.allCases where transport != .mockSession {
            differences[transport] = (expected, reason)
        }
        return differences
    }
}

extension SessionTask {
    /// Returns the status and the text of the response, or the error.
    func outcomeText() async -> String {
        await outcome { "\($0.status) \(String(decoding: $0.data, as: UTF8.self))" }
    }

    /// Returns a description of the response, or the error.
    func outcome(_ describe: (Response) -> String) async -> String {
        do { return describe(try await data().validateNothing().response) } catch { return stubErrorText(error) }
    }
}

/// Returns the code of an error. Errors of an incomplete response have one name.
func stubErrorText(_ error: any Error) -> String {
    if let error = error as? WebServiceError { return "\(error.code)" }
    guard let code = (error as? URLError)?.code else { return "\(type(of: error))" }
    switch code {
    case .timedOut: return "timedOut"
    case .cancelled: return "cancelled"
    case .networkConnectionLost, .badServerResponse, .zeroByteResource, .cannotParseResponse, .unknown: return "lost"
    default: return "URLError \(code.rawValue)"
    }
}
