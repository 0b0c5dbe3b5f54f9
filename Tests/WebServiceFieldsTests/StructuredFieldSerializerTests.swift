import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFields

@Suite("Serializing structured fields", .permit)
struct StructuredFieldSerializerTests {
    private typealias Item = StructuredField.Item
    typealias BareItem = StructuredField.BareItem

    /// Returns the message of the error for an item.
    private func complaint(_ item: Item) -> String? {
        let error = #expect(throws: WebServiceError.self) { try StructuredField.serialized(item) }
        #expect(error?.code == .invalidHeader)
        return error?.message
    }

    // MARK: Bare items

    @Test(
        "Each type has its own form",
        arguments: [
            (42, "42"), (-42, "-42"), (0, "0"), (1.5, "1.5"), ("a b", "\"a b\""), (.token("a/b:c"), "a/b:c"),
            (.token("*"), "*"), (.byteSequence(Data("hello".utf8)), ":aGVsbG8=:"), (.byteSequence(Data()), "::"),
            (true, "?1"), (false, "?0"), (.date(Date(timeIntervalSince1970: 1_659_578_233)), "@1659578233"),
            (.date(Date(timeIntervalSince1970: -1)), "@-1"), (.displayString("f\u{FC}\u{FC}"), "%\"f%c3%bc%c3%bc\""),
        ] as [(BareItem, String)])
    func forms(value: BareItem, text: String) throws {
        #expect(try StructuredField.serialized(Item(value)) == text)
    }

    @Test(
        "A decimal has at least one and at most three digits after the point",
        arguments: [
            (0, "0.0"), (1, "1.0"), (-1, "-1.0"), (0.1, "0.1"), (0.25, "0.25"), (0.125, "0.125"), (-0.001, "-0.001"),
            (100, "100.0"), (1.05, "1.05"), (999_999_999_999.999, "999999999999.999"),
            (-999_999_999_999.999, "-999999999999.999"), (123_456_789_012.1, "123456789012.1"), (-0.0, "0.0"),
        ])
    func decimals(value: Double, text: String) throws {
        #expect(try StructuredField.serialized(Item(.decimal(value))) == text)
    }

    @Test(
        "A decimal is rounded to three digits, and to the even one of two at the same distance",
        arguments: [
            (0.0005, "0.0"), (0.0015, "0.002"), (0.0025, "0.002"), (-0.0015, "-0.002"), (-0.0025, "-0.002"),
            (1.0005, "1.0"), (1.0015, "1.002"), (2.0005, "2.0"), (9.9995, "10.0"), (0.00149, "0.001"),
            (0.00151, "0.002"), (0.0004, "0.0"), (-0.0004, "0.0"), (8.3335, "8.334"), (8.3345, "8.334"),
            (1e-300, "0.0"), (123_456.0005, "123456.0"), (123_456.0015, "123456.002"), (1.0 / 3, "0.333"),
        ])
    func rounding(value: Double, text: String) throws {
        #expect(try StructuredField.serialized(Item(.decimal(value))) == text)
    }

    @Test("Each decimal of 15 digits is one Double")
    func exactDecimals() throws {
        var generator = SeededGenerator(seed: 9651)
        for _ in 0..<10_000 {
            let thousandths = Int64.random(in: 0..<1_000_000_000_000_000, using: &generator)
            let fraction = String(thousandths % 1_000 + 1_000).dropFirst()
            let value = try #require(Double("\(thousandths / 1_000).\(fraction)"))
            let text = try StructuredField.serialized(Item(.decimal(value)))
            #expect(
                text + String(repeating: "0", count: max(0, 3 - (text.split(separator: ".").last?.count ?? 0)))
                    == "\(thousandths / 1_000).\(fraction)")
            #expect(StructuredField.item(parsing: text)?.value == .decimal(value))
        }
    }

    @Test("A date is rounded down to whole seconds", arguments: [(1.9, "@1"), (-0.1, "@-1"), (0.5, "@0")])
    func dates(seconds: TimeInterval, text: String) throws {
        #expect(try StructuredField.serialized(Item(.date(Date(timeIntervalSince1970: seconds)))) == text)
    }

    @Test(
        "Quotes and backslashes of a string are escaped",
        arguments: [("", #""""#), (#"a"b\c"#, #""a\"b\\c""#), (" !~", #"" !~""#)])
    func strings(value: String, text: String) throws {
        #expect(try StructuredField.serialized(Item(.string(value))) == text)
    }

    @Test(
        "The quotes, percent signs, control characters and other bytes of a display string are encoded",
        arguments: [
            ("", "%\"\""), ("\"\\%", "%\"%22\\%25\""), ("\n\0\u{7F}", "%\"%0a%00%7f\""),
            ("\u{1F37A}", "%\"%f0%9f%8d%ba\""), (" ~", "%\" ~\""),
        ])
    func displayStrings(value: String, text: String) throws {
        #expect(try StructuredField.serialized(Item(.displayString(value))) == text)
    }

    // MARK: Members and parameters

    @Test("Parameters follow their item in order, and one that is true has no value")
    func parameters() throws {
        let item = Item("a", parameters: ["z": 1, "b": true, "*": false, "a": .token("x")])
        #expect(try StructuredField.serialized(item) == "\"a\";z=1;b;*=?0;a=x")
    }

    @Test("The members of a list are separated by a comma and a space, and those of an inner list by a space")
    func lists() throws {
        let list: StructuredField.List = [
            .item(.token("a"), parameters: ["q": 0.5]), .innerList([Item(1), Item("b", parameters: ["c": true])]),
            .innerList([], parameters: ["d": 2]),
        ]
        #expect(try StructuredField.serialized(list) == "a;q=0.5, (1 \"b\";c), ();d=2")
    }

    @Test("A member of a dictionary that is true has no value, only parameters")
    func dictionaries() throws {
        let dictionary: StructuredField.Dictionary = [
            "u": .item(1), "i": .item(true), "b": .item(true, parameters: ["x": 1]), "c": .item(false),
            "d": .innerList([Item(true)], parameters: ["e": true]),
        ]
        #expect(try StructuredField.serialized(dictionary) == "u=1, i, b;x=1, c=?0, d=(?1);e")
    }

    @Test("An empty list and an empty dictionary have no field value")
    func empty() throws {
        #expect(try StructuredField.serialized([]) == nil)
        #expect(try StructuredField.serialized([:]) == nil)
    }

    // MARK: Errors

    @Test(
        "An integer has at most 15 digits",
        arguments: [1_000_000_000_000_000, -1_000_000_000_000_000, .max, .min] as [Int64])
    func largeIntegers(value: Int64) {
        #expect(complaint(Item(.integer(value))) == "the integer has more than 15 digits")
    }

    @Test("The largest integers and dates have 15 digits", arguments: [999_999_999_999_999, -999_999_999_999_999])
    func largestIntegers(value: Int64) throws {
        #expect(try StructuredField.serialized(Item(.integer(value))) == "\(value)")
        #expect(
            try StructuredField.serialized(Item(.date(Date(timeIntervalSince1970: TimeInterval(value))))) == "@\(value)"
        )
    }

    @Test(
        "A decimal is finite and has at most 12 digits before the point, also after rounding",
        arguments: [
            1_000_000_000_000, -1_000_000_000_000, 999_999_999_999.9999, 1e300, .infinity, -.infinity, .nan,
            .greatestFiniteMagnitude,
        ])
    func largeDecimals(value: Double) {
        #expect(
            complaint(Item(.decimal(value))) == "the decimal is not finite or has more than 12 digits before the point")
    }

    @Test("A date has at most 15 digits", arguments: [1e15, -1e15, 1e300, .infinity, .nan])
    func largeDates(seconds: TimeInterval) {
        #expect(
            complaint(Item(.date(Date(timeIntervalSince1970: seconds)))) == "the date has more than 15 digits")
    }

    @Test(
        "A string of other characters than printable ASCII cannot be serialized",
        arguments: ["\u{FC}", "a\n", "\r\nX: b", "\t", "\0", "\u{7F}", "\u{1F37A}"])
    func invalidStrings(value: String) {
        #expect(
            complaint(Item(.string(value)))
                == "the string contains a character other than printable ASCII; use a display string")
    }

    @Test(
        "An invalid token cannot be serialized",
        arguments: ["", "1a", "/a", ":a", "a b", "a\"", "a,b", "a;b", "a\r\nb", "\u{E4}", "a\u{E4}", "(", "-"])
    func invalidTokens(value: String) {
        #expect(
            complaint(Item(.token(value)))
                == "the token is empty or contains a character that is not allowed; use a string")
    }

    @Test(
        "An invalid key cannot be serialized, of a parameter as of a member",
        arguments: ["", "A", "1", "-a", "_a", "a b", "a=", "aB", "\u{E4}", "a\u{E4}", "a;", "a\r\nb"])
    func invalidKeys(key: String) throws {
        #expect(complaint(Item(1, parameters: [key: 2]))?.contains("is invalid; use lowercase letters") == true)
        let error = #expect(throws: WebServiceError.self) { try StructuredField.serialized([key: .item(1)]) }
        #expect(error?.message.contains("is invalid; use lowercase letters") == true)
        #expect(error?.message.contains("\n") == false)
    }

    @Test("An error names the key of the value, and not the value")
    func names() throws {
        let value = Item(1, parameters: ["x": 1, "note": "canary-\u{FC}"])
        #expect(
            complaint(value)
                == "the string of 'note' contains a character other than printable ASCII; use a display string")
        let dictionary: StructuredField.Dictionary = [
            "u": .innerList([Item(1, parameters: ["p": 2]), Item(.token(""))])
        ]
        let error = #expect(throws: WebServiceError.self) { try StructuredField.serialized(dictionary) }
        #expect(error?.message.hasPrefix("the token of 'u' is empty") == true)
    }
}
