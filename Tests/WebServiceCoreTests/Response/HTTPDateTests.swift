import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("HTTP dates", .permit)
struct HTTPDateTests {
    /// 2026-03-01T12:00:00Z.
    static let now = Date(timeIntervalSince1970: 1_772_366_400)

    @Test(
        "Dates in the three formats of RFC 9110 are parsed",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Sun Nov 06 08:49:37 1994", 784_111_777), ("SUN, 06 nov 1994 08:49:37 gMT", 784_111_777),
            ("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
            ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200), ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Fri, 31 Dec 9999 23:59:60 GMT", 253_402_300_800),
        ] as [(String, Int64)])
    func formats(text: String, seconds: Int64) {
        #expect(HTTPDate.parse(text, now: Self.now) == Date(timeIntervalSince1970: Double(seconds)))
    }

    @Test(
        "An invalid date is rejected",
        arguments: [
            "", "0", "-1", "Sun, 31 Feb 2021 00:00:00 GMT", "Sun, 29 Feb 1900 00:00:00 GMT",
            "Sun, 29 Feb 2023 00:00:00 GMT",
            "Sun, 31 Apr 2023 00:00:00 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 32 Jan 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06  Nov  1994 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 AEST",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 06 Nox 1994 08:49:37 GMT", "Xxx, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 99999 08:49:37 GMT",
            "Sun,06 Nov 1994 08:49:37 GMT", " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "Sun, 06 Nov -994 08:49:37 GMT", "Sun, 06 Nov ١٩٩٤ 08:49:37 GMT", "Sun Nov  6 08:49:37 1994 GMT",
            "Sun Nov   08:49:37 1994",
            "Sun Nov 6 08:49:37 1994", "Sundays, 06-Nov-94 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT",
            String(repeating: "9", count: 29),
        ])
    func refused(text: String) {
        #expect(HTTPDate.parse(text, now: Self.now) == nil)
    }

    @Test(
        "A two-digit year is the latest matching year that is at most 50 years in the future",
        arguments: [
            ("Tuesday, 01-Mar-26 12:00:00 GMT", "2026", 2026), ("Tuesday, 01-Mar-27 12:00:00 GMT", "2027", 2026),
            ("Tuesday, 01-Mar-76 12:00:00 GMT", "2076", 2026), ("Tuesday, 01-Mar-76 12:00:01 GMT", "1976", 2026),
            ("Tuesday, 02-Mar-76 00:00:00 GMT", "1976", 2026), ("Tuesday, 01-Jan-77 00:00:00 GMT", "1977", 2026),
            ("Tuesday, 01-Jan-05 00:00:00 GMT", "2105", 2099), ("Tuesday, 01-Jan-99 00:00:00 GMT", "1999", 2001),
        ] as [(String, String, Int)])
    func centuries(text: String, year: String, thisYear: Int) throws {
        let now = try #require(HTTPDate.parse("Sun, 01 Mar \(thisYear) 12:00:00 GMT"))
        let date = try #require(HTTPDate.parse(text, now: now))
        #expect(HTTPDate.text(date)?.split(separator: " ")[3] == Substring(year))
    }

    @Test(
        "Cookie dates are parsed as in RFC 6265, in any order and with arbitrary surrounding characters",
        arguments: [
            ("Wed, 09 Jun 2021 10:18:14 GMT", 1_623_233_894), ("Wed, 09-Jun-2021 10:18:14 GMT", 1_623_233_894),
            ("Wednesday, 09-Jun-21 10:18:14 GMT", 1_623_233_894), ("Wed Jun  9 10:18:14 2021", 1_623_233_894),
            ("9 june 21 10:18:14", 1_623_233_894), ("2021 JUN 9 10:18:14", 1_623_233_894),
            ("10:18:14 9/Jun\\2021", 1_623_233_894),
            ("Funday, 9 - Junius-21 10:18:14 -0400 (hello)", 1_623_233_894),
            ("9-Jun-21 10:18:14 11:22:33", 1_623_233_894),
            ("9th Jun 2021ad 10:18:14.5", 1_623_233_894), ("1 Jan 1970 0:0:0", 0), ("01-Jan-70 00:00:00", 0),
            ("31 Dec 69 23:59:59", 3_155_759_999),
            ("1 Jan 1601 00:00:00", -11_644_473_600), ("31 Dec 9999 23:59:59", 253_402_300_799),
        ] as [(String, Int64)])
    func cookieDates(text: String, seconds: Int64) {
        #expect(HTTPDate.parseCookieDate(text.utf8) == Date(timeIntervalSince1970: Double(seconds)))
    }

    @Test(
        "An invalid cookie date is rejected",
        arguments: [
            "", "0", "Wed, 09 Jun 2021", "09 Jun 10:18:14", "Jun 2021 10:18:14", "09 2021 10:18:14",
            "31 Feb 2021 10:18:14", "31 Apr 2021 10:18:14",
            "29 Feb 2100 10:18:14", "00 Jun 2021 10:18:14", "32 Jun 2021 10:18:14", "98 Jun 17 10:18:14",
            "012 Jun 2021 10:18:14",
            "09 Jun 1600 10:18:14", "09 Jun 20210 10:18:14", "09 Jun 9999999999 10:18:14",
            "999999999999 Jun 2021 10:18:14", "09 Jun 2021 24:00:00",
            "09 Jun 2021 10:60:14", "09 Jun 2021 10:18:60", "09 Jun 2021 10:18", "09 Jun 2021 010:18:14",
            "09 Jun 2021 10:18:999999999999",
            "09 Jun 2021 10:x8:14", "09 Jun 2021 :18:14", "09 Ju 2021 10:18:14", "91:22:33 09 Jun 2021 10:18:14",
            "NoDateAtAll",
        ])
    func refusedCookieDates(text: String) {
        #expect(HTTPDate.parseCookieDate(text.utf8) == nil)
    }

    @Test("Dates from year 0 on are formatted as in the Gregorian calendar and parsed back")
    func calendar() throws {
        let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        var (year, month, day) = (0, 0, 1)
        let years = amount(2_400, thorough: 10_000)
        let last = years / 400 * 146_097 - 1
        for number in 0...last {
            let leap = year % 400 == 0 || year % 4 == 0 && year % 100 != 0
            let length = month == 1 ? (leap ? 29 : 28) : [3, 5, 8, 10].contains(month) ? 30 : 31
            if number % 1_009 == 0 || month == 1 && day >= 28 || number == last {
                // 0000-01-01 was a Saturday, 719,528 days before 1970.
                let date = Date(timeIntervalSince1970: Double((number - 719_528) * 86_400 + number % 86_400))
                let clock = String(format: "%02d:%02d:%02d", number % 86_400 / 3_600, number / 60 % 60, number % 60)
                let expected =
                    String(format: "%02d", day) + " \(months[month]) " + String(format: "%04d", year) + " \(clock) GMT"
                let text = try #require(HTTPDate.text(date))
                guard text == "\(names[(number + 6) % 7]), \(expected)", HTTPDate.parse(text, now: Self.now) == date
                else {
                    Issue.record("\(text) is not \(expected)")
                    return
                }
            }
            (day, month, year) =
                day < length ? (day + 1, month, year) : month < 11 ? (1, month + 1, year) : (1, 0, year + 1)
        }
        #expect(year == years)
    }

    @Test("Fractions of a second are rounded down, and years outside four digits are not formatted")
    func edges() {
        #expect(HTTPDate.text(Date(timeIntervalSince1970: 0.999)) == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(HTTPDate.text(Date(timeIntervalSince1970: -0.001)) == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(HTTPDate.text(HTTPDate.latest) == "Fri, 31 Dec 9999 23:59:59 GMT")
        for seconds in [253_402_300_800, -62_167_219_201, 1e300, -1e300, .infinity, -.infinity, .nan] {
            #expect(HTTPDate.text(Date(timeIntervalSince1970: seconds)) == nil)
        }
        #expect(HTTPDate.parse(String(repeating: "Sun, ", count: 100_000)) == nil)
        #expect(HTTPDate.parseCookieDate(String(repeating: "Sun, 1:", count: 100_000).utf8) == nil)
        #expect(HTTPDate.parse("Sunday, 06-Nov-94 08:49:37 GMT", now: Date(timeIntervalSince1970: .nan)) == nil)
    }

    @Test("Each damaged date is rejected or survives formatting and parsing")
    func fuzz() {
        var random = SeededGenerator(seed: 16)
        let seeds = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"].map
        { Array($0.utf8) }
        let bytes = Array("0123456789:,- abcJanFebGMT\u{0}\r\n\u{FF}".utf8)
        var read = 0
        let count = amount(4_000, thorough: 20_000, soak: 100_000)
        for round in 0..<count {
            var text = seeds[round % 3]
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0..<text.count, using: &random)
                switch Int.random(in: 0..<8, using: &random) {
                case 0: text.remove(at: place)
                case 1: text.insert(bytes.randomElement(using: &random) ?? 0, at: place)
                default: text[place] = bytes.randomElement(using: &random) ?? 0
                }
            }
            for date in [
                HTTPDate.parse(String(decoding: text, as: UTF8.self), now: Self.now), HTTPDate.parseCookieDate(text),
            ] {
                guard let date else { continue }
                read += 1
                #expect(HTTPDate.text(date).flatMap { HTTPDate.parse($0) } == date)
            }
        }
        #expect(read > count / 10)
    }
}
