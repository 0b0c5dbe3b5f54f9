import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct ParameterValueTests {
    enum Level: String, ParameterConvertible { case high }
    enum Rank: Int, ParameterConvertible { case first = 1 }
    struct Coordinate: ParameterConvertible {
        var parameterValue: ParameterValue { ["lat": 1, "lon": 2] }
    }

    @Test("Every supported type converts to its parameter value")
    func types() throws {
        let id = try #require(UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
        let url = try #require(URL(string: "https://o/?a=b"))
        let rows: [((any ParameterConvertible)?, ParameterValue)] = [
            ("s", .string("s")), ("sub".dropFirst(), .string("ub")), (true, .bool(true)), (Int8.min, .integer(-128)),
            (UInt8.max, .integer(255)),
            (Int16.min, .integer(-32768)),
            (UInt16.max, .integer(65535)), (Int32.min, .integer(-2147483648)), (UInt32.max, .integer(4294967295)),
            (Int64.min, .integer(.min)),
            (UInt64.max, .unsigned(.max)),
            (UInt.max, .unsigned(.max)), (UInt64(Int64.max), .integer(.max)),
            (UInt64(Int64.max) + 1, .unsigned(1 << 63)), (Int.max, .integer(.max)),
            (0.5, .double(0.5)),
            (Float(0.1), .double(0.1)), (Float.greatestFiniteMagnitude, .double(3.4028235e38)),
            (Decimal(string: "1.50"), .string("1.5")),
            (Decimal(string: "12345678901234567890.123"), .string("12345678901234567890.123")),
            (Date(timeIntervalSince1970: 1), .date(Date(timeIntervalSince1970: 1))),
            (url, .string("https://o/?a=b")), (id, .string("E621E1F8-C36C-495A-93FC-0C247A3E6E5F")), (nil, .null),
            (Optional<Int>.none, .null),
            (Optional(3), .integer(3)),
            ([1, 2], .array([1, 2])), ([Optional(1), nil], .array([1, nil])), (["b": 2, "a": 1], ["a": 1, "b": 2]),
            (Level.high, .string("high")),
            (Rank.first, .integer(1)),
            (Coordinate(), ["lat": 1, "lon": 2]), ([Coordinate()], [["lat": 1, "lon": 2]]),
            (Parameters([("z", 1), ("a", 2)]), ["z": 1, "a": 2]),
            (ParameterValue.null, .null),
        ]
        for (value, expected) in rows { #expect(ParameterValue(value) == expected, "\(String(describing: value))") }
    }

    @Test("A value of type Any converts to the same parameter value as its dynamic type")
    func anything() {
        let rows: [(Any?, ParameterValue)] = [
            (nil, nil), (NSNull(), nil), (Optional<Int>.none as Any, nil),
            (Optional<Any>.some(Optional<Int>.some(3) as Any) as Any, 3), (1, 1),
            (true, true), ("s", "s"), (1.5, 1.5),
            ([1, "a", NSNull(), [true]] as [Any], [1, "a", nil, [true]]),
            ([Optional<Int>.none, 1] as [Int?], [nil, 1]),
            ([nil, "x"] as [Any?], [nil, "x"]),
            (["b": 1, "a": ["d": 2, "c": "x"]] as [String: Any], ["a": ["c": "x", "d": 2], "b": 1]),
            (["a": nil] as [String: Any?], ["a": nil]),
            (Level.high, "high"),
        ]
        for (value, expected) in rows {
            #expect(ParameterValue(any: value) == expected, "\(String(describing: value))")
        }
    }

    @Test("A value with a raw value converts to the raw value without declaring a conformance")
    func rawValues() throws {
        enum Sort: String { case ascending = "asc" }
        enum Page: Int { case first = 1 }
        struct Flags: OptionSet { let rawValue: UInt8 }
        struct Filter: RawRepresentable { let rawValue: [String: Sort] }
        enum Custom: String, ParameterConvertible {
            case one
            var parameterValue: ParameterValue { 1 }
        }
        let rows: [(Any?, ParameterValue)] = [
            (Sort.ascending, "asc"), (Page.first, 1), (Flags(rawValue: 6), 6), (Custom.one, 1),
            (Optional(Sort.ascending) as Any, "asc"), (Optional<Sort>.none as Any, nil),
            ([Sort.ascending], ["asc"]), ([Sort.ascending, 2, nil] as [Any?], ["asc", 2, nil]),
            (["by": [Page.first]], ["by": [1]]),
            (Filter(rawValue: ["by": .ascending]), ["by": "asc"]),
        ]
        for (value, expected) in rows {
            #expect(ParameterValue(any: value) == expected, "\(String(describing: value))")
        }
        let order = Parameters(["order": Sort.ascending])
        let task = WebService.make().POST("/brewers/{order}", pathParameters: order)
        task.setQueryParameters(["sort": Sort.ascending, "page": [Page.first]])
        #expect(try task.request.encodedQuery() == "page=1&sort=asc")
        task.setFormParameters(["sort": Sort.ascending])
        let encoded = try task.request.urlRequest()
        #expect(encoded.url?.path == "/v1/brewers/asc")
        #expect(encoded.httpBody == Data("sort=asc".utf8))
        task.setParameters(["sort": Sort.ascending], encoding: .json)
        #expect(try task.request.urlRequest().httpBody == Data(#"{"sort":"asc"}"#.utf8))
    }

    @Test("Foundation classes convert to the same parameter value as their Swift counterparts")
    func foundationClasses() throws {
        let id = try #require(NSUUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
        let rows: [(Any, ParameterValue)] = [
            (NSString("s"), "s"), (try #require(NSURL(string: "https://o/")), "https://o/"),
            (id, "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"),
            (NSDate(timeIntervalSince1970: 1), .date(Date(timeIntervalSince1970: 1))),
            (NSArray(array: [1, "a"]), [1, "a"]),
            (NSDictionary(dictionary: ["a": 1]), ["a": 1]),
            (NSNumber(value: true), true), (NSNumber(value: false), false), (NSNumber(value: 1), 1),
            (NSNumber(value: 0), 0),
            (NSNumber(value: Int8(1)), 1), (NSNumber(value: Int8(5)), 5),
            (NSNumber(value: UInt8(200)), 200), (NSNumber(value: UInt32.max), 4294967295),
            (NSNumber(value: Int64.min), .integer(.min)),
            (NSNumber(value: UInt64.max), .unsigned(.max)),
            (NSNumber(value: UInt64(5)), 5), (NSNumber(value: 1.5), 1.5), (NSNumber(value: 1.0), 1.0),
            (NSDecimalNumber(string: "1.5"), 1.5),
        ]
        for (value, expected) in rows { #expect(ParameterValue(any: value) == expected, "\(type(of: value)) \(value)") }
    }

    @Test("The output of JSONSerialization can be sent as parameters")
    func fromJSON() throws {
        let json =
            #"{"a":true,"b":1,"c":1.5,"d":null,"e":[1,{"x":"y"}],"f":18446744073709551615,"g":0,"h":"é","i":false}"#
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        #expect(
            try Request.make { $0.queryParameters = Parameters(object) }.encodedQuery()
                == "a=true&b=1&c=1.5&e=1&e%5Bx%5D=y&f=18446744073709551615&g=0&h=%C3%A9&i=false")
        #expect(String(decoding: try Parameters(object).jsonData(), as: UTF8.self) == json)
    }

    @Test("An unsupported type is an error that names the parameter and the type and hides the value")
    func unsupported() {
        struct Secret { var text = "s3cret" }
        final class Box { let text = "s3cret" }
        enum Letter: Character { case secret = "s" }
        let rows: [(Any, String)] = [
            (Secret(), "Secret"), (Box(), "Box"), (Data("s3cret".utf8), "Data"), (["s3cret"] as Set, "Set"),
            (("s3cret", 1), "String"),
            ([1: "s3cret"], "Dictionary"), (Letter.secret, "Letter"),
        ]
        for (value, type) in rows {
            for parameters in [
                Parameters(["p": value]), Parameters(["p": ["q": value]]), Parameters(["p": [1, value] as [Any]]),
                Parameters(["p": Optional(value) as Any]),
            ] {
                let inQuery = Request.make { $0.queryParameters = parameters }
                let inForm = Request.make(.POST) { $0.formParameters = parameters }
                let inJSON = Request.make(.POST) {
                    $0.parameters = parameters
                    $0.parameterEncoding = .json
                }
                for request in [inQuery, inForm, inJSON] {
                    expectFailure(.encoding, naming: ["p", type], hiding: ["s3cret"]) { try request.urlRequest() }
                }
            }
        }
    }

    @Test(
        "A value of type Any with more than 32 nested levels is rejected without exhausting the stack",
        arguments: [31, 32, 33, 100, 5_000])
    func depth(levels: Int) throws {
        for wrap in [{ [$0] }, { ["k": $0] }, { [Optional($0)] as [Any?] }] as [(Any) -> Any] {
            let value = (1..<levels).reduce("s3cret" as Any) { value, _ in wrap(value) }
            let request = Request.make { $0.queryParameters = Parameters(["p": value]) }
            if levels <= 32 {
                #expect(try request.encodedQuery()?.hasSuffix("=s3cret") == true)
            } else {
                expectFailure(.encoding, naming: ["'p", "32 levels"]) { try request.urlRequest() }
                expectFailure(.encoding, naming: ["'p"]) {
                    try Request.make {
                        $0.queryParameters = Parameters(["p": value])
                        $0.parameterStrategy.arrays = .commaSeparated
                        $0.parameterStrategy.nesting = .dots
                    }.urlRequest()
                }
            }
        }
    }

    @Test("A literal creates the corresponding value")
    func literals() {
        let value: ParameterValue = ["s": "x", "i": 1, "d": 1.5, "b": true, "n": nil, "a": [1, "two"], "s": "again"]
        let parameters = Parameters([
            ("s", .string("x")), ("i", .integer(1)), ("d", .double(1.5)), ("b", .bool(true)), ("n", .null),
            ("a", .array([.integer(1), .string("two")])), ("s", .string("again")),
        ])
        #expect(value == .object(parameters))
    }

    @Test(
        "The description of a value matches the encoding of the default strategy",
        arguments: [
            (nil, ""), (true, "true"), (-5, "-5"), (.unsigned(.max), "18446744073709551615"), (2.0, "2"),
            ("a b", "a b"),
            (.date(Date(timeIntervalSince1970: 0)), "1970-01-01T00:00:00Z"),
            ([1, "x", nil], "[1, x, ]"), (["a": 1, "b": [2]], "[a: 1, b: [2]]"),
            (.unsupported(type: "T"), "(unsupported: T)"),
            (.date(Date(timeIntervalSince1970: .nan)), "(date out of range)"),
        ] as [(ParameterValue, String)])
    func descriptions(value: ParameterValue, text: String) {
        #expect(value.description == text)
    }
}
