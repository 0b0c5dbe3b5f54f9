import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFields

@Suite("Structured header fields", .permit)
struct StructuredHeadersTests {
    private typealias Item = StructuredField.Item

    @Test("An item, a list and a dictionary are read, whatever the case of the name")
    func reading() {
        let headers: Headers = ["Age-Of": "10;stale", "ACCEPT-Any": "a, (b c);q=0.5", "priority": "u=1, i"]
        #expect(headers.structuredItem("age-of") == Item(10, parameters: ["stale": true]))
        #expect(
            headers.structuredList("Accept-Any") == [
                .item(.token("a")), .innerList([Item(.token("b")), Item(.token("c"))], parameters: ["q": 0.5]),
            ])
        #expect(headers.structuredDictionary("Priority") == ["u": .item(1), "i": .item(true)])
    }

    @Test("Several fields of a name are one list or one dictionary")
    func lines() {
        let headers: Headers = ["A": "1", "B": "x=1, y", "a": "2, (3)", "b": "z;q, x=2", "C": "\"a", "c": "b\""]
        #expect(headers.structuredList("A") == [.item(1), .item(2), .innerList([Item(3)])])
        #expect(
            headers.structuredDictionary("B")
                == ["x": .item(2), "y": .item(true), "z": .item(true, parameters: ["q": true])])
        #expect(headers.structuredItem("A") == nil)
        #expect(headers.structuredItem("C") == Item("a, b"))
    }

    @Test("An empty field among several makes the list malformed")
    func emptyLine() {
        #expect((["A": "1", "a": "", "A": "2"] as Headers).structuredList("A") == nil)
    }

    @Test("An absent or empty list or dictionary has no members, and an absent or empty item is nil")
    func absent() {
        for headers in [[:], ["A": ""], ["A": "  "]] as [Headers] {
            #expect(headers.structuredItem("A") == nil)
            #expect(headers.structuredList("A") == [])
            #expect(headers.structuredDictionary("A") == [:])
        }
    }

    @Test("A malformed field is nil", arguments: ["a=", ",", "\"", "\u{E4}", "a b", "a,"])
    func malformed(value: String) {
        let headers: Headers = ["A": value]
        #expect(headers.structuredItem("A") == nil)
        #expect(headers.structuredList("A") == nil)
        #expect(headers.structuredDictionary("A") == nil)
    }

    @Test("A value that is set replaces all fields of its name")
    func setting() throws {
        var headers: Headers = ["A": "1", "X": "y", "a": "2"]
        try headers.setStructuredItem(Item(5, parameters: ["b": 0.5]), for: "A")
        #expect(headers.fields.map(\.value) == ["5;b=0.5", "y"])
        try headers.setStructuredList([.item(.token("a")), .item("b")], for: "A")
        #expect(headers["A"] == "a, \"b\"")
        try headers.setStructuredDictionary(["u": .item(1), "i": .item(true)], for: "Priority")
        #expect(headers["Priority"] == "u=1, i")
        #expect(headers.structuredDictionary("Priority") == ["u": .item(1), "i": .item(true)])
    }

    @Test("An empty list or dictionary removes the field")
    func removing() throws {
        var headers: Headers = ["A": "1", "a": "2", "B": "x"]
        try headers.setStructuredList([], for: "A")
        try headers.setStructuredDictionary([:], for: "B")
        #expect(headers.isEmpty)
    }

    @Test(
        "A value that cannot be serialized leaves the fields unchanged, and the error names the field")
    func failing() {
        let headers: Headers = ["A": "1", "a": "2"]
        var changed = headers
        let error = #expect(throws: WebServiceError.self) {
            try changed.setStructuredDictionary(["u": .item(.token("canary b"))], for: "A")
        }
        #expect(error?.code == .invalidHeader)
        #expect(
            error?.message == "the value of the header field 'A' is invalid: the token of 'u' is empty or contains "
                + "a character that is not allowed; use a string")
        #expect(changed == headers)
        #expect(throws: WebServiceError.self) { try changed.setStructuredItem(Item("\u{E4}"), for: "A") }
        #expect(throws: WebServiceError.self) { try changed.setStructuredList([.item(.decimal(.nan))], for: "A") }
        #expect(changed == headers)
    }

    @Test("A field of a request is sent as it was set")
    func request() throws {
        var request = Request(url: "https://api.example.com/")
        try request.headers.setStructuredDictionary(["u": .item(0)], for: "Priority")
        #expect(try request.urlRequest().value(forHTTPHeaderField: "Priority") == "u=0")
    }
}
