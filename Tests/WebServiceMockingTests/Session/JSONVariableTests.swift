import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@Suite("JSON literals of mocks with variables", .permit) struct JSONVariableTests {
    private struct Brewer: Codable {
        var name: String
    }

    private final class Opaque: Sendable {}

    private let id = 7
    private let name = "ale"
    private let price = 3.5
    private let isOpen = true
    private let tags = ["dark", "strong"]
    private let missing: String? = nil
    private let present: Int? = 2

    private func body(_ response: MockResponse) -> String { String(decoding: response.data, as: UTF8.self) }

    @Test("An object has the values of variables of any type")
    func objects() {
        #expect(body(.json(["id": id, "name": name])) == #"{"id":7,"name":"ale"}"#)
        let mixed = MockResponse.json(
            ["price": price, "isOpen": isOpen, "tags": tags, "missing": missing, "present": present, "none": nil],
            status: 201)
        #expect(
            body(mixed)
                == #"{"isOpen":true,"missing":null,"none":null,"present":2,"price":3.5,"tags":["dark","strong"]}"#)
        #expect(mixed.statusCode == 201)
        #expect(mixed.headers[.contentType] == "application/json")
        #expect(
            body(.json(["id": Int64.max, "brewer": Brewer(name: name)]))
                == #"{"brewer":{"name":"ale"},"id":9223372036854775807}"#)
        #expect(body(.json(["id": id, "id": "last"])) == #"{"id":"last"}"#)
    }

    @Test("Objects and arrays are nested, and a list of objects has variables")
    func nested() {
        let nested = MockResponse.json([
            "brewer": ["name": name, "id": id], "list": [1, "x", id], "optional": ["a": missing],
        ])
        #expect(
            body(nested) == #"{"brewer":{"id":7,"name":"ale"},"list":[1,"x",7],"optional":{"a":null}}"#)
        #expect(
            body(.json([["id": id, "name": name], ["id": 8, "name": nil]]))
                == #"[{"id":7,"name":"ale"},{"id":8,"name":null}]"#)
    }

    @Test("Literals without variables, JSON values and encodable values keep their meaning")
    func literals() {
        #expect(body(.json(["id": 7, "tags": ["a", 1, nil]])) == #"{"id":7,"tags":["a",1,null]}"#)
        #expect(body(.json(["max": .unsigned(.max)])) == #"{"max":18446744073709551615}"#)
        #expect(body(.json([Brewer(name: "ale")])) == #"[{"name":"ale"}]"#)
        #expect(body(.json([])) == "[]")
        #expect(body(.json([:])) == "{}")
        #expect(body(.json(nil)) == "null")
    }

    @Test("A value that is not encodable is an error of the request that names its type")
    func invalid() async throws {
        let session = MockSession()
        session.on(.GET, "/", .json(["id": id, "value": Opaque()]))
        let error = await session.response(to: try get("http://a.test/")).error as? WebServiceError
        #expect(error?.code == .encoding)
        #expect((error?.underlying as? WebServiceError)?.message.contains("Opaque") == true)
    }

    @Test("A matcher compares members with variables")
    func matcher() async throws {
        let session = MockSession()
        session.on(.json(["id": id, "name": name]), 201)
        session.on(.json(["id": id, "value": Opaque()]), 500)
        var request = Request(.POST, url: "http://a.test/")
        request.body = Data(#"{"id":7,"name":"ale","more":1}"#.utf8)
        #expect(await session.response(to: request).status == 201)
        let received = try #require(session.receivedRequests.first)
        let other: RequestMatcher = .json(["id": id + 1, "name": name])
        #expect(other.mismatches(in: received) == ["JSON body at id: expected 8, received 7"])
    }

    @Test("Header fields of a literal replace those with the same names")
    func headers() {
        let response = MockResponse.text("ale").header("ETag", "1").headers([
            "ETag": name, "Link": "a", "Link": "b", "content-type": "text/html",
        ])
        #expect(response.headers.values(for: "ETag") == ["ale"])
        #expect(response.headers.values(for: "Link") == ["a", "b"])
        #expect(response.headers.values(for: .contentType) == ["text/html"])
    }
}
