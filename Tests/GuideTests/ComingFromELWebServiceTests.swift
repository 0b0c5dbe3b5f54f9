import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

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

    @Test("The setters of a task accept variables of type [String: Any] and [String: String]", .covers("U-317"))
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

    @Test("The properties of a request accept literals directly and variables by an initializer", .covers("U-317"))
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

    @Test("JSON text is a body, from bytes or a closure", .covers("U-317"))
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
        "With the characters of a query, a form differs from that of ELWebService in space and plus only",
        .covers("U-317"))
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
