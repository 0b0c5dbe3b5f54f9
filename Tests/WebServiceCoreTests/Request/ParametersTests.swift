import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct ParametersTests {
    private func pairs(_ parameters: Parameters) -> [String] { parameters.map { "\($0.key)=\($0.value)" } }

    @Test("A literal preserves order, repeated names and nil")
    func literal() {
        let page: Int? = nil
        let parameters: Parameters = ["b": 1, "a": "x", "b": 2, "page": page, "n": nil]
        #expect(pairs(parameters) == ["b=1", "a=x", "b=2", "page=", "n="])
        #expect(parameters["b"] == 1)
        #expect(parameters["page"] == .null)
        #expect(parameters["none"] == nil)
        #expect(parameters.count == 5)
        #expect(parameters.first?.key == "b")
        #expect(parameters.last?.key == "n")
        #expect(Parameters([:]).isEmpty)
    }

    @Test("append adds a parameter at the end, even if its name exists")
    func append() {
        var parameters: Parameters = ["a": 1]
        parameters.append("a", "2")
        parameters.append("b", Optional<Int>.none)
        parameters.append("c", [1, 2])
        #expect(pairs(parameters) == ["a=1", "a=2", "b=", "c=[1, 2]"])
        #expect(pairs(parameters + ["a": 9]) == ["a=1", "a=2", "b=", "c=[1, 2]", "a=9"])
    }

    @Test("A dictionary is sorted by the bytes of its keys, so that its encoding is deterministic")
    func dictionary() throws {
        let names = ["b", "a", "B", "é", "z", "10", "9", "", "a.b", "e\u{301}x", "ab", "\u{1F4A9}", "\u{FFFF}"]
        var queries: Set<String?> = []
        for round in 0..<200 {
            var random = SeededGenerator(seed: UInt64(round))
            var inner: [String: Any] = [:]
            var outer: [String: Any] = [:]
            if round.isMultiple(of: 2) { outer.reserveCapacity(round * 10) }
            for name in names.shuffled(using: &random) { inner[name] = name }
            for name in names.shuffled(using: &random) { outer[name] = [inner] }
            queries.insert(try Request.make { $0.queryParameters = Parameters(outer) }.encodedQuery())
        }
        #expect(queries.count == 1)
        let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        #expect(Parameters(Dictionary(uniqueKeysWithValues: names.map { ($0, 1 as Any) })).map(\.key) == sorted)
        guard case .object(let nested) = Dictionary(uniqueKeysWithValues: names.map { ($0, 1) }).parameterValue else {
            Issue.record("a dictionary did not convert to an object")
            return
        }
        #expect(nested.map(\.key) == sorted)
    }

    @Test("Parameters are equal if their names, values and order are equal")
    func equality() {
        #expect(["a": 1, "b": 2] as Parameters == ["a": 1, "b": 2])
        #expect(["a": 1, "b": 2] as Parameters != ["b": 2, "a": 1])
        #expect(["a": 1] as Parameters != ["a": "1"])
        #expect(Set<Parameters>([["a": 1], ["a": 1], ["a": 2]]).count == 2)
    }
}
