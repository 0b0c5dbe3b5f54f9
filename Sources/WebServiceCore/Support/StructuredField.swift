import Foundation

/// Structured fields (RFC 9651): items, lists and dictionaries.
///
/// Parsing is strict (section 4.2): a field that the grammar does not allow has no value. Lists are
/// nested once at most, so no recursion is necessary. Several field lines are joined with commas.
package enum StructuredField {
    /// A value without parameters (section 3.3).
    package enum BareItem: Hashable, Sendable {
        /// A number of at most 15 digits.
        case integer(Int64)
        /// A number of at most 12 digits before and 3 digits after the decimal point, in
        /// thousandths.
        case decimal(thousandths: Int64)
        case string(String)
        case token(String)
        case bytes([UInt8])
        case boolean(Bool)
        /// The number of seconds since 1970-01-01.
        case date(Int64)
        case displayString(String)
    }

    /// Parameters by key, regardless of their order. If a key is repeated, the last value applies.
    package typealias Parameters = [String: BareItem]

    package struct Item: Hashable, Sendable {
        package var value: BareItem
        package var parameters: Parameters = [:]
    }

    /// A member of a list or a dictionary.
    package enum Member: Hashable, Sendable {
        case item(Item)
        case innerList([Item], Parameters)
    }

    package static func item(_ field: String) -> Item? {
        parsed(field) { try $0.item() }
    }

    package static func list(_ field: String) -> [Member]? {
        parsed(field) { try $0.list() }
    }

    /// Returns the members by key. If a key is repeated, the last member applies.
    package static func dictionary(_ field: String) -> [String: Member]? {
        parsed(field) { try $0.dictionary() }
    }

    private static func parsed<Value>(
        _ field: String, _ parse: (inout StructuredFieldParser) throws -> Value
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

private struct StructuredFieldParser {
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

    mutating func list() throws(Malformed) -> [StructuredField.Member] {
        var members: [StructuredField.Member] = []
        while !isAtEnd {
            members.append(try member())
            try separator()
        }
        return members
    }

    mutating func dictionary() throws(Malformed) -> [String: StructuredField.Member] {
        var members: [String: StructuredField.Member] = [:]
        while !isAtEnd {
            let key = try key()
            members[key] =
                scanner.take("=")
                ? try member() : .item(StructuredField.Item(value: .boolean(true), parameters: try parameters()))
            try separator()
        }
        return members
    }

    /// Skips the comma between two members. The last member has none.
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
            if scanner.take(")") { return .innerList(items, try parameters()) }
            items.append(try item())
            guard let next = scanner.rest.first, " )".utf8.contains(next) else { throw Malformed() }
        }
    }

    mutating func item() throws(Malformed) -> StructuredField.Item {
        StructuredField.Item(value: try bareItem(), parameters: try parameters())
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
        guard let first = scanner.rest.first, Self.isLowercase(first) || first == UInt8(ascii: "*") else {
            throw Malformed()
        }
        let key = scanner.take { Self.isLowercase($0) || ASCII.isDigit($0) || "_-.*".utf8.contains($0) }
        return String(decoding: key, as: UTF8.self)
    }

    private static func isLowercase(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
    }

    // MARK: Bare items

    private mutating func bareItem() throws(Malformed) -> StructuredField.BareItem {
        if scanner.take("\"") { return .string(try string()) }
        if scanner.take(":") { return .bytes(try byteSequence()) }
        if scanner.take("%") { return .displayString(try displayString()) }
        if scanner.take("@") {
            guard case .integer(let seconds) = try number() else { throw Malformed() }
            return .date(seconds)
        }
        if scanner.take("?") {
            if scanner.take("1") { return .boolean(true) }
            try expect("0")
            return .boolean(false)
        }
        guard let first = scanner.rest.first, ASCII.isAlpha(first) || first == UInt8(ascii: "*") else {
            return try number()
        }
        return .token(String(decoding: scanner.take { ASCII.isToken($0) || ":/".utf8.contains($0) }, as: UTF8.self))
    }

    private mutating func number() throws(Malformed) -> StructuredField.BareItem {
        let sign: Int64 = scanner.take("-") ? -1 : 1
        var digits = scanner.take(while: ASCII.isDigit)
        let isDecimal = !digits.isEmpty && scanner.take(".")
        guard (1...(isDecimal ? 12 : 15)).contains(digits.count) else { throw Malformed() }
        if isDecimal {
            let fraction = scanner.take(while: ASCII.isDigit)
            guard (1...3).contains(fraction.count) else { throw Malformed() }
            digits += fraction + repeatElement(UInt8(ascii: "0"), count: 3 - fraction.count)
        }
        let number = sign * digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        return isDecimal ? .decimal(thousandths: number) : .integer(number)
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
        guard let byte = scanner.take(), byte >= 0x20, byte < 0x7F else { throw Malformed() }
        return byte
    }

    /// Removes a hexadecimal digit, which must be in lower case (section 3.3.8).
    private mutating func hexDigit() throws(Malformed) -> UInt8 {
        guard let byte = scanner.take(), ASCII.isDigit(byte) || Self.isLowercase(byte),
            let value = ASCII.hexValue(byte)
        else { throw Malformed() }
        return value
    }

    /// Removes bytes in Base64. The padding may be missing (section 4.2.7).
    private mutating func byteSequence() throws(Malformed) -> [UInt8] {
        let digits = scanner.take { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "=") }
        let padding = repeatElement(UInt8(ascii: "="), count: (4 - digits.count % 4) % 4)
        let given = scanner.take { $0 == UInt8(ascii: "=") }
        guard given.isEmpty || given.elementsEqual(padding), let bytes = Data(base64Encoded: Data(digits + padding))
        else { throw Malformed() }
        try expect(":")
        return [UInt8](bytes)
    }
}
