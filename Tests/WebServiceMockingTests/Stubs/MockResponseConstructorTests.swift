import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@Suite(.permit) struct MockResponseConstructorTests {
    struct Brewer: Codable, Sendable { var name: String, founded: Date? }

    private func text(_ response: MockResponse) -> String { String(decoding: response.data, as: UTF8.self) }

    @Test("JSON is encoded from values and from literals of any shape, with sorted names")
    func json() throws {
        let value = MockResponse.json(Brewer(name: "Long/Trail", founded: nil), status: 201)
        #expect(value.statusCode == 201)
        #expect(value.headers[.contentType] == "application/json")
        #expect(text(value) == #"{"name":"Long/Trail"}"#)
        #expect(text(.json(["b": 1, "a": 2])) == #"{"a":2,"b":1}"#)
        #expect(
            text(.json(["b": [1, "two", nil, true, 2.5], "a": ["c": [:]]]))
                == #"{"a":{"c":{}},"b":[1,"two",null,true,2.5]}"#)
        #expect(text(.json([Brewer]())) == "[]")
        #expect(text(.json(.string("ale"))) == #""ale""#)
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .secondsSince1970
        let dated = MockResponse.json(Brewer(name: "a", founded: Date(timeIntervalSince1970: 7)), encoder: encoder)
        #expect(text(dated).contains(#""founded":7"#))
    }

    @Test("JSON that cannot be encoded is an error of the request, and a 500 of a server")
    func notEncodable() async throws {
        let session = MockSession()
        session.on(.GET, "/", .json([Double.nan]))
        let error = await session.response(to: try get("http://a.test/")).error as? WebServiceError
        #expect(error?.code == .encoding)
        #expect(error?.underlying is EncodingError)
        let server = try MockServer()
        server.on(.GET, "/", .json([Double.nan]))
        #expect(await plainSession.response(to: try get(server.baseURLString)).status == 500)
    }

    @Test("Text, a status, a file and a changed header field have their media type and body")
    func others() async throws {
        #expect(text(.text("päle")) == "päle")
        #expect(MockResponse.text("", status: 404).statusCode == 404)
        #expect(MockResponse.text("").headers[.contentType] == "text/plain; charset=utf-8")
        #expect(MockResponse.status(204).data.isEmpty)
        #expect(MockResponse.status(204).headers.isEmpty)
        #expect(MockResponse.status(200).header(.eTag, "\"1\"").header("etag", "\"2\"").headers[.eTag] == "\"2\"")
        let file = TemporaryFolder.forTest().url.appendingPathComponent("response.PNG")
        try Data([0x89]).write(to: file)
        let image = MockResponse.file(file)
        #expect(image.data == Data([0x89]))
        #expect(image.headers[.contentType] == "image/png")
        #expect(MockResponse.file(file, contentType: "a/b", status: 206).headers[.contentType] == "a/b")
        let session = MockSession()
        session.on(.GET, "/", .file(file.appendingPathExtension("missing")))
        #expect(await session.response(to: try get("http://a.test/")).error != nil)
    }

    @Test("Problem details have the members of RFC 9457")
    func problem() {
        let problem = MockResponse.problem(
            404, title: "No such brewer", detail: "7 is closed", type: "https://a.test/closed",
            instance: "/brewers/7", extensions: ["since": 2020, "status": 1])
        #expect(problem.statusCode == 404)
        #expect(problem.headers[.contentType] == "application/problem+json")
        #expect(
            text(problem)
                == #"{"detail":"7 is closed","instance":"/brewers/7","since":2020,"status":404,"#
                + #""title":"No such brewer","type":"https://a.test/closed"}"#)
        #expect(text(.problem(500, title: "Closed")) == #"{"status":500,"title":"Closed"}"#)
    }
}
