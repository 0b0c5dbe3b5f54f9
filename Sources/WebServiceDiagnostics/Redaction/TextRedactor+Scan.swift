import WebServiceCore

extension TextRedactor {
    /// Redacts text: the values of secret names, user information in URLs, private keys, and tokens
    /// of a known form.
    mutating func scan(_ range: Range<Int>, _ syntax: Syntax) {
        var index = range.lowerBound
        let end = range.upperBound
        var state = ScanState()
        let bytes = bytes
        while index < end {
            let byte = bytes[index]
            if Self.isNameByte(byte) {
                let start = index
                repeat { index += 1 } while index < end && Self.isNameByte(bytes[index])
                index = afterName(start..<index, in: range, syntax, &state)
            } else if byte == UInt8(ascii: "/"), let user = userInformation(index + 1..<end) {
                if !bytes[user].elementsEqual("git@".utf8) { edit(user, []) }
                index = user.upperBound
            } else if byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "&") {
                index = escapedText(fromEscape: index, end, &state)
            } else {
                if byte == 0x0A, state.isCurl { state.isCurl = isContinued(index, range) }
                index += 1
            }
        }
    }

    /// What a scan has found so far.
    struct ScanState {
        /// Whether OAuth parameters accompany the text; `nil` if this is not known yet.
        var authorization: Bool?
        /// Whether the text contains the parameters of a log-in; `nil` if this is not known yet.
        var logIn: Bool?
        /// The value of `name` or `key` in the first of two pairs such as `name: API_KEY` and
        /// `value: …`.
        var pairName: Range<Int>?
        /// The index after the escaped text that was decoded last.
        var escapedEnd = 0
        /// Whether the current line belongs to a curl command.
        var isCurl = false
    }

    /// Redacts the value after a name, or the name if it is itself a secret.
    ///
    /// - Returns: The index at which the scan continues.
    private mutating func afterName(
        _ name: Range<Int>, in range: Range<Int>, _ syntax: Syntax, _ state: inout ScanState
    ) -> Int {
        let end = range.upperBound
        let word = bytes[name]
        if let next = escapedText(name, end, &state) { return next }
        if word.count >= 10, word.first == UInt8(ascii: "-"), begins("-----BEGIN", at: name.lowerBound, before: end) {
            return privateKey(name.lowerBound..<end) ?? name.upperBound
        }
        if SecretRules.isToken(word) {
            replace(name)
            return name.upperBound
        }
        if let credentials = credentials(after: name, end) {
            replace(credentials)
            return credentials.upperBound
        }
        if let secret = webhook(after: name, end) ?? botToken(name, end) {
            replace(secret)
            return secret.upperBound
        }
        if syntax == .text, word.count == 7, isLineStart(name.lowerBound, range) {
            let hasHost = begins("machine", at: name.lowerBound, before: end)
            if hasHost || begins("default", at: name.lowerBound, before: end) {
                return netrc(name.upperBound..<end, hasHost: hasHost)
            }
        }
        if let credentials = curlCredentials(name, in: range, &state) {
            replace(credentials)
            return credentials.upperBound
        }
        guard let place = separator(after: name, end, syntax) else { return name.upperBound }
        var start = place.after
        let isEncoded = isEncoded(name)
        // Encoded text before a colon is not a name.
        if isEncoded, place.isField { return name.upperBound }
        let last = isEncoded ? Self.lastName(word) : nil
        let text = last?.name ?? pairName(name, place.after..<end, &state) ?? Self.decodedName(word)
        let meaning = rules.meaning(of: text)
        if case .harmless = meaning { return name.upperBound }
        let isParameter = last?.isParameter ?? followsDelimiter(name, range)
        // This check precedes the search for the value, so each value is examined only once.
        if case .parameter = meaning, !isParameter, text.equalsIgnoringASCIICase("key") { return place.after }
        if place.isField {
            switch (meaning, syntax) {
            case (.parameter, _), (.code, _), (.state, _): return start
            case (_, .text): break
            case (_, _) where place.isQuoted: break
            case (_, .literals):
                let first = bytes[start..<end].first { !Self.isSpace($0) }
                guard let first, "\"'[{".utf8.contains(first) else { return start }
            case (_, .value):
                guard Redaction.secretFields.contains(text.asciiLowercased()) || isFieldName(word) else { return start }
            }
        }
        if place.isField || syntax != .value || place.isQuoted {
            while start < end, ASCII.isSpaceOrTab(bytes[start]) || syntax == .literals && Self.isSpace(bytes[start]) {
                start += 1
            }
        }
        let isLine = place.isField && !place.isQuoted || syntax == .text && isLineStart(name.lowerBound, range)
        let isDoubled = place.isDoubled && begins("\"\"", at: start, before: end)
        let (value, next) =
            isDoubled
            ? doubledExtent(start + 2..<end) : extent(start..<end, syntax, isLine: isLine, isField: place.isField)
        if isLine, syntax == .text, place.isField, isBlockStart(value) {
            return block(after: value, name, range) ?? place.after
        }
        let isSecret = rules.isSecret(text, bytes[value], isParameter ? .query : .text) {
            let known = state.authorization ?? OAuthContext.covers(bytes[range])
            state.authorization = known
            return known
        } isLogIn: {
            let known = state.logIn ?? OAuthContext.coversLogIn(bytes[range])
            state.logIn = known
            return known
        }
        guard isSecret else { return place.after }
        replace(value)
        return next
    }

    /// Returns whether a name follows a delimiter of a URL.
    private func followsDelimiter(_ name: Range<Int>, _ range: Range<Int>) -> Bool {
        guard name.lowerBound > range.lowerBound else { return false }
        return "?&#".utf8.contains(bytes[name.lowerBound - 1])
            || name.lowerBound - 5 >= range.lowerBound
                && begins("&amp;", at: name.lowerBound - 5, before: name.lowerBound)
    }

    /// Returns whether a name is that of a header field with several words, such as `X-Api-Key`.
    private func isFieldName(_ name: ArraySlice<UInt8>) -> Bool {
        name.contains(UInt8(ascii: "-")) && (name.first.map { (0x41...0x5A).contains($0) } ?? false)
    }

    private struct Separator {
        /// The index after the separator.
        var after: Int
        /// Whether the separator is `:`.
        var isField: Bool
        var isQuoted = false
        /// Whether the quotation marks are doubled, as in a field of CSV (RFC 4180, section 2).
        var isDoubled = false
    }

    private func separator(after name: Range<Int>, _ end: Int, _ syntax: Syntax) -> Separator? {
        var index = name.upperBound
        func byte(_ index: Int) -> UInt8 { index < end ? bytes[index] : 0 }
        if byte(index) == UInt8(ascii: "]") { index += 1 }
        let quote = byte(index) == UInt8(ascii: "\\") ? (index..<end).first { bytes[$0] != UInt8(ascii: "\\") } : index
        let hasQuote = Self.isQuote(byte(quote ?? end))
        if hasQuote { index = (quote ?? index) + 1 }
        let isDoubled = hasQuote && begins("\"\"", at: index - 1, before: end)
        if isDoubled { index += 1 }
        let entity = quoteEntity(at: index, before: end)
        index += entity?.count ?? 0
        let isQuoted = hasQuote || entity != nil
        if syntax != .value || isQuoted { while ASCII.isSpaceOrTab(byte(index)) { index += 1 } }
        switch byte(index) {
        case UInt8(ascii: "="):
            return Separator(
                after: index + (byte(index + 1) == UInt8(ascii: ">") ? 2 : 1), isField: false, isQuoted: isQuoted)
        case UInt8(ascii: ":") where byte(index + 1) == UInt8(ascii: "="):
            return Separator(after: index + 2, isField: false, isQuoted: isQuoted)
        case UInt8(ascii: ":") where byte(index + 1) != UInt8(ascii: "/") || byte(index + 2) != UInt8(ascii: "/"):
            return Separator(after: index + 1, isField: true, isQuoted: isQuoted, isDoubled: isDoubled)
        default: return nil
        }
    }

    // MARK: Values

    /// Returns the character reference for a quotation mark at an index, as in HTML attributes.
    func quoteEntity(at index: Int, before end: Int) -> [UInt8]? {
        guard index < end, bytes[index] == UInt8(ascii: "&") else { return nil }
        return Self.quoteEntities.first { begins($0, at: index, before: end) }
    }

    private static let quoteEntities = ["&quot;", "&#34;", "&#x22;", "&apos;", "&#39;", "&#x27;"].map { Array($0.utf8) }

    /// Returns the content of a value, and the index after the value.
    func extent(_ range: Range<Int>, _ syntax: Syntax, isLine: Bool, isField: Bool)
        -> (value: Range<Int>, next: Int)
    {
        var index = range.lowerBound
        let end = range.upperBound
        guard index < end else { return (range, end) }
        switch bytes[index] {
        case UInt8(ascii: "\\"), UInt8(ascii: "&"):
            // The value is a string within a string, such as JSON in a log or in an HTML attribute.
            let entity = quoteEntity(at: index, before: end)
            let quote = (index..<end).first { bytes[$0] != UInt8(ascii: "\\") } ?? end
            guard entity != nil || quote < end && Self.isQuote(bytes[quote]) else { break }
            let closing = entity ?? Array(bytes[index...quote])
            let start = index + closing.count
            var last = start
            while last < end, !(bytes[last] == closing.first && begins(closing, at: last, before: end)) {
                last += entity != nil && bytes[last] == UInt8(ascii: "\\") ? 2 : 1
            }
            last = min(last, end)
            return (start..<last, min(last + closing.count, end))
        case UInt8(ascii: "\""), UInt8(ascii: "'"):
            let quote = bytes[index]
            let isBlock = begins([quote, quote, quote], at: index, before: end)
            let start = index + (isBlock ? 3 : 1)
            var last = start
            while last < end {
                // In YAML and SQL, two single quotation marks represent one.
                let isDouble = quote == UInt8(ascii: "'") && !isBlock && begins([quote, quote], at: last, before: end)
                if !isDouble, bytes[last] == quote,
                    !isBlock || begins([quote, quote, quote], at: last, before: end)
                {
                    break
                }
                last += isDouble || bytes[last] == UInt8(ascii: "\\") ? 2 : 1
            }
            last = min(last, end)
            return (start..<last, min(last + (isBlock ? 3 : 1), end))
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            if syntax != .value || isField {
                let last = JSONLiteral.endOfValue(bytes[range], from: index)
                return (index..<last, last)
            }
        default: break
        }
        if isField, isLine {
            index = bytes[range].firstIndex { $0 == 0x0A || $0 == 0x0D } ?? end
            return (trimmed(range.lowerBound..<index), index)
        }
        while index < end, !(Self.isSpace(bytes[index]) && (!isLine || bytes[index] == 0x0A || bytes[index] == 0x0D)),
            !"&;<>\"".utf8.contains(bytes[index])
        {
            // A comma ends the value only before a space or at the end, because secrets can contain
            // commas.
            if bytes[index] == UInt8(ascii: ","), index + 1 == end || Self.isSpace(bytes[index + 1]) { break }
            index += 1
        }
        return (trimmed(range.lowerBound..<index), index)
    }

    /// Returns the content of a value that ends with doubled quotation marks, and the index after
    /// them.
    private func doubledExtent(_ range: Range<Int>) -> (value: Range<Int>, next: Int) {
        let last = index(of: "\"\"", in: range)
        return (range.lowerBound..<last, min(last + 2, range.upperBound))
    }

    func isLineStart(_ index: Int, _ range: Range<Int>) -> Bool {
        var start = index
        while start > range.lowerBound, ASCII.isSpaceOrTab(bytes[start - 1]) { start -= 1 }
        return start == range.lowerBound || bytes[start - 1] == 0x0A || bytes[start - 1] == 0x0D
    }

    /// Returns the user information of the authority that follows a second slash, including the
    /// `@`.
    private func userInformation(_ range: Range<Int>) -> Range<Int>? {
        guard let first = range.first, bytes[first] == UInt8(ascii: "/") else { return nil }
        var (index, at) = (first + 1, nil as Int?)
        while index < range.upperBound, !Self.isSpace(bytes[index]), !"/?#<>\"\\".utf8.contains(bytes[index]) {
            if bytes[index] == UInt8(ascii: "@") { at = index }
            index += 1
        }
        return at.map { first + 1..<$0 + 1 }
    }

    // MARK: YAML

    /// Returns whether the rest of a line starts a block (YAML 1.2, sections 8.1 and 8.2).
    private func isBlockStart(_ value: Range<Int>) -> Bool {
        value.count <= 2 && value.allSatisfy { "|>+-".utf8.contains(bytes[$0]) }
    }

    /// Redacts the lines after a secret name that are indented more than the name or are items of a
    /// list.
    ///
    /// - Returns: The index after the lines, or `nil` if there are none or if they describe the
    ///   name.
    private mutating func block(after value: Range<Int>, _ name: Range<Int>, _ range: Range<Int>) -> Int? {
        var start = name.lowerBound
        while start > range.lowerBound, bytes[start - 1] != 0x0A, " -\"'\t".utf8.contains(bytes[start - 1]) {
            start -= 1
        }
        let indent = name.lowerBound - start
        var content: Range<Int>?
        var (line, child) = (value.upperBound, 0)
        var describes = true
        while let next = bytes[line..<range.upperBound].firstIndex(of: 0x0A).map({ $0 + 1 }), next < range.upperBound {
            let end = bytes[next..<range.upperBound].firstIndex(of: 0x0A) ?? range.upperBound
            let text = trimmed(next..<end)
            line = end
            guard !text.isEmpty else { continue }
            let own = text.lowerBound - next
            guard own > indent || own == indent && bytes[text.lowerBound] == UInt8(ascii: "-") else { break }
            if content == nil { child = own }
            content = (content?.lowerBound ?? text.lowerBound)..<text.upperBound
            let word = String(decoding: bytes[text].prefix(while: Self.isNameByte), as: UTF8.self)
            // The length is limited, because the lines are searched again if they are not secret.
            if own <= child && !Self.schemaWords.contains(word) || end - value.upperBound > 4096 { describes = false }
            if end == range.upperBound { break }
        }
        guard let content, !describes else { return nil }
        replace(content)
        return content.upperBound
    }
}
