import Foundation
import WebServiceCore

extension StructuredField {
    /// Returns the item in the value of a field (RFC 9651, section 4.2.3), or `nil` if the value is
    /// malformed.
    ///
    /// If a field is repeated, join its values with commas first.
    public static func item(parsing field: String) -> Item? {
        parsed(field) { parser throws(Malformed) in try parser.item() }
    }

    /// Returns the list in the value of a field (RFC 9651, section 4.2.1), or `nil` if the value is
    /// malformed.
    ///
    /// If a field is repeated, join its values with commas first. An empty value is an empty list.
    public static func list(parsing field: String) -> List? {
        parsed(field) { parser throws(Malformed) in try parser.list() }
    }

    /// Returns the dictionary in the value of a field (RFC 9651, section 4.2.2), or `nil` if the
    /// value is malformed.
    ///
    /// If a field is repeated, join its values with commas first. An empty value is an empty
    /// dictionary. If a key is repeated, the last member replaces the first one in its place.
    public static func dictionary(parsing field: String) -> Dictionary? {
        parsed(field) { parser throws(Malformed) in try parser.dictionary() }
    }

    private static func parsed<Value>(
        _ field: String, _ parse: (inout StructuredFieldParser) throws(Malformed) -> Value
    ) -> Value? {
        var parser = StructuredFieldParser(field)
        do {
            parser.skipSpaces()
            let value = try parse(&parser)
            parser.skipSpaces()
            return parser.isAtEnd ? value : nil
        } catch {
            return nil
        }
    }
}

/// A violation of the grammar.
private struct Malformed: Error {}

/// A parser (section 4.2). Lists are nested only once, so no recursion is necessary.
private struct StructuredFieldParser {
    private typealias Syntax = StructuredFieldSyntax

    private var scanner: FieldScanner

    init(_ field: String) {
        scanner = FieldScanner(field)
    }

    var isAtEnd: Bool { scanner.rest.isEmpty }

    mutating func skipSpaces() {
        scanner.take { $0 == UInt8(ascii: " ") }
    }

    private mutating func expect(_ mark: Unicode.Scalar) throws(Malformed) {
        guard scanner.take(mark) else { throw Malformed() }
    }

    // MARK: Lists, dictionaries and parameters

    mutating func list() throws(Malformed) -> StructuredField.List {
        var members: StructuredField.List = []
        while !isAtEnd {
            members.append(try member())
            try separator()
        }
        return members
    }

    mutating func dictionary() throws(Malformed) -> StructuredField.Dictionary {
        var members: StructuredField.Dictionary = [:]
        while !isAtEnd {
            let key = try key()
            members[key] =
                scanner.take("=")
                ? try member() : .item(true, parameters: try parameters())
            try separator()
        }
        return members
    }

    /// Skips the comma between two members. There is no comma after the last member.
    private mutating func separator() throws(Malformed) {
        scanner.take(while: ASCII.isSpaceOrTab)
        guard !isAtEnd else { return }
        try expect(",")
        scanner.take(while: ASCII.isSpaceOrTab)
        if isAtEnd { throw Malformed() }
    }

    private mutating func member() throws(Malformed) -> StructuredField.Member {
        guard scanner.take("(") else { return .item(try item()) }
        var items: [StructuredField.Item] = []
        while true {
            skipSpaces()
            if scanner.take(")") { return .innerList(items, parameters: try parameters()) }
            items.append(try item())
            guard let next = scanner.rest.first, " )".utf8.contains(next) else { throw Malformed() }
        }
    }

    mutating func item() throws(Malformed) -> StructuredField.Item {
        StructuredField.Item(try bareItem(), parameters: try parameters())
    }

    private mutating func parameters() throws(Malformed) -> StructuredField.Parameters {
        var parameters: StructuredField.Parameters = [:]
        while scanner.take(";") {
            skipSpaces()
            let key = try key()
            parameters[key] = scanner.take("=") ? try bareItem() : .boolean(true)
        }
        return parameters
    }

    private mutating func key() throws(Malformed) -> String {
        guard let first = scanner.rest.first, Syntax.isKeyStart(first) else { throw Malformed() }
        return String(decoding: scanner.take(while: Syntax.isKey), as: UTF8.self)
    }

    // MARK: Bare items

    private mutating func bareItem() throws(Malformed) -> StructuredField.BareItem {
        if scanner.take("\"") { return .string(try string()) }
        if scanner.take(":") { return .byteSequence(try byteSequence()) }
        if scanner.take("%") { return .displayString(try displayString()) }
        if scanner.take("@") {
            guard case .integer(let seconds) = try number() else { throw Malformed() }
            return .date(Date(timeIntervalSince1970: TimeInterval(seconds)))
        }
        if scanner.take("?") {
            if scanner.take("1") { return .boolean(true) }
            try expect("0")
            return .boolean(false)
        }
        guard let first = scanner.rest.first, Syntax.isTokenStart(first) else { return try number() }
        return .token(String(decoding: scanner.take(while: Syntax.isToken), as: UTF8.self))
    }

    private mutating func number() throws(Malformed) -> StructuredField.BareItem {
        let sign: Int64 = scanner.take("-") ? -1 : 1
        var digits = scanner.take(while: ASCII.isDigit)
        let isDecimal = !digits.isEmpty && scanner.take(".")
        guard (1...(isDecimal ? Syntax.decimalDigits : Syntax.integerDigits)).contains(digits.count) else {
            throw Malformed()
        }
        if isDecimal {
            let fraction = scanner.take(while: ASCII.isDigit)
            guard (1...3).contains(fraction.count) else { throw Malformed() }
            digits += fraction + repeatElement(UInt8(ascii: "0"), count: 3 - fraction.count)
        }
        let number = sign * digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        return isDecimal ? .decimal(Double(number) / 1_000) : .integer(number)
    }

    private mutating func string() throws(Malformed) -> String {
        var content: [UInt8] = []
        while !scanner.take("\"") {
            let isEscaped = scanner.take("\\")
            let byte = try printableByte()
            guard !isEscaped || "\"\\".utf8.contains(byte) else { throw Malformed() }
            content.append(byte)
        }
        return String(decoding: content, as: UTF8.self)
    }

    private mutating func displayString() throws(Malformed) -> String {
        try expect("\"")
        var content: [UInt8] = []
        while !scanner.take("\"") {
            content.append(scanner.take("%") ? try hexDigit() << 4 | hexDigit() : try printableByte())
        }
        guard let string = String(validating: content, as: UTF8.self) else { throw Malformed() }
        return string
    }

    private mutating func printableByte() throws(Malformed) -> UInt8 {
        guard let byte = scanner.take(), Syntax.isPrintable(byte) else { throw Malformed() }
        return byte
    }

    /// Reads a hexadecimal digit, which must be in lower case (section 3.3.8).
    private mutating func hexDigit() throws(Malformed) -> UInt8 {
        guard let byte = scanner.take(), ASCII.isDigit(byte) || Syntax.isLowercase(byte),
            let value = ASCII.hexValue(byte)
        else { throw Malformed() }
        return value
    }

    /// Reads bytes in Base64. The padding may be missing (section 4.2.7).
    private mutating func byteSequence() throws(Malformed) -> Data {
        let digits = scanner.take { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "=") }
        let padding = repeatElement(UInt8(ascii: "="), count: (4 - digits.count % 4) % 4)
        let given = scanner.take { $0 == UInt8(ascii: "=") }
        guard given.isEmpty || given.elementsEqual(padding), let bytes = Data(base64Encoded: Data(digits + padding))
        else { throw Malformed() }
        try expect(":")
        return bytes
    }
}
