import WebServiceCore

/// Command lines of curl within text.
extension TextRedactor {
    /// The options without an argument, which are often combined with others, as in `-sSu`.
    private static let flags = Array("#0123456afgGiIjklLnNOpqRsSvZ".utf8)
    private static let passwords: Set<String> = [
        "oauth2-bearer", "pass", "proxy-pass", "tlspassword", "proxy-tlspassword",
    ]

    /// Returns the credentials after an option of curl, such as `-u user:password`.
    ///
    /// A user name alone is not secret, because curl then asks for the password.
    func curlCredentials(_ name: Range<Int>, in range: Range<Int>, _ state: inout ScanState) -> Range<Int>? {
        let word = bytes[name]
        guard state.isCurl else {
            state.isCurl = word.elementsEqual("curl".utf8) || word.elementsEqual("curl.exe".utf8)
            return nil
        }
        guard isWordStart(name.lowerBound, range), let (argument, delimiter) = curlOption(name) else { return nil }
        // The length is limited, because the text is searched again if it is not secret.
        let end = min(range.upperBound, argument + 4096)
        let isSpace: (UInt8) -> Bool = { ASCII.isSpaceOrTab($0) || $0 == UInt8(ascii: "+") }
        let start = bytes[argument..<end].firstIndex { !isSpace($0) } ?? end
        let value = extent(start..<end, .value, isLine: false, isField: false).value
        guard let delimiter else { return value }
        guard let colon = bytes[value].firstIndex(of: delimiter) else { return nil }
        // The password may be in separate quotation marks, as in `user:"password"`.
        guard colon + 1 < end, Self.isQuote(bytes[colon + 1]), !Self.isQuote(bytes[start]) else { return value }
        return start..<extent(colon + 1..<end, .value, isLine: false, isField: false).next
    }

    private func isWordStart(_ index: Int, _ range: Range<Int>) -> Bool {
        index == range.lowerBound || Self.isSpace(bytes[index - 1]) || "\"'+".utf8.contains(bytes[index - 1])
    }

    /// Returns the index after an option whose argument is or contains credentials. If there is a
    /// delimiter, the argument contains credentials only if it contains the delimiter.
    private func curlOption(_ name: Range<Int>) -> (argument: Int, delimiter: UInt8?)? {
        let word = bytes[name]
        guard word.first == UInt8(ascii: "-") else { return nil }
        if word.starts(with: "--".utf8) {
            let option = String(decoding: word.dropFirst(2), as: UTF8.self)
            if Self.passwords.contains(option) { return (name.upperBound, nil) }
            if option == "cookie" { return (name.upperBound, UInt8(ascii: "=")) }
            return option == "user" || option == "proxy-user" ? (name.upperBound, UInt8(ascii: ":")) : nil
        }
        guard let option = word.dropFirst().firstIndex(where: { !Self.flags.contains($0) }) else { return nil }
        switch bytes[option] {
        case UInt8(ascii: "u"), UInt8(ascii: "U"): return (option + 1, UInt8(ascii: ":"))
        case UInt8(ascii: "b"): return (option + 1, UInt8(ascii: "="))
        default: return nil
        }
    }

    /// Returns whether a backslash precedes the line break at the given index.
    func isContinued(_ index: Int, _ range: Range<Int>) -> Bool {
        var last = index - 1
        if last >= range.lowerBound, bytes[last] == 0x0D { last -= 1 }
        return last >= range.lowerBound && bytes[last] == UInt8(ascii: "\\")
    }
}
