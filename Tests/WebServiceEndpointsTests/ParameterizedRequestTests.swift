import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("Parameterized requests", .permit)
struct ParameterizedRequestTests {
    private struct Search: ParameterizedRequest {
        typealias Output = Data
        var method: Request.Method = .GET
        var parameters: Parameters = ["q": "a b", "page": 2]
        var multipart: MultipartFormData?
        var parameterEncoding = Request.ParameterEncoding.percent
        var path: String { "/{kind}/search" }
        var pathParameters: Parameters { ["kind": "a/b"] }
        var headers: Headers { ["X-Part": "1"] }

        func configure(_ request: inout Request) {
            request.options.timeout = .seconds(7)
            request.options.errorMapper = .closure { _ in TestError() }
        }
    }

    private struct Ping: ParameterizedRequest {
        typealias Output = Void
        var path: String { "/ping" }
    }

    private let service = WebService.make(HandSession())

    @Test("The method determines the placement of parameters unless the request specifies it")
    func placement() throws {
        for method in [Request.Method.GET, .HEAD, .DELETE] {
            let sent = try Search(method: method).request(for: service).urlRequest()
            #expect(
                sent.url?.absoluteString.hasSuffix("/a%2Fb/search?q=a%20b&page=2") == true,
                "\(method)")
            #expect(
                sent.httpBody == nil,
                "\(method)")
        }
        for method in [Request.Method.POST, .PUT, .PATCH] {
            let form = try Search(method: method).request(for: service).urlRequest()
            #expect(form.url?.query == nil, "\(method)")
            #expect(form.httpBody == Data("q=a+b&page=2".utf8), "\(method)")
            let sent = try Search(method: method, parameterEncoding: .json).request(for: service).urlRequest()
            #expect(sent.url?.query == nil, "\(method)")
            #expect(sent.httpBody == Data(#"{"page":2,"q":"a b"}"#.utf8), "\(method)")
            #expect(sent.value(forHTTPHeaderField: "Content-Type") == "application/json")
            #expect(sent.value(forHTTPHeaderField: "X-Part") == "1")
        }
        let query = try Search(method: .POST, parameterEncoding: .query).request(for: service).urlRequest()
        #expect(query.url?.query == "q=a%20b&page=2")
        #expect(query.httpBody?.isEmpty != false)
    }

    @Test("A form is the body, with parameters in the query, and invalid parameters are an encoding error")
    func otherParameters() throws {
        var form = MultipartFormData()
        form.append("ale", name: "style")
        let parts = try Search(method: .POST, multipart: form).request(for: service)
        #expect(parts.multipart != nil)
        #expect(try parts.urlRequest().url?.query == "q=a%20b&page=2")
        let ping = try Ping().request(for: service).urlRequest()
        #expect(ping.httpMethod == "GET")
        #expect(ping.url?.query == nil)
        #expect(ping.httpBody == nil)
        let error = #expect(throws: WebServiceError.self) {
            try Search(method: .POST, parameters: ["x": Double.nan], parameterEncoding: .json)
                .request(for: service).urlRequest()
        }
        #expect(error?.code == .encoding)
    }

    private struct Create: ParameterizedRequest {
        struct Issue: Encodable {
            var title: String
            var dueDate: Int
        }
        typealias Output = Data
        var issue: Issue? = Issue(title: "ale", dueDate: 7)
        var parameters: Parameters = [:]
        var multipart: MultipartFormData?
        var isSnakeCase = false
        var method: Request.Method { .POST }
        var path: String { "/issues" }
        var body: some Encodable { issue }
        var encoder: any BodyEncoder {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            if isSnakeCase { encoder.keyEncodingStrategy = .convertToSnakeCase }
            return encoder
        }
    }

    @Test("An Encodable body is sent as JSON, and parameters in addition to it are in the query")
    func body() throws {
        let sent = try Create().request(for: service).urlRequest()
        #expect(sent.httpBody == Data(#"{"dueDate":7,"title":"ale"}"#.utf8))
        #expect(sent.url?.query == nil)
        #expect(sent.value(forHTTPHeaderField: "Content-Type") == "application/json")
        let both = try Create(parameters: ["notify": true], isSnakeCase: true).request(for: service)
            .urlRequest()
        #expect(both.httpBody == Data(#"{"due_date":7,"title":"ale"}"#.utf8))
        #expect(both.url?.query == "notify=true")
        let none = try Create(issue: nil, parameters: ["a": 1]).request(for: service).urlRequest()
        #expect(none.httpBody == Data("a=1".utf8))
        let error = #expect(throws: WebServiceError.self) {
            try Create(multipart: MultipartFormData()).request(for: service)
        }
        #expect(error?.code == .encoding)
    }

    @Test("Changes of configure apply to the request")
    func configuration() async throws {
        let request = try Search().request(for: service)
        #expect(request.options.timeout == .seconds(7))
        service.session = HandSession(text: "", status: 500)
        await #expect(throws: TestError()) { try await service.perform(Search()).value }
    }
}
