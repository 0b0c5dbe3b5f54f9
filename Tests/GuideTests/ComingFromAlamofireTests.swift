import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

// Every snippet of Documentation/Migrating-from-Alamofire.md, with its expected behavior.
// `DocumentationTests` verifies that none is missing.

@Suite("Coming from Alamofire", .permit)
struct ComingFromAlamofireTests {
    private struct Order: Encodable, Sendable {
        var beer = "ale"
    }

    private struct Receipt: Decodable, Sendable {
        var number: Int
    }

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

    @Test("Handlers receive a value or an error on the main actor")
    func handlers() async {
        mock.on(.path("/orders") && .json(["beer": "ale"]), [.json(["number": 7]), .status(409)])
        let (order, printed) = (Order(), Collected<String>())
        @Sendable func print(_ value: Any) { printed.add("\(value)") }
        for count in 1...2 {
            service.POST("/orders").setJSON(order).decode(Receipt.self)
                .updateUI { receipt in print(receipt.number) }
                .updateErrorUI { error in print("the order failed: \(error)") }
                .resume()
            await printed.wait(for: count)
        }
        let lines = printed.values
        #expect(lines[0] == "7")
        #expect(lines[1].hasPrefix("the order failed: unacceptableStatus"))
    }

    @Test("A rejected token is refreshed, and the request is sent again")
    func authentication() async throws {
        let tokens = Tokens()
        mock.on(.GET, "/me", .status(401))
        mock.on(.path("/me") && .header("Authorization", "Bearer new"), .text("ann"))

        let authentication = Authentication(
            TokenSource({ .bearer(tokens.current) }) { rejected in .bearer(try await tokens.renew()) }
        )
        service.interceptors = [.retry(), authentication]

        #expect(try await service.GET("/me").string().value == "ann")
        #expect(mock.receivedRequests.map { $0.headers["Authorization"] } == ["Bearer old", "Bearer new"])
    }

    @Test("A multipart body has a field and a file, and reports its progress")
    func multipart() async throws {
        let menu = try TemporaryFolder.forTest().file("menu.pdf", Data("soup".utf8))
        mock.on(.POST, "/documents", 201)

        var form = MultipartFormData()
        form.append("Long Trail", name: "name")
        form.append(file: menu, name: "menu", contentType: "application/pdf")
        _ = try await service.POST("/documents").setMultipart(form)
            .onProgress { print($0.fractionSent ?? 0) }.empty().value

        let sent = try #require(mock.receivedRequests.first)
        let body = String(decoding: sent.body, as: UTF8.self)
        #expect(sent.headers[.contentType]?.hasPrefix("multipart/form-data; boundary=") == true)
        #expect(body.contains("name=\"name\"\r\n\r\nLong Trail\r\n"))
        #expect(body.contains("filename=\"menu.pdf\"\r\nContent-Type: application/pdf\r\n\r\nsoup\r\n"))
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

    @Test("A mock service replaces a URL protocol")
    func tests() async throws {
        let mock = MockService()
        mock.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
        let client = BreweryClient(webService: mock.service)
        let brewers = try await client.brewers(inState: "vermont").value
        #expect(brewers == [Brewer(name: "Long Trail")])
        try mock.verify()
    }

    @Test("The parameter strategy for Alamofire's format adds brackets to arrays and sends Booleans as numbers")
    func parameterStrategy() throws {
        var request = service.request(.GET, path: "/brewers")
        request.queryParameters = ["tag": ["ale", "lager"], "open": true]
        #expect(try request.urlRequest().url?.query == "tag=ale&tag=lager&open=true")
        request.parameterStrategy = ParameterStrategy(arrays: .brackets, booleans: .numeric)
        #expect(try request.urlRequest().url?.query == "tag%5B%5D=ale&tag%5B%5D=lager&open=1")
    }
}
