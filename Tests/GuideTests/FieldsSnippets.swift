import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFields
import WebServiceMocking

// Every snippet about structured fields of Cookbook.md and the article of WebServiceFields, with its
// expected behavior. `DocumentationTests` verifies that none is missing.

@Suite("Snippets about structured fields", .permit)
struct FieldsSnippets {
    private let mock = MockService()
    private var service: WebService { mock.service }

    @Test("A priority is sent, and the limits of the response are read")
    func exchange() async throws {
        mock.on(
            .path("/labels/7") && .header("Priority", "u=1, i"),
            MockResponse(
                statusCode: 200, headers: ["RateLimit": #""default";r=50;t=30"#, "Priority": "u=2"],
                data: Data("label".utf8)))
        var request = service.request(.GET, path: "/labels/7")
        // u=1, i
        try request.headers.setStructuredDictionary(["u": .item(1), "i": .item(true)], for: "Priority")

        let response = try await service.sessionTask(request: request).data().response
        for limit in response.headers.structuredList("RateLimit")?.compactMap(\.item) ?? [] {
            print(limit.value.string ?? "", limit.parameters["r"]?.integer ?? 0)  // default 50
        }
        #expect(response.headers.structuredList("RateLimit") == [.item("default", parameters: ["r": 50, "t": 30])])

        let priority = response.headers.structuredDictionary("Priority")
        let urgency = priority?["u"]?.item?.value.integer ?? 3
        #expect(urgency == 2)
    }

    @Test("A list is serialized")
    func list() throws {
        let hints: StructuredField.List = [.item("a b"), .item(.token("gzip"), parameters: ["q": 0.5])]
        let value = try StructuredField.serialized(hints)  // "a b", gzip;q=0.5
        #expect(value == #""a b", gzip;q=0.5"#)
    }
}
