import Foundation
import TestSupport
import Testing

@testable import WebServiceFields

@Suite("Parsing structured fields", .permit)
struct StructuredFieldParserTests {
    private typealias Item = StructuredField.Item
    private typealias Member = StructuredField.Member

    private static func items(_ values: StructuredField.BareItem...) -> [Member] {
        values.map { .item($0) }
    }

    // MARK: Items

    @Test(
        "An integer has at most 15 digits and may have a sign and leading zeros",
        arguments: [
            ("42", 42), ("0", 0), ("-0", 0), ("-42", -42), ("042", 42), ("-0042", -42), ("00", 0),
            ("999999999999999", 999_999_999_999_999), ("-999999999999999", -999_999_999_999_999),
            ("000000000000001", 1),
        ] as [(String, Int64)])
    func integers(field: String, value: Int64) {
        #expect(StructuredField.item(parsing: field)?.value == .integer(value))
    }

    @Test(
        "A decimal has at most 12 digits before and 3 digits after the point",
        arguments: [
            ("1.5", 1.5), ("-1.5", -1.5), ("1.0", 1), ("0.001", 0.001), ("-0.0", 0), ("00.10", 0.1),
            ("1.123", 1.123), ("123456789012.1", 123_456_789_012.1),
            ("999999999999.999", 999_999_999_999.999), ("-999999999999.999", -999_999_999_999.999),
        ])
    func decimals(field: String, value: Double) {
        #expect(StructuredField.item(parsing: field)?.value == .decimal(value))
    }

    @Test(
        "A number beyond the limits or with another form is malformed",
        arguments: [
            "1000000000000000", "-1000000000000000", "0000000000000001", "1234567890123.0", "1.1234", "1.", ".1", "-",
            "--1", "+1", "- 1", "-.1", "-a", "1.-1", "1.5.4", "1..4", "1 2", "1,2", "2-3", "4a", "0x1", "1e3",
            "1234567890123456789012345678901234567890", "\u{661}",
        ])
    func malformedNumbers(field: String) {
        #expect(StructuredField.item(parsing: field) == nil)
    }

    @Test(
        "A string consists of printable ASCII and has escaped quotes and backslashes",
        arguments: [
            (#""foo bar""#, "foo bar"), (#""""#, ""), (#""   ""#, "   "), (#""b\"a\\r""#, #"b"a\r"#),
            (#""%~,;=()""#, "%~,;=()"),
        ])
    func strings(field: String, value: String) {
        #expect(StructuredField.item(parsing: field)?.value == .string(value))
    }

    @Test(
        "A string without an end, with another escape or with another character is malformed",
        arguments: [
            #"""#, #""foo"#, #""foo\""#, #""foo\"#, #""foo \,""#, #""\n""#, "\"f\u{FC}\"", "\"foo\tbar\"",
            "\"foo\nbar\"", "\"\u{7F}\"", "\"\0\"", "'foo'", #""foo"bar"#, #""foo" "bar""#,
        ])
    func malformedStrings(field: String) {
        #expect(StructuredField.item(parsing: field) == nil)
    }

    @Test(
        "A token begins with a letter or an asterisk and may contain colons and slashes",
        arguments: ["a_b-c.d3:f%00/*", "fooBar", "FooBar", "A", "*", "*/*", "a", "text/html", "a!#$&'*+^`|~", "x:y//z"])
    func tokens(field: String) {
        #expect(StructuredField.item(parsing: field)?.value == .token(field))
    }

    @Test(
        "A token that begins with another character or contains one is malformed",
        arguments: ["!a", "/a", "#", "a b", "a\"b\"", "a(", "a{", "a@b", "a[", "\u{E4}", "a\u{E4}", "a,b", "a=b", "~a"])
    func malformedTokens(field: String) {
        #expect(StructuredField.item(parsing: field) == nil)
    }

    @Test(
        "A byte sequence is Base64 with or without its padding",
        arguments: [
            (":aGVsbG8=:", "hello"), (":aGVsbG8:", "hello"), ("::", ""), (":YQ==:", "a"), (":YQ:", "a"),
            (":YWI=:", "ab"), (":YWJj:", "abc"), (":Pz8/Pz8+:", "?????>"),
        ])
    func byteSequences(field: String, content: String) {
        #expect(StructuredField.item(parsing: field)?.value == .byteSequence(Data(content.utf8)))
    }

    @Test("The bits of a byte sequence that follow its last byte are ignored")
    func paddingBits() {
        #expect(StructuredField.item(parsing: ":iZ==:")?.value == .byteSequence(Data([0x89])))
    }

    @Test(
        "A byte sequence without an end, with wrong padding or with another character is malformed",
        arguments: [
            ":", ":aGVsbG8=", ":aGVsbG8", "aGVsbG8=:", ":aGVsbG8==:", ":YQ=:", ":=:", ":====:", ":A:", ":A===:",
            ":=aGVsbG8=:", ":a=GVsbG8=:", ":aGVsbG8=!:", ":aGVsbG!8=:", ":aGVsb G8=:", ":aGVs\nbG8=:", ":    :",
            ":_-Ah:", ":aGVsbG8.:", ":\u{E4}aGVs:", ":YQ==YQ==:",
        ])
    func malformedByteSequences(field: String) {
        #expect(StructuredField.item(parsing: field) == nil)
    }

    @Test("A Boolean is a question mark and a digit", arguments: [("?1", true), ("?0", false)])
    func booleans(field: String, value: Bool) {
        #expect(StructuredField.item(parsing: field)?.value == .boolean(value))
    }

    @Test(
        "A Boolean with another value is malformed",
        arguments: ["?", "?2", "?T", "?t", "?true", "? 1", "?01", "?\u{E4}", "? ", "?-1"])
    func malformedBooleans(field: String) {
        #expect(StructuredField.item(parsing: field) == nil)
    }

    @Test(
        "A date is an integer after a commercial at",
        arguments: [
            ("@1659578233", 1_659_578_233), ("@0", 0), ("@-1", -1), ("@999999999999999", 999_999_999_999_999),
        ] as [(String, Int64)])
    func dates(field: String, seconds: Int64) {
        #expect(
            StructuredField.item(parsing: field)?.value == .date(Date(timeIntervalSince1970: TimeInterval(seconds))))
    }

    @Test(
        "A date that is not an integer is malformed",
        arguments: ["@", "@ 1", "@1.0", "@1659578233.12", "@a", "@\"1\"", "@@1", "@1000000000000000", "@--1"])
    func malformedDates(field: String) {
        #expect(StructuredField.item(parsing: field) == nil)
    }

    @Test(
        "A display string is percent-encoded UTF-8",
        arguments: [
            ("%\"foo bar\"", "foo bar"), ("%\"\"", ""), ("%\"f%c3%bc%c3%bc\"", "f\u{FC}\u{FC}"),
            ("%\"%e2%82%ac\"", "\u{20AC}"), ("%\"%22\\%25\"", "\"\\%"), ("%\"%0a%00%7f\"", "\n\0\u{7F}"),
            ("%\"%f0%9f%8d%ba\"", "\u{1F37A}"),
        ])
    func displayStrings(field: String, value: String) {
        #expect(StructuredField.item(parsing: field)?.value == .displayString(value))
    }

    @Test(
        "A display string with an incomplete or uppercase triplet, invalid UTF-8 or another character is malformed",
        arguments: [
            "%", "%foo", "%\"", "%\"foo", "%'foo'", "% \"foo\"", "%\"f%C3%BC\"", "%\"%c3%BC\"", "%\"%\"", "%\"%c\"",
            "%\"%g0\"", "%\"%c3\"", "%\"%c3%28\"", "%\"%a0%a1\"", "%\"%e2%28%a1\"", "%\"%f0%28%8c%bc\"",
            "%\"%ed%a0%80\"", "%\"%c0%af\"", "%\"%f4%90%80%80\"", "%\"f\u{FC}\"", "%\"\t\"", "%\"\u{7F}\"", "%\"%0",
        ])
    func malformedDisplayStrings(field: String) {
        #expect(StructuredField.item(parsing: field) == nil)
    }

    @Test("Spaces around a field are skipped", arguments: ["1", " 1", "1 ", "   1   "])
    func spaces(field: String) {
        #expect(StructuredField.item(parsing: field) == Item(1))
    }

    @Test(
        "An item that is empty, surrounded by other whitespace or followed by anything is malformed",
        arguments: ["", " ", "\t1", "1\t", "\n1", "1\n", "1 a", "1 ;a", "(1)", "\u{A0}1", "=", ";a", ","])
    func malformedItems(field: String) {
        #expect(StructuredField.item(parsing: field) == nil)
    }

    // MARK: Parameters

    @Test("Parameters have keys and values, and one without a value is true")
    func parameters() {
        let item = StructuredField.item(
            parsing: "text/html;charset=utf-8;q=0.5;a;*b=?0;c=\"d;e\";f=:YQ==:;g=@1;h=%\"i\"")
        #expect(item?.value == .token("text/html"))
        #expect(
            item?.parameters == [
                "charset": .token("utf-8"), "q": 0.5, "a": true, "*b": false, "c": "d;e",
                "f": .byteSequence(Data("a".utf8)), "g": .date(Date(timeIntervalSince1970: 1)),
                "h": .displayString("i"),
            ])
    }

    @Test("Spaces may follow a semicolon", arguments: ["1;a;b=2", "1; a;   b=2", "1;a;b=2  "])
    func spacesOfParameters(field: String) {
        #expect(StructuredField.item(parsing: field)?.parameters == ["a": true, "b": 2])
    }

    @Test("Of a repeated parameter, the last value applies, in the place of the first")
    func repeatedParameters() {
        #expect(StructuredField.item(parsing: "1;a=1;b=2;a=3")?.parameters == ["a": 3, "b": 2])
    }

    @Test(
        "Keys consist of lowercase letters, digits and some marks, and begin with a letter or an asterisk",
        arguments: ["a", "*", "*a", "a-b_c.d*1", "abc", "z9"])
    func keys(key: String) {
        #expect(StructuredField.item(parsing: "1;\(key)=2")?.parameters == [key: 2])
    }

    @Test(
        "A malformed parameter makes the field malformed",
        arguments: [
            "1;", "1;;a", "1; ", "1;A", "1;1a", "1;-a", "1;_a", "1;a=", "1;a= 1", "1;a =1", "1 ;a", "1;a=(1)", "1;\ta",
            "1;a=1;", "1;a B=1", "1;\u{E4}=1", "1;a==1", "1;=1",
        ])
    func malformedParameters(field: String) {
        #expect(StructuredField.item(parsing: field) == nil)
    }

    // MARK: Lists

    @Test(
        "The members of a list are separated by commas, spaces and tabs",
        arguments: ["1, 42", "1,42", "1 , 42", "1\t,\t42", "1 \t , \t 42", "  1, 42  ", "1,42\t"])
    func lists(field: String) {
        #expect(StructuredField.list(parsing: field) == Self.items(1, 42))
    }

    @Test("An empty list has no members", arguments: ["", " ", "    "])
    func emptyLists(field: String) {
        #expect(StructuredField.list(parsing: field) == [])
    }

    @Test("A list has members of any type with parameters")
    func mixedList() {
        #expect(
            StructuredField.list(parsing: "a;b=1, \"c,d\", 1.5;e, (f g);h") == [
                .item(.token("a"), parameters: ["b": 1]), .item("c,d"), .item(1.5, parameters: ["e": true]),
                .innerList([Item(.token("f")), Item(.token("g"))], parameters: ["h": true]),
            ])
    }

    @Test(
        "A list with an empty member, a trailing comma or no comma is malformed",
        arguments: [
            ",", "1,", "1, ", "1,,42", "1, ,42", ",1", "1 42", "1;a 42", "1,42;", "\t1, 42", "1\u{A0},2", "1;,2",
        ])
    func malformedLists(field: String) {
        #expect(StructuredField.list(parsing: field) == nil)
    }

    // MARK: Inner lists

    @Test(
        "The items of an inner list are separated by spaces", arguments: ["(1 2)", "( 1   2 )", "(1  2 )", " (1 2) "])
    func innerLists(field: String) {
        #expect(StructuredField.list(parsing: field) == [.innerList([Item(1), Item(2)])])
    }

    @Test("An inner list may be empty", arguments: ["()", "( )", "(    )"])
    func emptyInnerLists(field: String) {
        #expect(StructuredField.list(parsing: field) == [.innerList([])])
    }

    @Test("The items of an inner list and the inner list itself have parameters")
    func parametersOfInnerLists() {
        let items = [
            Item(1, parameters: ["a": true]), Item("b", parameters: ["c": 2]),
        ]
        #expect(StructuredField.list(parsing: "(1;a \"b\"; c=2);d=?0") == [.innerList(items, parameters: ["d": false])])
    }

    @Test(
        "An inner list without an end, with other separators or inside another one is malformed",
        arguments: [
            "(", "(1", "(1 ", "(1 2", ")", "1)", "(1))", "(1,2)", "(1, 2)", "(1\t2)", "(\"a\"\"b\")", "(a(b))", "((1))",
            "(1 (2))", "(1 2)3", "(1 2) 3", "(1;)", "(1);", "(1);a=(2)", "(;a)", "(,)", "(1\t)",
        ])
    func malformedInnerLists(field: String) {
        #expect(StructuredField.list(parsing: field) == nil)
    }

    // MARK: Dictionaries

    @Test("A dictionary has members by key, and a member without a value is true")
    func dictionaries() {
        #expect(
            StructuredField.dictionary(parsing: "en=\"Applepie\", da=:aGk=:, a, b;c=1, d=?0;e, f=(1 2);g, *h=i") == [
                "en": .item("Applepie"), "da": .item(.byteSequence(Data("hi".utf8))), "a": .item(true),
                "b": .item(true, parameters: ["c": 1]), "d": .item(false, parameters: ["e": true]),
                "f": .innerList([Item(1), Item(2)], parameters: ["g": true]), "*h": .item(.token("i")),
            ])
    }

    @Test("An empty dictionary has no members", arguments: ["", " "])
    func emptyDictionaries(field: String) {
        #expect(StructuredField.dictionary(parsing: field) == [:])
    }

    @Test(
        "The members of a dictionary are separated by commas, spaces and tabs", arguments: ["a=1,b", " a=1\t ,\t b "])
    func separatorsOfDictionaries(field: String) {
        #expect(
            StructuredField.dictionary(parsing: field) == ["a": .item(1), "b": .item(true)])
    }

    @Test("Of a repeated key, the last member applies with its parameters, in the place of the first")
    func repeatedKeys() {
        #expect(
            StructuredField.dictionary(parsing: "a=1;x=2, b=2, a;y") == [
                "a": .item(true, parameters: ["y": true]), "b": .item(2),
            ])
    }

    @Test(
        "A dictionary with a malformed key or value or a trailing comma is malformed",
        arguments: [
            ",", "a=1,", "a=1,,b=2", "a=1 b=2", "a=", "a= 1", "a =1", "=1", "A=1", "1a=1", "-a=1", "a=1, B=2", "a=(1",
            "a=((1))", "a=,b", "a,b=", "\ta=1", "a=1;", "a;=1", "a b", "a:1", "\"a\"=1", "(a)=1", "\u{E4}=1",
        ])
    func malformedDictionaries(field: String) {
        #expect(StructuredField.dictionary(parsing: field) == nil)
    }

    // MARK: Size

    @Test("A field of 100,000 members or items is parsed completely")
    func size() {
        let count = 100_000
        #expect(StructuredField.list(parsing: String(repeating: "a;b=1,", count: count) + "c")?.count == count + 1)
        let names = (0..<count).map { "k\($0)" }
        #expect(StructuredField.dictionary(parsing: names.joined(separator: ","))?.count == count)
        #expect(StructuredField.item(parsing: "1;" + names.joined(separator: ";"))?.parameters.count == count)
        #expect(
            StructuredField.list(parsing: "(" + String(repeating: "1 ", count: count) + ")") == [
                .innerList([Item](repeating: Item(1), count: count))
            ])
    }

    @Test("Nested lists of any depth are refused")
    func depth() {
        #expect(StructuredField.list(parsing: String(repeating: "(", count: 100_000)) == nil)
    }

    @Test("Every prefix and every changed byte of a field is parsed without a trap")
    func changes() {
        let bytes = Array("a=(1 -2.5;b);c=\"d\\\"\", e=:YQ==:;f, *g=%\"%e2%82%ac\", h=@1, i=?0, j=k/l".utf8)
        for index in bytes.indices {
            _ = StructuredField.dictionary(parsing: String(decoding: bytes[..<index], as: UTF8.self))
            for byte in stride(from: UInt8.min, to: .max, by: 3) {
                var changed = bytes
                changed[index] = byte
                _ = StructuredField.dictionary(parsing: String(decoding: changed, as: UTF8.self))
            }
        }
        #expect(StructuredField.dictionary(parsing: String(decoding: bytes, as: UTF8.self))?.count == 6)
    }
}
