import Foundation
import TestSupport
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// The ways in which the tests connect: in memory, and over sockets with and without TLS.
enum SocketTransport: CaseIterable, Sendable {
    case memory
    #if WEBSERVICE_CURL
    case socket, tls
    #endif

    /// Returns a service, and what responds to its requests until the end of the test.
    func make(clock: TestClock? = nil) throws -> (service: WebService, stubs: any StubResponder) {
        switch self {
        case .memory:
            let session = clock.map { MockSession(clock: $0) } ?? MockSession()
            let service = WebService(baseURLString: "https://api.test", clock: clock)
            service.session = session
            return (service, session)
        #if WEBSERVICE_CURL
        case .socket, .tls:
            let server = try MockServer(tls: self == .tls)
            Permit.atEnd { server.stop() }
            var configuration = CurlSession.Configuration()
            configuration.tls.trustedCertificatesFile = server.certificateFile?.path
            let service = WebService(baseURLString: server.baseURLString, clock: clock)
            service.session = try CurlSession(configuration: configuration)
            return (service, server)
        #endif
        }
    }
}

extension MockResponse {
    /// Sends each message back.
    static let echo = MockResponse.webSocket { socket in
        while let message = try await socket.next() { try await socket.send(message) }
    }
}

/// Returns the error of an asynchronous call; `nil` if it succeeds.
func failure(_ body: () async throws -> Void) async -> (any Error)? {
    do {
        try await body()
        return nil
    } catch {
        return error
    }
}

func code(_ error: (any Error)?) -> WebServiceError.Code? { (error as? WebServiceError)?.code }
func urlCode(_ error: (any Error)?) -> URLError.Code? { (error as? URLError)?.code }
