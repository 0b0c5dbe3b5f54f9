package import Foundation

/// HTTP dates in UTC, computed with integer arithmetic, without a locale or a time zone.
///
/// Parsing returns a date or `nil` for any input.
package enum HTTPDate {
    /// The last second of the last year with four digits: 9999-12-31T23:59:59Z.
    static let latest = Date(timeIntervalSince1970: 253_402_300_799)

    /// Returns the date of a string in one of the three formats of RFC 9110, section 5.6.7.
    ///
    /// Letter case is ignored, and the day of the week is not compared with the date. The leap
    /// second 60 is the second after 59.
    ///
    /// - Parameter now: The current date, which determines the century of two-digit years (RFC
    ///   850): the last century that results in a date at most 50 years in the future.
    package static func parse(_ text: String, now: Date = Date()) -> Date? {
        guard (24...33).contains(text.utf8.count) else { return nil }
        let bytes = Array(text.utf8)
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")) else {
            guard index(of: bytes.prefix(3), in: shortDays) != nil else { return nil }
            return Fields(bytes.dropFirst(3), layout: " MMM _D hh:mm:ss YYYY")?.date
        }
        let (day, rest) = (bytes[..<comma], bytes[(comma + 1)...])
        guard index(of: rest.suffix(4), in: [" GMT"]) != nil else { return nil }
        if index(of: day, in: shortDays) != nil {
            return Fields(rest.dropLast(4), layout: " DD MMM YYYY hh:mm:ss")?.date
        }
        guard index(of: day, in: longDays) != nil, var fields = Fields(rest.dropLast(4), layout: " DD-MMM-YY hh:mm:ss"),
            let today = Fields(now)
        else { return nil }
        fields.year += today.year - today.year % 100 + 100
        while fields.isMoreThan50Years(ahead: today) { fields.year -= 100 }
        return fields.date
    }

    /// Returns the date of a cookie's string according to the lenient rules of RFC 6265, section
    /// 5.1.1.
    ///
    /// The parts may be in any order.
    static func parseCookieDate(_ text: some Collection<UInt8>) -> Date? {
        var time: (hour: Int64, minute: Int64, second: Int64)?
        var day: Int64?
        var month: Int?
        var year: Int64?
        for token in text.split(whereSeparator: isDelimiter) {
            if time == nil, let found = clock(token) {
                time = found
            } else if day == nil, let found = number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = index(of: token.prefix(3), in: months) {
                month = found
            } else if year == nil, let found = number(token, digits: 2...4) {
                year = found + (found < 70 ? 2000 : found < 100 ? 1900 : 0)
            }
        }
        guard let time, let day, let month, let year, year >= 1601, time.second < 60 else { return nil }
        return Fields(
            year: year, month: Int64(month) + 1, day: day, hour: time.hour, minute: time.minute, second: time.second
        ).date
    }

    /// Returns an IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    ///
    /// Fractions of a second are dropped. Returns `nil` outside the years 0 to 9999.
    package static func text(_ date: Date) -> String? {
        guard let fields = Fields(date) else { return nil }
        let month = months[Int(fields.month) - 1]
        let day = "\(shortDays[fields.weekday]), \(padded(fields.day)) \(month) \(padded(fields.year, 4))"
        return "\(day) \(padded(fields.hour)):\(padded(fields.minute)):\(padded(fields.second)) GMT"
    }

    /// Returns the day in UTC, such as `1994-11-06`, or `nil` outside the years 0 to 9999.
    package static func day(_ date: Date) -> String? {
        Fields(date).map { "\(padded($0.year, 4))-\(padded($0.month))-\(padded($0.day))" }
    }

    private static func padded(_ number: Int64, _ width: Int = 2) -> String {
        let digits = String(number)
        return String(repeating: "0", count: width - digits.utf8.count) + digits
    }

    fileprivate static let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    private static let shortDays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let longDays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

    fileprivate static func index(of name: some Collection<UInt8>, in names: [String]) -> Int? {
        names.firstIndex { ASCII.areEqualIgnoringCase(name, $0.utf8) }
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// Returns the number at the start of a token if the number of its digits is in the range.
    private static func number(_ token: some Collection<UInt8>, digits: ClosedRange<Int>) -> Int64? {
        let number = token.prefix(while: ASCII.isDigit)
        return digits.contains(number.count) ? ASCII.number(number).map(Int64.init) : nil
    }

    private static func clock(_ token: some Collection<UInt8>) -> (Int64, Int64, Int64)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(ASCII.isDigit), parts[1].allSatisfy(ASCII.isDigit),
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }
}

/// A date and time in the Gregorian calendar, in UTC.
private struct Fields {
    var year: Int64 = 0
    var month: Int64 = 0
    var day: Int64 = 0
    var hour: Int64 = 0
    var minute: Int64 = 0
    var second: Int64 = 0
    /// The day of the week. 0 is Sunday.
    var weekday = 0
}

extension Fields {
    private static let daysOfEra: Int64 = 146_097  // 400 years
    /// The number of days from March 1 of the year -400 to 1970-01-01.
    ///
    /// With this offset, no number in the computations is negative.
    private static let daysToEpoch: Int64 = 719_468 + daysOfEra

    /// Parses a string with a fixed layout.
    ///
    /// `D`, `Y`, `h`, `m` and `s` are digits, `_` is a digit or a space, `MMM` is a month, and a
    /// space, `-` or `:` matches itself. A layout contains no other characters.
    init?(_ text: some Collection<UInt8>, layout: String) {
        guard text.count == layout.utf8.count else { return nil }
        var name: [UInt8] = []
        for (byte, mark) in zip(text, layout.utf8) {
            let digit = Int64(byte) - 0x30
            switch mark {
            case UInt8(ascii: "M"): name.append(byte)
            case UInt8(ascii: "_") where byte == UInt8(ascii: " "): continue
            case UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: ":"): guard byte == mark else { return nil }
            case _ where !ASCII.isDigit(byte): return nil
            case UInt8(ascii: "Y"): year = year * 10 + digit
            case UInt8(ascii: "h"): hour = hour * 10 + digit
            case UInt8(ascii: "m"): minute = minute * 10 + digit
            case UInt8(ascii: "s"): second = second * 10 + digit
            default: day = day * 10 + digit
            }
        }
        guard let index = HTTPDate.index(of: name, in: HTTPDate.months) else { return nil }
        month = Int64(index) + 1
    }

    /// Creates the fields of a date, or returns `nil` outside the years 0 to 9999.
    ///
    /// Years begin in March in the computation, so that the leap day is the last day.
    init?(_ date: Date) {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        guard seconds >= -62_167_219_200, seconds <= HTTPDate.latest.timeIntervalSince1970 else { return nil }
        let total = Int64(seconds) + Self.daysToEpoch * 86_400
        let (days, rest) = (total / 86_400, total % 86_400)
        let dayOfEra = days % Self.daysOfEra
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + (days / Self.daysOfEra - 1) * 400 + (month <= 2 ? 1 : 0)
        (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60)
        weekday = Int((days + 3) % 7)
    }

    /// The date; `nil` if the calendar or the clock has no such date or time.
    var date: Date? {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard (0...9999).contains(year), (1...12).contains(month), day >= 1, day <= lengths[Int(month) - 1],
            (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second)
        else { return nil }
        let yearFromMarch = year + 400 - (month <= 2 ? 1 : 0)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let days =
            yearFromMarch * 365 + yearFromMarch / 4 - yearFromMarch / 100 + yearFromMarch / 400 + dayOfYear
            - Self.daysToEpoch
        return Date(timeIntervalSince1970: Double(((days * 24 + hour) * 60 + minute) * 60 + second))
    }

    func isMoreThan50Years(ahead today: Fields) -> Bool {
        (year - 50, month, day, hour, minute, second)
            > (today.year, today.month, today.day, today.hour, today.minute, today.second)
    }
}
