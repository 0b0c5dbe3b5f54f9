import Foundation

/// The deprecation of resources (RFC 9745) and their end (RFC 8594).
extension ExchangeLog {
    /// Returns events with those of responses whose resources are deprecated or end. Equal ones are
    /// added once.
    ///
    /// - Parameter date: The date of `resume()`.
    static func addingDeprecations(to entries: [Entry], _ date: Date?) -> [Entry] {
        guard let date else { return entries }
        var details: Set<String> = []
        return entries.flatMap { entry in
            let note = entry.attempt?.head.flatMap { Entry(deprecationIn: $0, at: entry.end ?? entry.start, date) }
            guard let note, details.insert(note.detail).inserted else { return [entry] }
            return [entry, note]
        }.sorted { $0.start < $1.start }
    }
}

extension ExchangeLog.Entry {
    /// Creates the event of a response with the field `Deprecation` or `Sunset`.
    ///
    /// - Parameter now: The date that determines whether the dates of the fields have passed.
    /// - Returns: `nil` if neither field has a valid value.
    init?(deprecationIn head: ResponseHead, at instant: UInt64, _ now: Date) {
        var facts: [String] = []
        if let date = head.headers["Deprecation"].flatMap(Self.structuredDate), let day = HTTPDate.day(date) {
            facts.append(date <= now ? "has been deprecated since \(day)" : "will be deprecated on \(day)")
        }
        if let date = head.headers["Sunset"].flatMap({ HTTPDate.parse($0, now: now) }), let day = HTTPDate.day(date) {
            facts.append("\(date <= now ? "ended" : "ends") on \(day)")
        }
        guard !facts.isEmpty else { return nil }
        self.init(kind: .deprecation, start: instant, detail: facts.joined(separator: " and "))
    }

    /// Parses a date (RFC 9651, section 3.3.7). Parameters are ignored.
    private static func structuredDate(_ field: String) -> Date? {
        let value = ASCII.trimmed(field.utf8.prefix { $0 != UInt8(ascii: ";") })
        let digits = value.dropFirst()
        guard value.first == UInt8(ascii: "@"), digits.count <= 16, digits.first != UInt8(ascii: "+") else {
            return nil
        }
        return Int64(Substring(digits)).map { Date(timeIntervalSince1970: Double($0)) }
    }
}
