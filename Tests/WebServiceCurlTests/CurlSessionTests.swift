import Foundation
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking

@Suite("Curl session")
struct CurlSessionTests {
    @Test("an answer arrives")
    func answer() async throws {
        let server = try MockServer { _ in MockResponse(statusCode: 200, data: Data("hello".utf8)) }
        defer { server.stop() }
        let service = WebService(baseURLString: server.baseURLString)
        service.session = try CurlSession()
        for _ in 0..<10 { #expect(try await service.GET("/").string().value == "hello") }
        #expect(server.connectionCount == 1)
    }
}
