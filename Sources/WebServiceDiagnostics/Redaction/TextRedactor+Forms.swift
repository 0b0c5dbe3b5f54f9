import WebServiceCore

/// Secrets that are recognized by their form or position, under any name.
extension TextRedactor {
    /// Redacts the content of a private key in PEM (RFC 7468).
    ///
    /// - Returns: The index after the key, or `nil` if the PEM block is not a private key.
    mutating func privateKey(_ range: Range<Int>) -> Int? {
        let line = range.lowerBound..<min(range.lowerBound + 64, range.upperBound)
        let label = index(of: "PRIVATE KEY", in: line)
        // The words before `PRIVATE KEY`, such as `EC`, are part of the label.
        guard label < line.upperBound,
            bytes[(range.lowerBound + 10)..<label].allSatisfy({ (0x41...0x5A).contains($0) || $0 == 0x20 })
        else { return nil }
        var start = label + 11
        if begins(" BLOCK", at: start, before: range.upperBound) { start += 6 }
        while start < range.upperBound, bytes[start] == UInt8(ascii: "-") { start += 1 }
        let end = index(of: "-----END", in: start..<range.upperBound)
        let key = trimmed(start..<end)
        if !key.isEmpty { replace(key) }
        return end < range.upperBound ? end + 8 : end
    }

    /// Returns the credentials after a scheme such as `Bearer`: a word that contains a digit or an
    /// equals sign.
    func credentials(after name: Range<Int>, _ end: Int) -> Range<Int>? {
        // In a form, a plus sign is a space.
        guard [5, 6].contains(name.count), name.upperBound < end, " +".utf8.contains(bytes[name.upperBound]) else {
            return nil
        }
        guard ["bearer", "basic"].contains(ASCII.lowercased(bytes[name])) else { return nil }
        let start = name.upperBound + 1
        let word = bytes[start..<end].prefix { ASCII.isAlphanumeric($0) || "-._~+/=".utf8.contains($0) }
        let isToken = word.count >= 8 && word.contains { ASCII.isDigit($0) || $0 == UInt8(ascii: "=") }
        // `Bearer realm="x"` is a challenge.
        return isToken && bytes[word.endIndex..<end].first != UInt8(ascii: "\"") ? start..<word.endIndex : nil
    }

    /// Returns the secret in `bot123456:secret` or in such a path segment, or the secret of 35
    /// bytes in a token without `bot`.
    func botToken(_ name: Range<Int>, _ end: Int) -> Range<Int>? {
        let isBot = begins("bot", at: name.lowerBound, before: name.upperBound)
        let digits = bytes[name].dropFirst(isBot ? 3 : 0)
        guard digits.count >= 6, digits.allSatisfy(ASCII.isDigit), name.upperBound < end,
            bytes[name.upperBound] == UInt8(ascii: ":")
        else { return nil }
        let secret = bytes[(name.upperBound + 1)..<end].prefix {
            ASCII.isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
        }
        // In a path segment, 8 bytes are sufficient. In other text, short words such as
        // `bot123456:on` are more common, so 16 bytes are required.
        let isSegment = name.lowerBound > 0 && bytes[name.lowerBound - 1] == UInt8(ascii: "/")
        let isToken =
            isBot ? secret.count >= (isSegment ? 8 : 16) : secret.count == 35 && secret.starts(with: "AA".utf8)
        return isToken ? secret.indices : nil
    }

    /// Returns the secret part of a webhook URL: the path after the host and the first segments.
    func webhook(after name: Range<Int>, _ end: Int) -> Range<Int>? {
        let host = bytes[name]
        guard host.count >= 11, host.last == UInt8(ascii: "m"), name.upperBound < end,
            let path = SecretRules.webhooks.first(where: {
                host.suffix($0.host.count).elementsEqual($0.host) && begins($0.path, at: name.upperBound, before: end)
            })?.path
        else { return nil }
        let secret = bytes[(name.upperBound + path.count)..<end].prefix {
            Self.isNameByte($0) || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "@")
        }
        return secret.isEmpty ? nil : secret.indices
    }

    /// Redacts the passwords and accounts after `machine` or `default` in a file such as `.netrc`.
    ///
    /// - Parameter hasHost: Whether the first word is a host, as it is after `machine`.
    /// - Returns: The index after the words.
    mutating func netrc(_ range: Range<Int>, hasHost: Bool) -> Int {
        func word(after index: Int) -> Range<Int> {
            let start = bytes[index..<range.upperBound].firstIndex { !Self.isSpace($0) } ?? range.upperBound
            return start..<(bytes[start..<range.upperBound].firstIndex(where: Self.isSpace) ?? range.upperBound)
        }
        let host = hasHost ? word(after: range.lowerBound) : range.lowerBound..<range.lowerBound
        var index = range.lowerBound
        var key = word(after: host.upperBound)
        // `default password rules` is ordinary text.
        guard hasHost || bytes[key].elementsEqual("login".utf8) else { return index }
        while ["login", "password", "account"].contains(where: { bytes[key].elementsEqual($0.utf8) }) {
            if index == range.lowerBound { scan(host, .value) }
            let value = word(after: key.upperBound)
            if bytes[key].first == UInt8(ascii: "l") { scan(value, .value) } else if !value.isEmpty { replace(value) }
            index = value.upperBound
            key = word(after: index)
        }
        return index
    }

    /// Redacts elements in a list of subprotocols. An element is redacted if it follows a name such
    /// as `bearer`, as in `bearer, TOKEN`, or if it contains such a name and a token, as in
    /// `bearer.TOKEN`.
    mutating func protocols(_ range: Range<Int>) {
        var isSecret = false
        var start = range.lowerBound
        while start < range.upperBound {
            let end = bytes[start..<range.upperBound].firstIndex(of: UInt8(ascii: ",")) ?? range.upperBound
            let element = trimmed(start..<end)
            let text = String(decoding: bytes[element], as: UTF8.self)
            if element.isEmpty {
                start = end + 1
                continue
            }
            if isSecret {
                replace(element)
                isSecret = false
            } else {
                isSecret = SecretRules.isSecret(rules.meaning(of: text))
                if let token = token(in: element) { replace(token) } else { scan(element, .value) }
            }
            start = end + 1
        }
    }

    /// Returns the text after a part that names a secret if this text is long and contains a digit.
    private func token(in element: Range<Int>) -> Range<Int>? {
        var start = element.lowerBound
        while let end = bytes[start..<element.upperBound].firstIndex(where: { ".-:|~".utf8.contains($0) }) {
            let rest = bytes[(end + 1)..<element.upperBound]
            if SecretRules.isSecret(rules.meaning(of: String(decoding: bytes[start..<end], as: UTF8.self))) {
                return rest.count >= 16 && rest.contains(where: ASCII.isDigit) ? rest.indices : nil
            }
            start = end + 1
        }
        return nil
    }

    /// Returns the name that applies to `value` if it directly follows a pair such as `name:
    /// API_KEY`.
    func pairName(_ name: Range<Int>, _ value: Range<Int>, _ state: inout ScanState) -> String? {
        switch ASCII.lowercased(bytes[name.prefix(6)]) {
        case "name", "key":
            let start = bytes[value].firstIndex { !ASCII.isSpaceOrTab($0) && !Self.isQuote($0) } ?? value.upperBound
            let word = bytes[start..<value.upperBound].prefix(97).prefix(while: Self.isNameByte)
            state.pairName = word.count <= 96 ? word.indices : nil
            return nil
        case "value":
            guard let pair = state.pairName else { return nil }
            state.pairName = nil
            let isNext =
                pair.upperBound <= name.lowerBound
                && bytes[pair.upperBound..<name.lowerBound].allSatisfy {
                    Self.isSpace($0) || Self.isQuote($0) || $0 == UInt8(ascii: ",")
                }
            return isNext ? Self.decodedName(bytes[pair]) : nil
        default: return nil
        }
    }
}
