import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

// Every snippet of Documentation/Migrating-from-URLSession.md, with its expected behavior.
// `DocumentationTests` verifies that none is missing.

@Suite("Coming from URLSession", .permit)
struct ComingFromURLSessionTests {
    private let mock = MockService()
    private var service: WebService { mock.service }

    @Test("A request has query parameters, and its response is decoded")
    func request() async throws {
        mock.on(.path("/orgs/swiftlang/repos") && .query("per_page", "5"), .json([["name": "swift"]]))
        let session = mock.session
        func WebService(baseURLString: String) -> WebServiceCore.WebService {
            let service = WebServiceCore.WebService(baseURLString: baseURLString)
            service.session = session
            return service
        }

        struct Repository: Decodable, Sendable { var name: String }
        let service = WebService(baseURLString: "https://api.github.com")
        let task = service.GET("/orgs/swiftlang/repos").setQueryParameters(["per_page": 5])
        let repositories = try await task.decode([Repository].self).value

        #expect(repositories.map(\.name) == ["swift"])
        #expect(session.recordedRequests.first?.url?.host == "api.github.com")
    }

    @Test("A URLRequest is sent with a URLSessionConfiguration")
    func existing() async throws {
        let server = try MockServer.forTest()
        server.on(.path("/brewers") && .header("X-Client", "brewery") && .header("X-Channel", "beta"), .text("ale"))
        let service = WebService(baseURLString: server.baseURLString)
        let configuration = FoundationSession.defaultConfiguration
        configuration.httpAdditionalHeaders = ["X-Channel": "beta"]
        var changed = URLRequest(url: server.baseURL.appendingPathComponent("brewers"))
        changed.setValue("brewery", forHTTPHeaderField: "X-Client")
        let urlRequest = changed

        service.session = FoundationSession(configuration: configuration)
        let data = try await service.sessionTask(request: urlRequest).data().value

        #expect(data == Data("ale".utf8))
    }

    @Test("A file is uploaded and reports its progress")
    func upload() async throws {
        let video = try TemporaryFolder.forTest().file("video.mp4", Data("frames".utf8))
        mock.on(.PUT, "/videos/7", 201)

        _ = try await service.PUT("/videos/7").setBody(file: video, contentType: "video/mp4")
            .onProgress { print($0.fractionSent ?? 0) }.empty().value

        #expect(mock.receivedRequests.map(\.body) == [Data("frames".utf8)])
        #expect(mock.receivedRequests.map { $0.headers[.contentType] } == ["video/mp4"])
    }

    @Test("A download continues after an interruption without stored resume data")
    func download() async throws {
        let destination = TemporaryFolder.forTest().url.appendingPathComponent("brew.iso")
        let iso = Data(repeating: 7, count: 4_000)
        mock.on(.GET, "/brew.iso") { request in
            var response = MockResponse(file: iso, eTag: "\"1\"", for: request)
            if request.headers["Range"] == nil { response.wire = .cut(after: 2_000) }
            return response
        }
        await #expect(throws: URLError.self) {
            try await service.GET("/brew.iso").download(to: destination).value
        }

        let file = try await service.GET("/brew.iso").download(to: destination).value
        print("\(file.byteCount) bytes, \(file.resumedFrom) of them from an earlier download")

        #expect(file.resumedFrom > 0)
        #expect(try Data(contentsOf: destination) == iso)
    }

    @Test("The events of a stream are parsed")
    func events() async throws {
        mock.on(.GET, "/news", .events([ServerSentEvent(data: "open"), ServerSentEvent(data: "two\nlines")]))
        var printed: [String] = []
        func print(_ text: String) { printed.append(text) }

        for try await event in service.GET("/news").events() { print(event.data) }

        #expect(printed == ["open", "two\nlines"])
    }

    #if WEBSERVICE_CURL
    @Test("A server must present a pinned key")
    func pinning() async throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl") else { return }
        let server = try MockServer(tls: true)
        defer { server.stop() }
        server.on(.GET, "/", .text("ale"))
        let service = WebService(baseURLString: server.baseURLString)
        let (currentPin, nextPin) = ("sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "sha256//BBBB")

        var configuration = CurlSession.Configuration()
        configuration.tls.pinnedPublicKeys = [currentPin, nextPin]
        service.session = try CurlSession(configuration: configuration)

        // The certificate of the server is not one of the system's.
        configuration.tls.trustedCertificatesFile = server.certificateFile?.path
        service.session = try CurlSession(configuration: configuration)
        let error = await #expect(throws: URLError.self) { try await service.GET("/").data().value }
        let presented = try #require(error?.pinnedKeyMismatch?.presented)
        configuration.tls.pinnedPublicKeys = [presented, nextPin]
        service.session = try CurlSession(configuration: configuration)
        #expect(try await service.GET("/").string().value == "ale")
    }
    #endif

    @Test("A timeout of a mock takes no real time")
    func timeouts() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.on(.GET, "/brewers", .text("late").after(.seconds(30)))
        let task = mock.service.GET("/brewers").setTimeout(.seconds(5)).data().resume()
        await clock.advance(by: .seconds(5))
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .timedOut)
    }
}
