import Foundation
import TestSupport
import Testing
import WebServiceFields

@Suite("Ordered maps and values of structured fields", .permit)
struct OrderedMapTests {
    private typealias Parameters = StructuredField.Parameters

    private func keys(_ map: Parameters) -> [String] { map.map(\.key) }

    @Test("Keys are in the order in which they were added")
    func order() {
        let map: Parameters = ["z": 1, "a": 2, "m": 3]
        #expect(keys(map) == ["z", "a", "m"])
        #expect(map.map(\.value) == [1, 2, 3])
        #expect(map.count == 3)
        #expect(map["a"] == 2)
        #expect(map["b"] == nil)
    }

    @Test("Of a repeated key of a literal, the last value applies, in the place of the first")
    func repeated() {
        #expect(["a": 1, "b": 2, "a": 3] as Parameters == ["a": 3, "b": 2])
        #expect(Parameters([("a", 1), ("a", 2)]).count == 1)
    }

    @Test("A set value replaces that of its key in place, or follows the others")
    func setting() {
        var map: Parameters = ["a": 1, "b": 2]
        map["a"] = 3
        map["c"] = 4
        #expect(map == ["a": 3, "b": 2, "c": 4])
    }

    @Test("A removed key leaves the others in order, and is added at the end")
    func removing() {
        var map: Parameters = ["a": 1, "b": 2, "c": 3, "d": 4]
        map["b"] = nil
        map["x"] = nil
        #expect(map == ["a": 1, "c": 3, "d": 4])
        #expect(map["d"] == 4)
        map["d"] = 5
        map["b"] = 6
        #expect(map == ["a": 1, "c": 3, "d": 5, "b": 6])
        for key in keys(map) { map[key] = nil }
        #expect(map == [:])
        #expect(map.isEmpty)
    }

    @Test("Maps with another order or other values are not equal, and equal ones have equal hashes")
    func equality() {
        let map: Parameters = ["a": 1, "b": 2]
        #expect(map != ["b": 2, "a": 1])
        #expect(map != ["a": 1, "b": 2.0])
        #expect(map != ["a": 1])
        #expect(Set([map, ["a": 1, "b": 2], ["b": 2, "a": 1]]).count == 2)
    }

    @Test("A copy is independent")
    func copies() {
        let map: Parameters = ["a": 1]
        var copy = map
        copy["a"] = 2
        #expect(map["a"] == 1)
    }

    @Test("The description has the form of a literal")
    func description() {
        #expect("\(StructuredField.OrderedMap<Int>([("b", 1), ("a", 2)]))" == "[b: 1, a: 2]")
        #expect("\(Parameters())" == "[:]")
    }

    // MARK: Values

    @Test("A value has the accessor of its type, and no other")
    func accessors() {
        let values: [StructuredField.BareItem] = [
            1, 1.5, "a", .token("a"), .byteSequence(Data([1])), true, .date(.distantPast), .displayString("a"),
        ]
        #expect(values.map(\.integer) == [1, nil, nil, nil, nil, nil, nil, nil])
        #expect(values.map(\.decimal) == [nil, 1.5, nil, nil, nil, nil, nil, nil])
        #expect(values.map(\.string) == [nil, nil, "a", nil, nil, nil, nil, nil])
        #expect(values.map(\.token) == [nil, nil, nil, "a", nil, nil, nil, nil])
        #expect(values.map(\.byteSequence) == [nil, nil, nil, nil, Data([1]), nil, nil, nil])
        #expect(values.map(\.boolean) == [nil, nil, nil, nil, nil, true, nil, nil])
        #expect(values.map(\.date) == [nil, nil, nil, nil, nil, nil, .distantPast, nil])
        #expect(values.map(\.displayString) == [nil, nil, nil, nil, nil, nil, nil, "a"])
        #expect(Set(values).count == 8)
    }

    @Test("A member is an item or an inner list")
    func members() {
        let item = StructuredField.Member.item(1, parameters: ["a": 2])
        let list = StructuredField.Member.innerList([StructuredField.Item(1)], parameters: ["b": 3])
        #expect(item.item == StructuredField.Item(1, parameters: ["a": 2]))
        #expect(item.innerList == nil)
        #expect(list.item == nil)
        #expect(list.innerList == StructuredField.InnerList([StructuredField.Item(1)], parameters: ["b": 3]))
    }
}
