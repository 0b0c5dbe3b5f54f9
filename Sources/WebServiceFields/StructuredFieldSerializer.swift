import Foundation
public import WebServiceCore

extension StructuredField {
    /// Returns the value of a field that is an item (RFC 9651, section 4.1.3).
    ///
    /// - Throws: `invalidHeader` for an integer or a date with more than 15 digits, for a decimal
    ///   that is not finite or has more than 12 digits before the decimal point, for a string that
    ///   contains characters other than printable ASCII, or for an invalid token or key. The
    ///   message names the type and the key.
    public static func serialized(_ item: Item) throws(WebServiceError) -> String {
        var serializer = StructuredFieldSerializer()
        try serializer.append(item)
        return serializer.text
    }

    /// Returns the value of a field that is a list (RFC 9651, section 4.1.1). Returns `nil` if the
    /// list is empty, because the field is then not sent.
    ///
    /// - Throws: The same errors as ``serialized(_:)->String``.
    public static func serialized(_ list: List) throws(WebServiceError) -> String? {
        guard !list.isEmpty else { return nil }
        var serializer = StructuredFieldSerializer()
        for (index, member) in list.enumerated() {
            if index > 0 { serializer.write(", ") }
            try serializer.append(member)
        }
        return serializer.text
    }

    /// Returns the value of a field that is a dictionary (RFC 9651, section 4.1.2). Returns `nil`
    /// if the dictionary is empty, because the field is then not sent.
    ///
    /// - Throws: The same errors as ``serialized(_:)->String``.
    public static func serialized(_ dictionary: Dictionary) throws(WebServiceError) -> String? {
        guard !dictionary.isEmpty else { return nil }
        var serializer = StructuredFieldSerializer()
        for (index, (key, member)) in dictionary.enumerated() {
            if index > 0 { serializer.write(", ") }
            try serializer.append(member, for: key)
        }
        return serializer.text
    }
}

private struct StructuredFieldSerializer {
    private typealias Syntax = StructuredFieldSyntax

    private var bytes: [UInt8] = []
    /// The key whose value is being serialized, for errors.
    private var key: String?

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func write(_ text: String) {
        bytes += text.utf8
    }

    // MARK: Members and parameters

    mutating func append(_ member: StructuredField.Member, for key: String) throws(WebServiceError) {
        try append(key: key)
        if case .item(let item) = member, item.value == .boolean(true) {
            return try append(item.parameters)
        }
        write("=")
        try append(member)
    }

    mutating func append(_ member: StructuredField.Member) throws(WebServiceError) {
        switch member {
        case .item(let item): try append(item)
        case .innerList(let list):
            write("(")
            for (index, item) in list.items.enumerated() {
                if index > 0 { write(" ") }
                try append(item)
            }
            write(")")
            try append(list.parameters)
        }
    }

    mutating func append(_ item: StructuredField.Item) throws(WebServiceError) {
        try append(item.value)
        try append(item.parameters)
    }

    private mutating func append(_ parameters: StructuredField.Parameters) throws(WebServiceError) {
        let outer = key
        for (key, value) in parameters {
            write(";")
            try append(key: key)
            guard value != .boolean(true) else { continue }
            write("=")
            try append(value)
        }
        key = outer
    }

    private mutating func append(key: String) throws(WebServiceError) {
        guard let first = key.utf8.first, Syntax.isKeyStart(first), key.utf8.allSatisfy(Syntax.isKey) else {
            throw WebServiceError(
                .invalidHeader,
                "the key '\(key.shortenedForDisplay)' is invalid; use lowercase letters, digits, '_', '-', '.' "
                    + "and '*', beginning with a letter or '*'")
        }
        self.key = key
        write(key)
    }

    // MARK: Bare items

    private mutating func append(_ value: StructuredField.BareItem) throws(WebServiceError) {
        switch value {
        case .integer(let number):
            guard number.magnitude < Syntax.bound else { throw failure("integer", "has more than 15 digits") }
            write(String(number))
        case .decimal(let number): try append(decimal: number)
        case .string(let string): try append(string: string)
        case .token(let token):
            guard let first = token.utf8.first, Syntax.isTokenStart(first), token.utf8.allSatisfy(Syntax.isToken)
            else { throw failure("token", "is empty or contains a character that is not allowed; use a string") }
            write(token)
        case .byteSequence(let data): write(":" + data.base64EncodedString() + ":")
        case .boolean(let boolean): write(boolean ? "?1" : "?0")
        case .date(let date):
            let seconds = date.timeIntervalSince1970.rounded(.down)
            guard seconds.magnitude < Double(Syntax.bound) else { throw failure("date", "has more than 15 digits") }
            write("@" + String(Int64(seconds)))
        case .displayString(let string): append(displayString: string)
        }
    }

    private mutating func append(decimal: Double) throws(WebServiceError) {
        guard let thousandths = Self.thousandths(of: decimal) else {
            throw failure("decimal", "is not finite or has more than 12 digits before the point")
        }
        let (whole, fraction) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1_000)
        var digits = String(fraction + 1_000).dropFirst()
        while digits.utf8.count > 1, digits.last == "0" { digits = digits.dropLast() }
        write((thousandths < 0 ? "-" : "") + "\(whole).\(digits)")
    }

    /// Returns a decimal in thousandths, rounded to the nearest integer, or to the even one if two
    /// are equally near.
    ///
    /// - Returns: `nil` if the decimal is out of range.
    private static func thousandths(of decimal: Double) -> Int64? {
        let magnitude = decimal.magnitude
        guard magnitude < Double(Syntax.bound / 1_000) else { return nil }
        // The product may be rounded up to the next integer, but never down to a lower one. The
        // midpoint between two thousandths, such as 0.0025, is represented by the nearest `Double`.
        let floor = Int64((magnitude * 1_000).rounded(.down))
        let middle = (Double(floor) + 0.5) / 1_000
        let isRoundedUp = magnitude > middle || magnitude == middle && floor % 2 == 1
        let rounded = isRoundedUp ? floor + 1 : floor
        guard rounded < Syntax.bound else { return nil }
        return decimal < 0 ? -rounded : rounded
    }

    private mutating func append(string: String) throws(WebServiceError) {
        write("\"")
        for byte in string.utf8 {
            guard Syntax.isPrintable(byte) else {
                throw failure("string", "contains a character other than printable ASCII; use a display string")
            }
            if "\"\\".utf8.contains(byte) { write("\\") }
            bytes.append(byte)
        }
        write("\"")
    }

    private mutating func append(displayString string: String) {
        write("%\"")
        for byte in string.utf8 {
            if Syntax.isPrintable(byte), !"%\"".utf8.contains(byte) {
                bytes.append(byte)
            } else {
                write("%" + (byte < 0x10 ? "0" : "") + String(byte, radix: 16))
            }
        }
        write("\"")
    }

    private func failure(_ type: String, _ reason: String) -> WebServiceError {
        let owner = key.map { " of '\($0)'" } ?? ""
        return WebServiceError(.invalidHeader, "the \(type)\(owner) \(reason)")
    }
}
