import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Scanner of header fields", .permit)
struct FieldScannerTests {
    private func text(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: Array(bytes), as: UTF8.self)
    }

    /// Returns the parameters as strings: a value after `=`, in quotes if it was quoted, and `…` if
    /// it has no closing quote.
    private func parameters(_ field: String, isInList: Bool = false) -> [String] {
        var scanner = FieldScanner(field)
        return scanner.parameters(isInList: isInList).map {
            let value = text($0.value)
            return switch $0.form {
            case .absent: $0.name
            case .token: "\($0.name)=\(value)"
            case .quoted: "\($0.name)=\"\(value)\""
            case .unterminated: "\($0.name)=\"\(value)…"
            }
        }
    }

    @Test(
        "A quoted string ends at a quote that is not escaped",
        arguments: [
            ("a\"b", "a", true, "b"), ("\"", "", true, ""), ("a\\\"b\"c", "a\"b", true, "c"),
            ("a\\\\\"b", "a\\", true, "b"), ("\\a\"", "a", true, ""), ("a", "a", false, ""),
            ("a\\\"", "a\"", false, ""),
            ("a\\", "a", false, ""), ("", "", false, ""),
        ])
    func quotedStrings(field: String, content: String, isTerminated: Bool, rest: String) {
        var scanner = FieldScanner(field)
        let string = scanner.quotedString()
        #expect(text(string.content) == content)
        #expect(string.isTerminated == isTerminated)
        #expect(text(scanner.rest) == rest)
    }

    @Test(
        "A mark inside of a quoted string is skipped",
        arguments: [
            ("a,b", ",b", false), ("\"a,\\\",\",b", ",b", false), (" \t,b", ",b", true), ("\"a,b", "", false),
            ("", "", true), (",", ",", true), ("a\"", "", false),
        ])
    func skipping(field: String, rest: String, areSpaces: Bool) {
        var scanner = FieldScanner(field)
        #expect(scanner.skip(to: ",") == areSpaces)
        #expect(text(scanner.rest) == rest)
    }

    @Test(
        "Parameters follow the first semicolon outside of quoted strings",
        arguments: [
            ("text/html; charset=utf-8", ["charset=utf-8"]), ("a;B=C;b", ["b=C", "b"]), ("a", []), ("", []), ("a;", []),
            ("\"a;b=c\"; d", ["d"]), ("a; ;;b", ["b"]), ("a; =b; c", ["c"]), (";a", ["a"]),
            ("a; b = c , d ; e=", ["b=c , d", "e="]), ("a; b=\"c;d\\\"\"; e", ["b=\"c;d\"\"", "e"]),
            ("a; b= \"c\" d; e", ["b=\"c\"", "e"]), ("a; b=\"c; d", ["b=\"c; d…"]), ("a; b=c\"d; e", ["b=c\"d", "e"]),
        ])
    func parametersOfOneValue(field: String, parameters: [String]) {
        #expect(self.parameters(field) == parameters)
    }

    @Test(
        "A comma or a syntax error ends the parameters of a member of a list",
        arguments: [
            ("; a=b, c", ["a=b"]), (";a=\"b,c\",d", ["a=\"b,c\""]), (";a,b", ["a"]), (" ;a ; b", ["a", "b"]),
            ("x;a", []), (";a=\"b\" c;d", ["a=\"b\""]), (";a=b c;d", ["a=b c", "d"]), (",;a", []),
        ])
    func parametersInList(field: String, parameters: [String]) {
        #expect(self.parameters(field, isInList: true) == parameters)
    }

    @Test("The rest of a list follows the parameters of a member")
    func restOfList() {
        var scanner = FieldScanner(";a=\"b\" , c")
        _ = scanner.parameters(isInList: true)
        #expect(text(scanner.rest) == ", c")
    }

    @Test("A field of 100,000 parameters, quotes or escapes is scanned completely")
    func size() {
        let count = 100_000
        #expect(parameters(String(repeating: ";a=\"b\"", count: count)).count == count)
        #expect(parameters(String(repeating: ";a,", count: count)).count == count)
        #expect(parameters("a" + String(repeating: "\"\"", count: count) + ";b") == ["b"])
        #expect(parameters(";a=\"" + String(repeating: "\\", count: 2 * count)).first?.utf8.count == count + 6)
    }
}
