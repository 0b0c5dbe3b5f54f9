import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// The trailer fields of a response: the rules of header fields hold for them.
@Suite("Curl session: trailers", .permit)
struct CurlTrailerTests {
    enum Consumption: CaseIterable, Sendable { case whole, stream, download, upload }

    private static let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n0\r\n"

    /// Receives a response with these trailer lines.
    ///
    /// - Returns: The trailer fields of a stream; `nil` otherwise.
    private func receive(_ trailer: String, _ consumption: Consumption, maximum: Int = 1_100) async throws -> Headers? {
        let bytes = Data((Self.chunk + trailer + "\r\n").utf8)
        let server = try MockServer { _ in MockResponse(Data(), wire: .raw(bytes)) }
        defer { server.stop() }
        let service = WebService(server, try CurlSession { $0.maximumHeaderBytes = maximum })
        switch consumption {
        case .whole: #expect(try await service.GET("/").string().value == "ale")
        case .upload:
            let chunks = AsyncStream { continuation in
                continuation.yield(Data(count: 10))
                continuation.finish()
            }
            let task = service.POST("/").setBody(.stream(length: 10) { chunks }).string()
            #expect(try await task.value == "ale")
        case .stream:
            let response = try await service.GET("/").stream().value
            var body = Data()
            for try await piece in response.body { body += piece }
            #expect(body == Data("ale".utf8))
            return response.body.trailers
        case .download:
            let file = TemporaryFolder.forTest().url.appendingPathComponent("trailers")
            _ = try await service.GET("/").download(to: file).value
            #expect(try Data(contentsOf: file) == Data("ale".utf8))
        }
        return nil
    }

    @Test(
        "Valid trailer fields are received in order, for each way to consume a body",
        arguments: Consumption.allCases)
    func valid(_ consumption: Consumption) async throws {
        let trailers = try await receive(
            "X-Sum: 1\r\nx-sum:2\r\nEmpty:\r\nÜ: ä\r\n".replacing("Ü", with: "U"), consumption)
        guard consumption == .stream else { return }
        #expect(trailers?.map { "\($0.name)=\($0.value)" } == ["X-Sum=1", "x-sum=2", "Empty=", "U=ä"])
    }

    static let invalid = [
        "no colon\r\n", "X Sum: 1\r\n", ": 1\r\n", "X-Sum\u{0}: 1\r\n", "X-Sum: 1\u{0}2\r\n", "X-Ü: 1\r\n", "X(: 1\r\n",
        " X-Sum: 1\r\n", "X-Sum: 1\rX-Other: 2\r\n", "Content-Length: 3\r\n", "transfer-encoding: chunked\r\n",
        "Content-Encoding: gzip\r\n", "A: 1\r\nContent-Length: 3\r\n",
    ]

    @Test(
        "Invalid trailer fields are an error, for each way to consume a body",
        arguments: Consumption.allCases)
    func invalid(_ consumption: Consumption) async throws {
        for trailer in Self.invalid {
            let error = await #expect(throws: (any Error).self, "\(trailer.debugDescription)") {
                _ = try await receive(trailer, consumption)
            }
            let cause = (error as? WebServiceError)?.underlying ?? error
            #expect(
                (cause as? URLError)?.code == .badServerResponse,
                "\(trailer.debugDescription): \(String(describing: error))")
        }
    }

    @Test(
        "The trailer fields count toward the limit of the header fields",
        arguments: Consumption.allCases)
    func limit(_ consumption: Consumption) async throws {
        let line = "X: " + String(repeating: "a", count: 95) + "\r\n"
        let fitting = String(repeating: line, count: 10)
        let trailers = try await receive(fitting, consumption)
        if consumption == .stream { #expect(trailers?.count(where: { _ in true }) == 10) }
        for trailer in [fitting + line, String(repeating: "Z:\r\n", count: 100_000)] {
            let error = await #expect(throws: WebServiceError.self) { _ = try await receive(trailer, consumption) }
            #expect(error?.code == .responseTooLarge)
        }
    }

    @Test("A mock session refuses the trailer fields that a server cannot send")
    func mock() async throws {
        let session = MockSession()
        var response = MockResponse("ale")
        response.trailers["X-Sum"] = "1\r\n2"
        session.on(.GET, "/", response)
        let service = WebService("http://127.0.0.1", session: session)
        let error = await #expect(throws: WebServiceError.self) { _ = try await service.GET("/").string().value }
        #expect(error?.description.contains("X-Sum") == true)
    }
}
