import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

@Suite("Header fields of the program over real sockets", .permit)
struct ProgramHeadersOverSocketsTests {
    private func sent(_ session: any Session, _ fields: Headers = [:]) async throws -> [[String]] {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        var request = Request(.GET, url: server.baseURLString)
        request.headers = fields
        _ = try await WebService(server.baseURLString, session: session).sessionTask(request: request).data().value
        let arrived = try #require(server.receivedRequests.last)
        return [Headers.Name.userAgent, .acceptLanguage].map { arrived.headers.values(for: $0) }
    }

    @Test(
        "They are sent once, unless the request has the fields or the configuration of the session has none")
    func fields() async throws {
        let program = [Headers.Name.userAgent, .acceptLanguage].map { Headers.program.values(for: $0) }
        let plain = FoundationSession.defaultConfiguration
        plain.httpAdditionalHeaders = nil
        var sessions: [(any Session, without: any Session)] = [
            (FoundationSession(), FoundationSession(configuration: plain))
        ]
        #if WEBSERVICE_CURL
        var configuration = CurlSession.Configuration()
        (configuration.userAgent, configuration.acceptLanguage) = (nil, nil)
        sessions.append((try CurlSession(), try CurlSession(configuration: configuration)))
        configuration.acceptLanguage = "de"
        #expect(try await sent(try CurlSession(configuration: configuration)) == [[], ["de"]])
        #endif
        for (session, without) in sessions {
            let standard = try await sent(session)
            #expect(standard.first == program.first)
            // Without a language, Foundation on Linux sends its own.
            if program.last != [] || !(session is FoundationSession) { #expect(standard.last == program.last) }
            #expect(try await sent(session, ["User-Agent": "ale", "Accept-Language": "tlh"]) == [["ale"], ["tlh"]])
            #expect(try await sent(session, ["user-agent": "ale", "accept-LANGUAGE": "tlh"]) == [["ale"], ["tlh"]])
            let other = try await sent(without)
            if without is FoundationSession {
                #expect(other.first != program.first)
            } else {
                #expect(other == [[], []])
            }
        }
        let service = WebService("https://h", session: MockSession())
        #expect(service.GET("/").request.headers == [:])
        service.headers = .program
        #expect(service.GET("/").request.headers == .program)
        #expect(service.GET("https://other/").request.headers == .program)
    }
}
