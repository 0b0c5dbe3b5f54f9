#if WEBSERVICE_CURL
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

// Every snippet of Documentation/Migrating-from-AsyncHTTPClient.md, with its expected behavior.
// `DocumentationTests` verifies that none is missing.

@Suite("Coming from AsyncHTTPClient", .permit)
struct ComingFromAsyncHTTPClientTests {
    private struct Order: Encodable, Sendable {
        var beer = "ale"
    }

    private struct Receipt: Decodable, Sendable {
        var number: Int
    }

    private let mock = MockService()
    private var service: WebService { mock.service }

    @Test("A request has a JSON body, and its response is decoded")
    func request() async throws {
        mock.on(.url("https://api.example.com/orders") && .json(["beer": "ale"]), .json(["number": 7]))
        let (session, order) = (mock.session, Order())
        let service = WebService(baseURLString: "https://api.example.com")
        service.session = session  // one CurlSession for the whole program
        service.options.deadline = .seconds(30)
        let receipt = try await service.POST("/orders").setJSON(order).decode(Receipt.self).value
        #expect(receipt.number == 7)
    }

    @Test("A session limits its connections and uses HTTP/1.1, and a service ends before it")
    func session() async throws {
        let server = try MockServer { _ in .text("ale") }
        defer { server.stop() }
        var configuration = CurlSession.Configuration()
        configuration.maximumConnectionsPerHost = 4
        configuration.httpVersion = .http1
        configuration.connectTimeout = .seconds(5)
        let session = try CurlSession(configuration: configuration)

        let service = WebService(baseURLString: server.baseURLString)
        service.session = session
        let task = service.GET("/").string().resume()
        await service.finish(within: .seconds(20))  // lets the requests in flight end
        session.close()
        #expect(try await task.value == "ale")
        await #expect(throws: WebServiceError.self) { try await service.GET("/").string().value }
    }

    @Test("A body is read in pieces")
    func stream() async throws {
        var size = 0
        mock.on(.GET, "/archive", MockResponse(statusCode: 200, data: Data(count: 100_000)))
        let stream = try await service.GET("/archive").stream().value
        for try await piece in stream.body { size += piece.count }
        #expect(size == 100_000)
    }

    @Test("Handlers receive a value or an error")
    func handlers() async {
        let printed = Collected<String>()
        @Sendable func print(_ text: String) { printed.add(text) }
        mock.on(.GET, "/orders", [.text("two"), .status(409)])
        for count in 1...2 {
            service.GET("/orders").string()
                .onSuccess { text in print(text) }
                .onError { error in print("no orders: \(error)") }
                .resume()
            await printed.wait(for: count)
        }
        #expect(printed.values.first == "two")
        #expect(printed.values.last?.hasPrefix("no orders: unacceptableStatus") == true)
    }
}
#endif
