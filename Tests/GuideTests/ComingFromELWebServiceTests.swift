import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

// Every snippet of the part ELWebService of Documentation/Migrating-from-earlier-libraries.md, with its expected
// behavior.
// `DocumentationTests` verifies that none is missing.

final class RequestLogger: ServicePassthroughDelegate {
    func requestSent(request: URLRequest) {
        print("sent \(request.url?.path ?? "")")
    }

    func responseReceived(
        response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?
    ) {
        if let response = response as? HTTPURLResponse {
            print("received \(response.statusCode)")
        }
        if let error { print("failed: \(error)") }
    }

    func serviceResultFailure(
        response: URLResponse?, data: Data?, request: URLRequest?, error: any Error
    ) {}
    func updateUIBegin(response: URLResponse?) {}
    func updateUIEnd(response: URLResponse?) {}
    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?,
        error: (any Error)?
    ) {}
}

private let loggedLines = Collected<String>()

extension RequestLogger {
    private func print(_ line: String) { loggedLines.add(line) }
}

/// Code that users of ELWebService have, with variables in place of literals.
@Suite("Coming from ELWebService", .permit)
struct ComingFromELWebServiceTests {
    private let session = MockSession()

    private func sent(_ method: Request.Method = .POST, _ change: (SessionTask) -> Void) async throws -> URLRequest {
        session.addStub(MockResponse(statusCode: 200))
        let service = WebService(baseURLString: "https://h/")
        service.session = session
        let task = service.sessionTask(request: service.request(method, path: "/x"))
        change(task)
        _ = try await task.data().value
        return try #require(session.recordedRequests.last)
    }

    private func text(_ request: URLRequest) -> String? { request.httpBody.map { String(decoding: $0, as: UTF8.self) } }

    @Test("The setters of a task accept variables of type [String: Any] and [String: String]")
    func setters() async throws {
        let values: [String: Any] = ["b": 2, "a": "x", "c": true]
        let strings: [String: String] = ["b": "2", "a": "x"]
        #expect(text(try await sent { $0.setParameters(values) }) == "a=x&b=2&c=true")
        #expect(text(try await sent { $0.setParameters(strings) }) == "a=x&b=2")
        #expect(text(try await sent { $0.setParameters(values, encoding: .json) }) == #"{"a":"x","b":2,"c":true}"#)
        #expect(text(try await sent { $0.setParameters(strings, encoding: .json) }) == #"{"a":"x","b":"2"}"#)
        #expect(text(try await sent { $0.setFormParameters(values) }) == "a=x&b=2&c=true")
        #expect(text(try await sent { $0.setFormParameters(strings) }) == "a=x&b=2")
        #expect(try await sent(.GET) { $0.setParameters(values) }.url?.query == "a=x&b=2&c=true")
        #expect(try await sent(.GET) { $0.setQueryParameters(values) }.url?.query == "a=x&b=2&c=true")
        #expect(try await sent(.GET) { $0.setQueryParameters(strings) }.url?.query == "a=x&b=2")
        let encoded = try await sent(.GET) {
            $0.setQueryParameters(strings) { url, parameters in url?.appendingPathComponent("\(parameters.count)") }
        }
        #expect(encoded.url?.path == "/x/2")
        #expect(try await sent { $0.setHeaders(strings) }.allHTTPHeaderFields == ["a": "x", "b": "2"])
        #expect(try await sent { $0.setHeaders(["b": "2", "b": "3"]) }.allHTTPHeaderFields == ["b": "2, 3"])
    }

    @Test("The properties of a request accept literals directly and variables by an initializer")
    func properties() throws {
        let values: [String: Any] = ["b": 2, "a": "x"]
        let strings: [String: String] = ["b": "2", "a": "x"]
        var request = Request(.POST, url: "https://h/")
        for parameters in [Parameters(values), Parameters(strings)] {
            request.parameters = nil
            request.queryParameters = parameters
            request.formParameters = parameters
            #expect(try request.urlRequest().url?.query == "a=x&b=2")
            #expect(text(try request.urlRequest()) == "a=x&b=2")
            request.parameters = parameters
            #expect(text(try request.urlRequest()) == "a=x&b=2")
        }
        request.headers = Headers(strings)
        request.headers["custom-header-name"] = "foo"
        var names: [String] = []
        for field in request.headers { names.append("\(field.name)=\(field.value)") }
        #expect(names == ["a=x", "b=2", "custom-header-name=foo"])
    }

    @Test("JSON text is a body, from bytes or a closure")
    func json() async throws {
        let data = Data(#"{"name":"Ale"}"#.utf8)
        let requests = [
            try await sent { $0.setJSONData(data) },
            try await sent { $0.setBody(contentType: ContentType.json) { data } },
            try await sent { $0.setJSON(["name": "Ale"]) },
        ]
        for request in requests {
            #expect(request.httpBody == data)
            #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/json")
        }
    }

    @Test(
        "With the characters of a query, a form differs from that of ELWebService in space and plus only")
    func formCharacters() async throws {
        for byte in UInt8(0x20)..<0x7F {
            let value = String(UnicodeScalar(byte))
            // What ELWebService sends.
            var components = URLComponents()
            components.queryItems = [URLQueryItem(name: "n", value: value)]
            let earlier = try #require(components.url?.query)
            let now = text(
                try await sent {
                    $0.setFormParameters(["n": value])
                        .configure { $0.formParametersAllowedCharacters = .urlQueryAllowed }
                })
            switch value {
            case " ": #expect([earlier, now] == ["n=%20", "n=+"])
            case "+": #expect([earlier, now] == ["n=+", "n=%2B"])
            default: #expect(now == earlier)
            }
        }
    }
}

/// The examples of the page.
@Suite("Migrating from ELWebService", .permit)
struct MigratingFromELWebServiceTests {
    private let mock = MockService()
    private var service: WebService { mock.service }

    @Test("The handlers of a GET receive its JSON or its error")
    func handlers() async {
        mock.on(.GET, "/brewers", .json([["name": "Long Trail"]]))
        let printed = Collected<String>()
        @Sendable func print(_ value: Any) { printed.add("\(value)") }

        service.GET("/brewers")
            .responseJSON { json, response in
                guard let brewers = json as? [[String: String]] else {
                    return .failure(BreweryError.unexpectedResponse)
                }
                return .value(brewers.compactMap { $0["name"] })
            }
            .updateUI { value in
                print(value as? [String] ?? [])
            }
            .updateErrorUI { error in
                print("no brewers: \(error)")
            }
            .resume()

        #expect(await printed.wait() == [#"["Long Trail"]"#])

        service.GET("/brewers").decode([Brewer].self)
            .updateUI { brewers in print(brewers.map(\.name)) }
            .updateErrorUI { error in print("no brewers: \(error)") }
            .resume()

        #expect(await printed.wait(for: 2).last == #"["Long Trail"]"#)
    }

    @Test("Variables are converted by initializers, and header fields are a sequence of fields")
    func variables() async throws {
        mock.on(.path("/brewers") && .query("state", "new york") && .header("X-Trace", "7"), .text("ok"))
        let (service, printed) = (self.service, Collected<String>())
        func print(_ line: String) { printed.add(line) }

        let values: [String: Any] = ["state": "new york", "page": 2]
        let fields: [String: String] = ["X-Trace": "7"]
        var request = service.request(.GET, path: "/brewers")
        request.queryParameters = Parameters(values)
        request.headers = Headers(fields)
        for field in request.headers { print("\(field.name): \(field.value)") }
        let task = service.sessionTask(request: request)

        #expect(try await task.string().value == "ok")
        #expect(printed.values == ["X-Trace: 7"])
    }

    @Test("A stub of a mock session responds to a request")
    func mocking() async throws {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200, json: [["name": "Long Trail"]]))
        let service = WebService(baseURLString: "https://api.example.com/")
        service.session = session
        let brewers = try await service.GET("/brewers").decode([Brewer].self).value
        #expect(brewers == [Brewer(name: "Long Trail")])
    }

    @Test("A delegate logs a request and its response")
    func logging() async throws {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200))

        let logger = RequestLogger()  // retain it: the service holds it weakly
        let service = WebService(baseURLString: "https://api.example.com/", passthroughDelegate: logger)

        service.session = session
        _ = try await service.GET("/brewers").data().value
        #expect(await loggedLines.wait(for: 2) == ["sent /brewers", "received 200"])
        withExtendedLifetime(logger) {}
    }
}
