import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The descriptions of `URLError`s over real connections.
@Suite("Descriptions of transport errors", .permit)
struct TransportErrorTextTests {
    @Test(
        "A refused connection is described by its code, a remedy, the method and the URL",
        arguments: RealSession.allCases)
    func refused(session: RealSession) async throws {
        let server = try MockServer { _ in MockResponse(statusCode: 200) }
        let (service, base) = (try session.service(server), server.baseURLString)
        server.stop()
        let task = service.POST("/orders;v=canary").setQueryParameters(["token": "canary"]).data()
        do {
            _ = try await task.value
            Issue.record("The request must fail.")
        } catch let error as URLError {
            let text = "\(error)"
            #expect(error.code == .cannotConnectToHost)
            #expect(text.hasPrefix("cannotConnectToHost (-1004): "))
            #expect(
                text.hasSuffix(
                    "; check that the server is running and that the host and the port are correct "
                        + "(POST \(base)/orders)"))
            #expect(!text.contains("canary"))
        }
    }

    @Test("The error of a streamed body is described like that of a request", arguments: RealSession.streaming)
    func stream(session: RealSession) async throws {
        let server = try MockServer.forTest { _ in
            MockResponse(statusCode: 200) { body in
                try body.write(Data("line\n".utf8))
                throw URLError(.unknown)
            }
        }
        let service = try session.service(server)
        let error = await #expect(throws: URLError.self) {
            for try await _ in service.GET("/log").lines() {}
        }
        let text = error.map { "\($0)" } ?? ""
        #expect(text.hasPrefix("networkConnectionLost (-1005): "))
        #expect(text.hasSuffix("; send the request again if that is safe (GET \(server.baseURLString)/log)"))
    }
}
