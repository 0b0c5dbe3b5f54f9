/// A scanner of header fields with tokens, quoted strings, parameters and lists of these (RFC 9110,
/// section 5.6).
///
/// The scanner tolerates common deviations from the grammar: empty members, spaces around `=`,
/// parameters without a value, and quoted strings without an end. Each byte is examined a
/// constant number of times.
package struct FieldScanner {
    package private(set) var rest: ArraySlice<UInt8>

    package init(_ field: some StringProtocol) {
        rest = Array(field.utf8)[...]
    }

    package mutating func take() -> UInt8? { rest.popFirst() }

    /// Removes the next byte if it is the given mark, and returns whether it was removed.
    package mutating func take(_ mark: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: mark) else { return false }
        rest = rest.dropFirst()
        return true
    }

    @discardableResult
    package mutating func take(while belongs: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let taken = rest.prefix(while: belongs)
        rest = rest[taken.endIndex...]
        return taken
    }

    /// Removes the bytes before the first of several marks, and returns them without the spaces
    /// around them.
    mutating func text(before marks: String) -> ArraySlice<UInt8> {
        ASCII.trimmed(take { !marks.utf8.contains($0) })
    }

    /// Removes the spaces and empty members before a member of a list.
    package mutating func skipToMember() {
        take { ASCII.isSpaceOrTab($0) || $0 == UInt8(ascii: ",") }
    }

    /// Removes the bytes before a mark outside of quoted strings.
    ///
    /// - Returns: Whether these bytes are spaces.
    @discardableResult
    mutating func skip(to mark: Unicode.Scalar) -> Bool {
        var areSpaces = true
        while let byte = rest.first, byte != UInt8(ascii: mark) {
            rest = rest.dropFirst()
            if byte == UInt8(ascii: "\"") { _ = quotedString() }
            areSpaces = areSpaces && ASCII.isSpaceOrTab(byte)
        }
        return areSpaces
    }

    /// Removes the remainder of a quoted string after its opening quote, and returns its content.
    ///
    /// An unterminated string extends to the end of the field.
    mutating func quotedString() -> (content: [UInt8], isTerminated: Bool) {
        var content: [UInt8] = []
        while var byte = take() {
            if byte == UInt8(ascii: "\"") { return (content, true) }
            if byte == UInt8(ascii: "\\") {
                guard let escaped = take() else { break }
                byte = escaped
            }
            content.append(byte)
        }
        return (content, false)
    }

    /// A parameter such as `; name=value`.
    package struct Parameter {
        package enum Form { case absent, token, quoted, unterminated }

        /// The name, in lower case.
        package let name: String
        /// The value, without quotes.
        package let value: [UInt8]
        package let form: Form
    }

    /// Removes and returns the parameters that follow the current position.
    ///
    /// - Parameter isInList: Whether the field is a list. If `true`, a comma or a syntax error ends
    ///   the parameters. If `false`, the bytes before the first semicolon and the bytes after a
    ///   quoted string are skipped.
    package mutating func parameters(isInList: Bool = false) -> [Parameter] {
        let ends = isInList ? ";," : ";"
        var parameters: [Parameter] = []
        while true {
            if isInList { take(while: ASCII.isSpaceOrTab) } else { skip(to: ";") }
            guard take(";") else { return parameters }
            let name = ASCII.lowercased(text(before: "=" + ends))
            var value: (bytes: [UInt8], form: Parameter.Form) = ([], .absent)
            if take("=") {
                take(while: ASCII.isSpaceOrTab)
                if take("\"") {
                    let string = quotedString()
                    value = (string.content, string.isTerminated ? .quoted : .unterminated)
                } else {
                    value = (Array(text(before: ends)), .token)
                }
            }
            if !name.isEmpty { parameters.append(Parameter(name: name, value: value.bytes, form: value.form)) }
        }
    }
}
