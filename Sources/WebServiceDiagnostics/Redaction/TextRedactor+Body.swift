import WebServiceCore

/// Redaction of bodies according to their formats.
extension TextRedactor {
    /// The result of a search for secrets.
    enum Search {
        case complete
        /// An image, a sound, a video or a font that is not text. It is not searched.
        case media
        /// The bytes are of an unknown type or could not be parsed.
        case impossible
    }

    /// Redacts a body without a content coding.
    mutating func body(_ range: Range<Int>, _ contentType: String?, _ mediaReplacement: Bool) -> Search {
        guard !range.isEmpty else { return .complete }
        let type = contentType.map(MediaType.essence) ?? ""
        func isOf(_ words: String...) -> Bool { words.contains { type.contains($0) } }
        if type.hasPrefix("multipart/") { return multipart(range, contentType ?? "", mediaReplacement) }
        guard isText(range) else {
            let isMedia = ["image/", "audio/", "video/", "font/"].contains { type.hasPrefix($0) }
            return isMedia ? .media : .impossible
        }
        if isOf("jwt", "jose", "pem-file", "pkcs") {
            replace(trimmed(range))
        } else if type == ContentType.formEncoded {
            if !startsWithBracket(range) || !json(range) { pairs(range, isQuery: false) }
        } else if type == "text/event-stream" {
            events(range)
        } else if isOf("csv", "tab-separated") {
            table(range)
        } else if isOf("json", "ndjson") {
            let start = endOfPrefix(range)
            if !json(start..<range.upperBound) { scan(range, .text) }
        } else if isOf("graphql") {
            scan(range, .literals)
        } else if isOf("xml", "html") {
            if !startsWithBracket(range) || !json(range) { markup(range, .text) }
        } else if type.hasPrefix("text/") || isOf("yaml", "toml", "script", "properties", "x-sh", "sql", "/http", "ini")
            || ["image/", "audio/", "video/", "font/"].contains(where: { type.hasPrefix($0) })
        {
            value(range, .text)
        } else if begins("-----BEGIN ", at: trimmed(range).lowerBound, before: range.upperBound) {
            // PEM is text, regardless of its media type.
            scan(range, .text)
        } else if !startsWithBracket(range) || !json(range) {
            return .impossible
        }
        return .complete
    }

    /// Returns whether bytes are UTF-8 without NUL.
    ///
    /// A character that is cut off at the end does not prevent the search of the other bytes.
    private func isText(_ range: Range<Int>) -> Bool {
        !bytes[range].contains(0) && Self.cutBytes(bytes[range]) != nil
    }

    private func startsWithBracket(_ range: Range<Int>) -> Bool {
        let first = bytes[endOfPrefix(range)..<range.upperBound].first { !Self.isSpace($0) && $0 != 0x1E }
        return first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    }

    /// Returns the index after a byte order mark and a prefix that prevents execution as a script.
    private func endOfPrefix(_ range: Range<Int>) -> Int {
        var start = range.lowerBound
        if begins([0xEF, 0xBB, 0xBF], at: start, before: range.upperBound) { start += 3 }
        for prefix in [")]}',", ")]}'", "while(1);", "for(;;);"] as [StaticString]
        where begins(prefix, at: start, before: range.upperBound) {
            return start + prefix.utf8CodeUnitCount
        }
        return start
    }

    // MARK: Event streams

    /// Redacts an event stream. The `data` lines of an event are one value (HTML, section 9.2).
    private mutating func events(_ range: Range<Int>) {
        var data: [Range<Int>] = []
        for line in lines(range) {
            if begins("data:", at: line.lowerBound, before: line.upperBound) {
                data.append(line)
            } else {
                event(data)
                data = []
                value(line)
            }
        }
        event(data)
    }

    private mutating func event(_ lines: [Range<Int>]) {
        let contents = lines.map { line -> Range<Int> in
            let start = line.lowerBound + 5
            return (start < line.upperBound && bytes[start] == 0x20 ? start + 1 : start)..<line.upperBound
        }
        guard let first = contents.first, let last = contents.last else { return }
        contents.count > 1 ? nested(first.lowerBound..<last.upperBound, .lines) : value(first)
    }

    /// Returns the lines without their line endings, which are CR, LF or both.
    private func lines(_ range: Range<Int>) -> [Range<Int>] {
        var lines: [Range<Int>] = []
        var start = range.lowerBound
        for index in range where bytes[index] == 0x0A || bytes[index] == 0x0D {
            if start <= index { lines.append(start..<index) }
            let isPair = bytes[index] == 0x0D && index + 1 < range.upperBound && bytes[index + 1] == 0x0A
            start = index + (isPair ? 2 : 1)
        }
        if start < range.upperBound { lines.append(start..<range.upperBound) }
        return lines
    }

    // MARK: Tables

    /// Redacts the columns of CSV (RFC 4180) whose names are secret, and all other fields as text.
    ///
    /// The separator is the most frequent candidate in the first line, because some spreadsheets
    /// write `;`.
    private mutating func table(_ range: Range<Int>) {
        let line = bytes[range].prefix { $0 != 0x0A }
        let counts = ",;\t|".utf8.map { separator in (separator, line.count { $0 == separator }) }
        let separator = counts.max { $0.1 < $1.1 }?.0 ?? UInt8(ascii: ",")
        var meanings: [SecretName] = []
        var (column, isHeader, index) = (0, true, range.lowerBound)
        let count = edits.count
        while index < range.upperBound {
            let isQuoted = bytes[index] == UInt8(ascii: "\"")
            var end = index
            if isQuoted {
                end += 1
                while end < range.upperBound {
                    guard bytes[end] == UInt8(ascii: "\"") else { end += 1; continue }
                    guard end + 1 < range.upperBound, bytes[end + 1] == UInt8(ascii: "\"") else { break }
                    end += 2
                }
            }
            let closing = min(end, range.upperBound)
            while end < range.upperBound, bytes[end] != separator, bytes[end] != 0x0A { end += 1 }
            let field = isQuoted ? index + 1..<max(index + 1, closing) : trimmed(index..<end)
            if isHeader { meanings.append(columnMeaning(field, index..<end)) }
            if !isHeader, meanings.indices.contains(column), rules.isSecret(meanings[column], bytes[field], .text) {
                replace(field)
            } else {
                scan(field, .text)
            }
            let isEnd = end < range.upperBound && bytes[end] == 0x0A
            if isHeader, isEnd || end >= range.upperBound, !meanings.contains(where: SecretRules.isSecret) {
                removeEdits(from: count)
                return value(range, .text)
            }
            (column, isHeader) = isEnd ? (0, false) : (column + 1, isHeader)
            index = end + 1
        }
    }

    /// Returns the meaning of a column's name. A name-value pair instead of a name is text.
    private func columnMeaning(_ field: Range<Int>, _ cell: Range<Int>) -> SecretName {
        guard !bytes[cell].contains(where: { ":=".utf8.contains($0) }) else { return .harmless }
        return rules.meaning(of: String(decoding: bytes[field], as: UTF8.self))
    }

    // MARK: Multipart

    /// Redacts the parts of a multipart body (RFC 2046, section 5.1), each according to its name
    /// and type.
    private mutating func multipart(_ range: Range<Int>, _ contentType: String, _ mediaReplacement: Bool) -> Search {
        guard let boundary = MediaType.parameter("boundary", of: contentType, quotes: ["\""]), !boundary.isEmpty else {
            return .impossible
        }
        let delimiter = Array("--\(boundary)".utf8)
        var parts: [Range<Int>] = []
        var start: Int?
        var index = range.lowerBound
        while index < range.upperBound {
            let isLine = index == range.lowerBound || bytes[index - 1] == 0x0A
            if isLine, begins(delimiter, at: index, before: range.upperBound) {
                if let start { parts.append(start..<index) }
                index += delimiter.count
                start = index
            }
            index = bytes[index..<range.upperBound].firstIndex(of: 0x0A).map { $0 + 1 } ?? range.upperBound
        }
        if let start, start < range.upperBound { parts.append(start..<range.upperBound) }
        var result = parts.isEmpty ? Search.impossible : .complete
        for part in parts {
            if case .impossible = self.part(part, mediaReplacement) { result = .impossible }
        }
        return result
    }

    private mutating func part(_ range: Range<Int>, _ mediaReplacement: Bool) -> Search {
        var fields: [Range<Int>] = []
        var start = range.upperBound
        for line in lines(range).dropFirst() {
            guard !line.isEmpty else {
                start = bytes[line.upperBound..<range.upperBound].firstIndex(of: 0x0A).map { $0 + 1 } ?? line.upperBound
                break
            }
            fields.append(line)
        }
        func field(_ name: String) -> String? {
            fields.compactMap { line -> String? in
                guard let colon = bytes[line].firstIndex(of: UInt8(ascii: ":")),
                    colon - line.lowerBound == name.utf8.count,
                    ASCII.lowercased(bytes[line.lowerBound..<colon]) == name
                else { return nil }
                return String(decoding: ASCII.trimmed(bytes[(colon + 1)..<line.upperBound]), as: UTF8.self)
            }.first
        }
        for line in fields {
            guard let colon = bytes[line].firstIndex(of: UInt8(ascii: ":")) else { continue }
            let name = String(decoding: bytes[line.lowerBound..<colon], as: UTF8.self)
            let value = trimmed(colon + 1..<line.upperBound)
            if rules.redaction.isSecret(header: name, value: bytes[value]) {
                replace(value)
            } else {
                scan(value, .value)
            }
        }
        var content = start..<range.upperBound
        // The line break before the boundary belongs to the boundary.
        if content.count >= 1, bytes[content.upperBound - 1] == 0x0A { content = content.dropLast() }
        if content.count >= 1, bytes[content.upperBound - 1] == 0x0D { content = content.dropLast() }
        guard !content.isEmpty else { return .complete }
        let name = field("content-disposition").flatMap { MediaType.parameter("name", of: $0) } ?? ""
        if rules.isSecret(name, bytes[content], .form) {
            replace(content)
            return .complete
        }
        let type = field("content-type")
        let isEncoded = field("content-transfer-encoding").map {
            !["7bit", "8bit", "binary", "quoted-printable"].contains($0.asciiLowercased())
        }
        guard isEncoded != true else { return replacePart(content, mediaReplacement, .impossible) }
        // The depth of nested multipart bodies is limited, because each level searches all bytes.
        level += 1
        defer { level -= 1 }
        let isTooDeep = level > Self.maximumDepth
        let count = edits.count
        let search = isTooDeep ? .impossible : body(content, type ?? "text/x-field", mediaReplacement)
        switch search {
        case .complete: return .complete
        case .media, .impossible:
            removeEdits(from: count)
            return replacePart(content, mediaReplacement, search)
        }
    }

    private mutating func replacePart(_ content: Range<Int>, _ mediaReplacement: Bool, _ search: Search) -> Search {
        guard mediaReplacement else { return search }
        edit(content, Array(rules.redaction.placeholder.utf8))
        return .complete
    }
}
