import Foundation
import TestSupport
import Testing
import WebServiceStorage

@testable import WebServiceCore

/// The numbers of JSON on the ways into the library and out of it.
@Suite("Numbers in JSON", .permit)
struct JSONNumberTests {
    /// Integers at the limits of `Double`, `Int64` and `UInt64`, and identifiers of real services.
    static let integers = [
        "0", "-1", "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993",
        "1234567890123456789", "9223372036854775807", "-9223372036854775808", "-9223372036854775807",
        "9223372036854775808", "18446744073709551614", "18446744073709551615",
    ]

    private static func value(_ text: String) throws -> JSONValue {
        try JSON.decode(JSONValue.self, from: Data(text.utf8))
    }

    private struct Holder: Codable {
        var id: JSONValue
    }

    @Test("integers of 64 bits are read exactly by each way of parsing", arguments: integers)
    func reading(text: String) async throws {
        let body = Data(#"{"id":\#(text)}"#.utf8)
        let service = WebService.make(HandSession(body))
        let task = try await service.GET("/x").json().value
        let any = Collected<(Int64?, UInt64?)>()
        service.GET("/x").responseJSON { json, _ in
            let id = (json as? [String: Any])?["id"]
            any.add((id as? Int64, id as? UInt64))
        }.resume()
        let (signed, unsigned) = await any.wait()[0]
        #expect(signed == Int64(text))
        #expect(unsigned == UInt64(text))
        let values = [
            task["id"], try JSON.decode(Holder.self, from: body).id,
            try JSON.decode([String: JSONValue].self, from: body)["id"], try Self.value(text),
        ]
        for value in values {
            #expect(value?.int == Int(text))
            #expect(value?.uint64 == UInt64(text))
            #expect(value?.description == text)
        }
    }

    @Test(
        "integers of 64 bits are exact in the types of the caller, in responses, lines, events and storages",
        arguments: integers)
    func typed(text: String) async throws {
        if text.hasPrefix("-") {
            try await readTyped(Int64.self, text)
        } else {
            try await readTyped(UInt64.self, text)
        }
    }

    private struct Numbered<Number: Codable & Sendable>: Codable, Sendable {
        var id: Number
    }

    private func readTyped<Number: Codable & Sendable & Equatable & LosslessStringConvertible>(
        _ type: Number.Type, _ text: String
    ) async throws {
        let body = Data(#"{"id":\#(text)}"#.utf8)
        let service = WebService.make(HandSession(body))
        let expected = Number(text)
        #expect(try await service.GET("/x").decode(Numbered<Number>.self).value.id == expected)
        var lines: [Number] = []
        for try await line in service.GET("/x").jsonLines(Numbered<Number>.self) { lines.append(line.id) }
        #expect(lines == [expected])
        let event = ServerSentEvent(data: String(decoding: body, as: UTF8.self))
        #expect(try event.decode(Numbered<Number>.self).id == expected)
        let folder = TemporaryFolder.forTest().url
        let key = StorageKey(identifier: "number")
        try await FileStorage(folder: folder).store(StorageEntry(.raw(body), date: nil), for: key)
        let stored = try #require(await FileStorage(folder: folder).entry(for: key))
        guard case .raw(let data) = stored.content else { throw TestError() }
        #expect(try JSON.decode(Numbered<Number>.self, from: data).id == expected)
    }

    @Test(
        "integers of 64 bits are written exactly in bodies, forms, queries and parameters",
        arguments: integers)
    func writing(text: String) throws {
        let value = try Self.value(text)
        let expected = #"{"id":\#(text)}"#
        #expect(String(decoding: try JSONEncoder().encode(Holder(id: value)), as: UTF8.self) == expected)
        let number = try #require(Int64(text).map(NSNumber.init) ?? UInt64(text).map(NSNumber.init))
        let objects: [Any] = [number, NSDecimalNumber(string: text), value.foundationValue]
        for object in objects {
            var request = Request(.POST, url: "https://h/")
            try request.serialize(json: ["id": object])
            #expect(request.body.map { String(decoding: $0, as: UTF8.self) } == expected)
            request.parameterEncoding = .json
            #expect(String(decoding: try request.encodeBody(Parameters(["id": object])), as: UTF8.self) == expected)
            request.parameterEncoding = .percent
            #expect(String(decoding: try request.encodeBody(Parameters(["id": object])), as: UTF8.self) == "id=\(text)")
            #expect(try request.encodeURL(adding: Parameters(["id": object])).query == "id=\(text)")
        }
    }

    @Test("a decimal number that no integer and no Double represents is written with all its digits")
    func decimals() throws {
        let texts = ["0.1", "2.5", "0.1234567890123456789", "18446744073709551616", "-9223372036854775809"]
        for text in texts {
            let parameters = Parameters(["n": NSDecimalNumber(string: text)])
            let query = try Request(.GET, url: "https://h/").encodeURL(adding: parameters).query
            #expect(query == "n=\(text)")
        }
    }

    @Test("a number that does not fit the requested type is nil")
    func misfits() throws {
        for text in ["18446744073709551616", "-9223372036854775809", "1.5", "9007199254740992.5", "1e19", "1e300"] {
            let value = try Self.value(text)
            #expect(value.int == nil, "\(text)")
            #expect(value.uint64 == nil, "\(text)")
            #expect(value.double == Double(text), "\(text)")
            let any = try JSON.object(from: Data("[\(text)]".utf8)) as? [Any]
            #expect((any?.first as? Double) == Double(text), "\(text)")
        }
        #expect(try Self.value("-1").uint64 == nil)
        #expect(try Self.value("9223372036854775808").int == nil)
        #expect(try Self.value("3.0").int == 3)
        #expect(try Self.value("1e2").uint64 == 100)
        #expect(try Self.value("true").int == nil)
        #expect(try Self.value(#""1""#).int == nil)
    }

    @Test(
        "numbers beyond 64 bits are no integers for responseJSON",
        arguments: [
            "18446744073709551616", "-9223372036854775809", "123456789012345678901234567890", "9007199254740993e0",
            "9007199254740992.5",
        ])
    func untypedMisfits(text: String) throws {
        let any = try JSON.object(from: Data(text.utf8))
        #expect((any as? Int64) == nil)
        #expect((any as? UInt64) == nil)
        #expect((any as? Double) == Double(text))
        #expect((any as? NSNumber)?.doubleValue == Double(text))
    }

    @Test(
        "a number that no Double represents is a decoding error on each way",
        arguments: ["1e400", "-1e400", "1e-400", "0.000001e-400", "1e99999999999999999999"])
    func outOfRange(text: String) async {
        let body = Data(#"{"id":\#(text)}"#.utf8)
        let service = WebService.make(HandSession(body))
        #expect(throws: DecodingError.self) { try Self.value(text) }
        #expect(throws: DecodingError.self) { try JSON.decode(Holder.self, from: body) }
        #expect(throws: DecodingError.self) { try JSON.decode([String: Double].self, from: body) }
        await #expect(throws: WebServiceError.self) { try await service.GET("/x").json().value }
        let failures = Collected<WebServiceError.Code?>()
        service.GET("/x").responseJSON { _, _ in }.responseError { failures.add(($0 as? WebServiceError)?.code) }
            .resume()
        #expect(await failures.wait() == [.decoding])
    }

    @Test("fractions are the nearest Double, and zeros with an exponent are zero")
    func doubles() throws {
        for text in [
            "0.1", "0.1234567890123456789", "2.2250738585072014e-308", "5e-324", "1.7976931348623157e308",
            "123456789012345680.0", "0.30000000000000004", "-0.0", "0e400", "-0.000e-400", "1E+2", "8.5e-2",
        ] {
            #expect(try Self.value(text).double == Double(text), "\(text)")
            #expect(try (JSON.object(from: Data(text.utf8)) as? Double) == Double(text), "\(text)")
        }
    }

    @Test("numbers are equal by value, whatever their representation")
    func equality() throws {
        #expect(JSONValue.integer(1) == .double(1))
        #expect(JSONValue.integer(1).hashValue == JSONValue.double(1).hashValue)
        #expect(JSONValue.unsigned(7).hashValue == JSONValue.integer(7).hashValue)
        #expect(JSONValue.unsigned(7) == 7)
        #expect(JSONValue.integer(9_007_199_254_740_993) != .double(9_007_199_254_740_992))
        #expect(JSONValue.unsigned(.max) != .integer(-1))
        #expect(JSONValue.unsigned(.max) != .double(18_446_744_073_709_551_616))
        #expect(JSONValue.integer(0) == .double(-0.0))
        #expect(JSONValue.integer(1) != .bool(true))
        #expect(JSONValue.integer(1) != .string("1"))
        #expect(JSONValue.null == nil)
        #expect(JSONValue(42) == 42)
    }

    @Test("the description of a JSON value is JSON in one line with sorted names")
    func description() throws {
        let value: JSONValue = [
            "name": "ale \"dark\"\n\u{7}\u{2028}é🍺\\/", "id": 9_007_199_254_740_993, "abv": 2.5, "tags": [nil, true],
            "none": [:],
        ]
        let text =
            #"{"abv": 2.5, "id": 9007199254740993, "name": "ale \"dark\"\n\u0007"# + "\u{2028}é🍺"
            + #"\\/", "none": {}, "tags": [null, true]}"#
        #expect("\(value)" == text)
        #expect(String(reflecting: value) == text)
        #expect(try Self.value("\(value)") == value)
        #expect(JSONValue.double(.nan).description == "null")
    }

    @Test(
        "a fraction is retained within another type as well", arguments: ["9007199254740993.5", "-9007199254740993.5"])
    func longFractions(text: String) throws {
        let value = try JSON.decode(Holder.self, from: Data(#"{"id":\#(text)}"#.utf8)).id
        #expect(value.int == nil)
        #expect(value.double == Double(text))
    }

    @Test("of members with the same name, the first one counts for the parser and for JSONDecoder")
    func repeatedNames() throws {
        for text in [#"{"a":1,"a":2}"#, #"{"\u0061":1,"a":2,"a":null}"#, #"{"a":1,"b":{"a":5,"a":6},"a":{"a":3}}"#] {
            let value = try JSON.decode(JSONValue.self, from: Data(text.utf8))
            #expect(value["a"] == 1)
            #expect(value["b"]?["a"] == (text.contains("b") ? 5 : nil))
            struct Object: Decodable { let a: Int }
            #expect(try JSON.decode(Object.self, from: Data(text.utf8)).a == 1)
            #expect((try JSON.object(from: Data(text.utf8)) as? [String: Any])?["a"] as? Int == 1)
        }
    }

    @Test("the parser and JSONDecoder agree on mutated texts")
    func agreement() throws {
        struct Untyped: Decodable {
            let value: JSONValue
            init(from decoder: any Decoder) throws { value = try JSONValue(from: decoder) }
        }
        let tokens = [
            "[", "]", "{", "}", ",", ":", "\"", "\\", "1", "0", "-", ".5", "5e3", "null", "true", " ", "\"a\"",
            #""\u00e9\n""#, #""\ud83c\udf7a""#, #""\ud83c""#, "\n", "é", "\u{1}", "12", "\"a\":1", "\"a\":2",
        ]
        var random = SeededGenerator(seed: 71)
        var accepted = 0
        let rounds = amount(4_000, thorough: 20_000)
        for _ in 0..<rounds {
            let count = Int.random(in: 1...6, using: &random)
            let inner = (0..<count).map { _ in tokens.randomElement(using: &random) ?? "" }.joined()
            let texts = ["[\(inner)]", "{\"k\":\(inner)}", inner]
            let text = texts.randomElement(using: &random) ?? inner
            let data = Data(text.utf8)
            let expected = (try? JSONDecoder().decode(Untyped.self, from: data))?.value  // an error counts as no value
            let value = try? JSONParser.value(from: data)  // as above
            if value != nil { accepted += 1 }
            if value != expected { Issue.record("\(text.debugDescription): \(value as Any), not \(expected as Any)") }
        }
        #expect(accepted > rounds / 20)
    }
}
