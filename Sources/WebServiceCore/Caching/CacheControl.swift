import Foundation

/// The directives of `Cache-Control` fields (RFC 9111, section 5.2), of requests and of answers alike.
///
/// Names are compared without regard to case, quoted strings are read as what they quote, and a directive whose argument makes no sense counts as the
/// strictest one. Of a directive that stands there several times the strictest counts.
struct CacheControl: Sendable {
    /// Longer times are taken for this one: 2³¹ seconds (RFC 9111, section 1.2.2).
    static let maximum: TimeInterval = 2_147_483_648

    /// `nil` for a directive without an argument, an empty text for one that cannot be read.
    private var arguments: [String: [String?]] = [:]

    init(_ fields: [String]) {
        for field in fields {
            var reader = DirectiveReader(rest: Array(field.utf8)[...])
            while let (name, argument) = reader.next() { arguments[name, default: []].append(argument) }
        }
    }

    /// Whether a directive is there, with or without an argument.
    func has(_ name: String) -> Bool { arguments[name] != nil }

    /// Whether `no-cache` or `private` is there for the whole answer, not only for some fields of it.
    func isWhole(_ name: String) -> Bool {
        arguments[name]?.contains { $0.map(Self.names)?.isEmpty ?? true } == true
    }

    /// The fields that `no-cache` or `private` is limited to, in lower case.
    func fields(_ name: String) -> [String] {
        (arguments[name] ?? []).flatMap { $0.map(Self.names) ?? [] }
    }

    /// The smallest number of seconds that a directive has; `nil` where it is not there.
    ///
    /// - Parameter bare: What one without an argument means.
    func least(_ name: String, bare: TimeInterval = 0) -> TimeInterval? {
        arguments[name]?.map { $0.map { Self.seconds($0) ?? 0 } ?? bare }.min()
    }

    /// The largest number of seconds that a directive has; `nil` where it is not there. What cannot be read is more than anything.
    func greatest(_ name: String) -> TimeInterval? {
        arguments[name]?.map { $0.flatMap(Self.seconds) ?? .infinity }.max()
    }

    /// A number of seconds (RFC 9111, section 1.2.2): digits alone, however many.
    static func seconds(_ text: some StringProtocol) -> TimeInterval? {
        guard !text.isEmpty, text.utf8.allSatisfy(ASCII.isDigit) else { return nil }
        let digits = text.drop { $0 == "0" }
        return digits.utf8.count > 10 ? maximum : min(TimeInterval(Int64(digits) ?? 0), maximum)
    }

    /// The members of a list, in lower case (RFC 9110, section 5.6.1); of names, so that no member holds a comma itself.
    static func names(_ list: some StringProtocol) -> [String] {
        list.utf8.split { $0 == UInt8(ascii: ",") || $0 == 0x20 || $0 == 0x09 }.map { String(decoding: $0.map(ASCII.lowercased), as: UTF8.self) }
    }
}

/// Takes one directive after another from the value of a field.
private struct DirectiveReader {
    var rest: ArraySlice<UInt8>

    /// - Returns: The name in lower case and the argument; `nil` at the end.
    mutating func next() -> (name: String, argument: String?)? {
        while true {
            rest = rest.drop { $0 == UInt8(ascii: ",") || $0 == 0x20 || $0 == 0x09 }
            guard !rest.isEmpty else { return nil }
            let name = rest.prefix(while: ASCII.isToken)
            rest = rest.dropFirst(name.count)
            let argument = argument()
            if !name.isEmpty { return (String(decoding: name.map(ASCII.lowercased), as: UTF8.self), argument) }
        }
    }

    /// What stands behind the name up to the comma.
    private mutating func argument() -> String? {
        guard rest.first == UInt8(ascii: "=") else { return isOnlyBlank(skip()) ? nil : "" }
        rest.removeFirst()
        if rest.first == UInt8(ascii: "\"") {
            let text = quoted()
            return isOnlyBlank(skip()) ? text : ""
        }
        let token = rest.prefix(while: ASCII.isToken)
        rest = rest.dropFirst(token.count)
        return isOnlyBlank(skip()) ? String(decoding: token, as: UTF8.self) : ""
    }

    /// Passes over everything up to the next comma that is not quoted.
    private mutating func skip() -> [UInt8] {
        var skipped: [UInt8] = []
        while let byte = rest.first, byte != UInt8(ascii: ",") {
            skipped.append(byte)
            if byte == UInt8(ascii: "\"") { _ = quoted() } else { rest.removeFirst() }
        }
        return skipped
    }

    /// What a quoted string quotes (RFC 9110, section 5.6.4); one without an end goes on to the end of the field.
    private mutating func quoted() -> String {
        var text: [UInt8] = []
        rest.removeFirst()
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() { text.append(escaped) } else { text.append(byte) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private func isOnlyBlank(_ bytes: [UInt8]) -> Bool { bytes.allSatisfy { $0 == 0x20 || $0 == 0x09 } }
}
